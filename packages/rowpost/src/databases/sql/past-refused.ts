/**
 * Skips rows that the table refuses because of a CHECK, a trigger or a foreign key. Otherwise one
 * such row fails every statement that includes it.
 */
import type { RowRefusal } from "../../relay/store.ts";
import { RowRefusedError } from "../../runtime/errors.ts";

type OnRefused = (refusal: RowRefusal) => void;

/**
 * Writes all rows with one statement. If the table refuses one, halves until it is alone, reports
 * it and leaves it: about 2 log2(n) more statements. Returns the number of changed rows.
 */
export async function pastRefused<Row>(
  rows: readonly Row[],
  write: (rows: readonly Row[]) => Promise<number>,
  onRefused: (row: Row, error: RowRefusedError) => void,
): Promise<number> {
  const [only] = rows;
  if (only === undefined) return 0;
  try {
    return await write(rows);
  } catch (error) {
    if (!(error instanceof RowRefusedError)) throw error;
    const half = Math.ceil(rows.length / 2);
    if (half < rows.length) {
      const changed = await pastRefused(rows.slice(0, half), write, onRefused);
      return changed + (await pastRefused(rows.slice(half), write, onRefused));
    }
    onRefused(only, error);
    return 0;
  }
}

export interface Picked {
  readonly rows: number;
  /** Leading rows to leave out, because the table refuses them. */
  readonly skip: number;
  /** Rows changed earlier in the same call. */
  readonly done: number;
}

/** All that a limit allows, at once. */
export function pickAll(limit: number): Picked {
  return { rows: limit, skip: 0, done: 0 };
}

/** The same for a statement that picks its rows in an order and never picks changed ones again. */
export async function pickPastRefused(
  limit: number,
  write: (picked: Picked) => Promise<number>,
  onRefused: (error: RowRefusedError) => void,
): Promise<number> {
  let changed = 0;
  let skip = 0;
  let most = limit;
  while (changed < limit && skip < limit) {
    const rows = Math.min(most, limit - changed);
    try {
      const now = await write({ rows, skip, done: changed });
      changed += now;
      if (now < rows) break;
    } catch (error) {
      if (!(error instanceof RowRefusedError)) throw error;
      most = Math.ceil(rows / 2);
      if (rows > 1) continue;
      onRefused(error);
      skip += 1;
      most = limit;
    }
  }
  return changed;
}

/** Reports a refused row. */
export function telling(
  onRefused: OnRefused,
  doing: RowRefusal["doing"],
): (row: { readonly id: string } | undefined, error: RowRefusedError) => void {
  return (row, error) => onRefused({ doing, id: row?.id, error });
}
