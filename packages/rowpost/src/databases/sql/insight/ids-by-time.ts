/**
 * From an instant to an id: rows get their ids in the order in which they are written, so the first
 * row of an instant is found by looking at a few, and nothing is read of the others.
 *
 * That order is not exact: hosts write the time themselves, and their clocks differ. So both ends
 * of a range are widened, and the statement compares the time itself as well. A table that is not
 * in this order (restored, or numbered by hand) is noticed by the first look, at 64 rows all over
 * it, and is then not narrowed at all. So is an archive in which ids began again, as after a
 * TRUNCATE of the message table: the first look has two rows at each place, and those archived
 * last.
 */
import type { MessageFilter } from "../../../admin/message-admin.ts";
import type { MessageTable } from "../cold-table.ts";
import { type Row, text, textOrNull } from "../rows.ts";
import type { IdRange, Read } from "./requests.ts";
import { createdFrom, createdOfLastArchived, idBounds } from "./statements.ts";

/** Rows of the first look, which has to notice a table that is not in the order of time. */
const FIRST_PROBES = 64;
/** Rows of each look after it: four of them narrow 2,000,000 rows down to a handful. */
const PROBES = 16;
const CLOCKS_DIFFER_MS = 5 * 60_000;
/** In local time an hour comes twice a year. */
const REPEATED_HOUR_MS = 3_600_000;

interface Probe {
  readonly id: bigint;
  readonly createdMs: number;
}

/** The ids that may have been created in a window of time; undefined: there are none. */
export type IdsByTime = (filter: MessageFilter, archived: boolean) => Promise<IdRange | undefined>;

export function createIdsByTime({ read, table }: { readonly table: MessageTable; readonly read: Read }): IdsByTime {
  const toleranceMs = CLOCKS_DIFFER_MS + (table.layout.clock === "utc" ? 0 : REPEATED_HOUR_MS);

  /** The rows at evenly spaced ids between these two, which are included. */
  async function look(low: bigint, high: bigint, archived: boolean, probes: number): Promise<Probe[]> {
    const count = BigInt(probes - 1);
    const ids = Array.from({ length: probes }, (_, index) => low + ((high - low) * BigInt(index)) / count);
    const rows = await read(createdFrom(table, { archived, ids: [...new Set(ids)].map(String) }));
    return inOrder(rows);
  }

  /** All over the table. */
  async function lookAtAll(low: bigint, high: bigint, archived: boolean): Promise<Probe[]> {
    const probes = await look(low, high, archived, FIRST_PROBES);
    if (!archived) return probes;
    return [...probes, ...inOrder(await read(createdOfLastArchived(table, FIRST_PROBES)))].sort(byId);
  }

  /** The last row seen before an instant, and the first at it or after it. */
  async function around(
    instantMs: number,
    first: readonly Probe[],
    archived: boolean,
  ): Promise<{ readonly before: Probe | undefined; readonly from: Probe | undefined }> {
    let probes = first;
    for (;;) {
      const place = probes.findIndex(({ createdMs }) => createdMs >= instantMs);
      const before = place === -1 ? probes.at(-1) : probes[place - 1];
      const from = place === -1 ? undefined : probes[place];
      if (before === undefined || from === undefined || from.id - before.id < PROBES) return { before, from };
      const inner = (await look(before.id, from.id, archived, PROBES)).filter(
        ({ id }) => id > before.id && id < from.id,
      );
      if (inner.length === 0) return { before, from };
      probes = [before, ...inner, from];
    }
  }

  return async ({ createdAfter, createdBefore }, archived) => {
    if (createdAfter === undefined && createdBefore === undefined) return {};
    const [bounds] = await read(idBounds(table, { archived }));
    const firstId = bounds === undefined ? null : textOrNull(bounds, "first_id");
    if (bounds === undefined || firstId === null) return undefined;
    const probes = await lookAtAll(BigInt(firstId), BigInt(text(bounds, "last_id")), archived);
    if (!areInOrder(probes, toleranceMs)) return {};
    const range: { lowId?: string; highId?: string } = {};
    if (createdAfter !== undefined) {
      const { before, from } = await around(Date.parse(createdAfter) - toleranceMs, probes, archived);
      const low = before ?? from;
      if (low !== undefined) range.lowId = String(low.id);
    }
    if (createdBefore !== undefined) {
      const { from } = await around(Date.parse(createdBefore) + toleranceMs, probes, archived);
      if (from !== undefined) range.highId = String(from.id);
    }
    return range;
  };
}

function inOrder(rows: readonly Row[]): Probe[] {
  return rows
    .map((row) => ({ id: BigInt(text(row, "id")), createdMs: Date.parse(textOrNull(row, "gmt_create") ?? "") }))
    .sort(byId);
}

/** Rows of one id the latest first, so that two of different times are not in order. */
function byId(left: Probe, right: Probe): number {
  if (left.id !== right.id) return left.id < right.id ? -1 : 1;
  return right.createdMs - left.createdMs;
}

function areInOrder(probes: readonly Probe[], toleranceMs: number): boolean {
  let latestMs = Number.NEGATIVE_INFINITY;
  for (const { createdMs } of probes) {
    if (!(createdMs >= latestMs - toleranceMs)) return false;
    latestMs = Math.max(latestMs, createdMs);
  }
  return true;
}
