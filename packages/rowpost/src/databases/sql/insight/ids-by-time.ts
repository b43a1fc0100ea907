/**
 * Finds the id for an instant by reading a few rows, because ids follow the order of writing.
 *
 * Hosts with different clocks write the time, so both ends of a range are widened, and the
 * statement compares the time too. A first look at 64 rows detects a table in another order
 * (restored, or numbered by hand), whose range is then not narrowed. It also reads two rows per
 * place and the last archived ones, to detect an archive in which ids restarted after a TRUNCATE of
 * the message table.
 */
import type { MessageFilter } from "../../../admin/message-admin.ts";
import type { MessageTable } from "../cold-table.ts";
import { type Row, text, textOrNull } from "../rows.ts";
import type { IdRange, Read } from "./requests.ts";
import { createdFrom, createdOfLastArchived, idBounds } from "./statements.ts";

/** Rows of the first look, which must detect a table that is not in time order. */
const FIRST_PROBES = 64;
/** Rows of each later look: four looks narrow 2,000,000 rows to a handful. */
const PROBES = 16;
const CLOCKS_DIFFER_MS = 5 * 60_000;
/** In local time one hour a year occurs twice. */
const REPEATED_HOUR_MS = 3_600_000;

interface Probe {
  readonly id: bigint;
  readonly createdMs: number;
}

/** Ids that may have been created in a time window; undefined: none. */
export type IdsByTime = (filter: MessageFilter, archived: boolean) => Promise<IdRange | undefined>;

export function createIdsByTime({ read, table }: { readonly table: MessageTable; readonly read: Read }): IdsByTime {
  const toleranceMs = CLOCKS_DIFFER_MS + (table.layout.clock === "utc" ? 0 : REPEATED_HOUR_MS);

  /** Rows at evenly spaced ids between these two, inclusive. */
  async function look(low: bigint, high: bigint, archived: boolean, probes: number): Promise<Probe[]> {
    const count = BigInt(probes - 1);
    const ids = Array.from({ length: probes }, (_, index) => low + ((high - low) * BigInt(index)) / count);
    const rows = await read(createdFrom(table, { archived, ids: [...new Set(ids)].map(String) }));
    return inOrder(rows);
  }

  async function lookAtAll(low: bigint, high: bigint, archived: boolean): Promise<Probe[]> {
    const probes = await look(low, high, archived, FIRST_PROBES);
    if (!archived) return probes;
    return [...probes, ...inOrder(await read(createdOfLastArchived(table, FIRST_PROBES)))].sort(byId);
  }

  /** The last row seen before an instant, and the first at or after it. */
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

/** For equal ids the latest first, so that two with different times are out of order. */
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
