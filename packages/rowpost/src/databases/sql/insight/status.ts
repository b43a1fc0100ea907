import type { OldestDue, OutboxStatus, StateTotal } from "../../../admin/message-admin.ts";
import type { RelayStatus, ShardLease } from "../../../relay/store.ts";
import { grouped } from "../../../runtime/grouped.ts";
import { decodeState, integer, type Row, relayStatus, shardLease, suspensionRule, text, textOrEmpty } from "../rows.ts";
import type { DialectStatements } from "../statements.ts";
import { COUNTED_ROWS, type Read } from "./requests.ts";
import { countByState, countStates, oldestDue } from "./statements.ts";

/**
 * Rows per state whose topics are read. Each may be on an uncached page: 5,000 took 440 ms on a
 * table of 2,000,000 rows, 10,000 in memory 40 ms (MariaDB 10.11). Failed rows are read up to the
 * count's limit, because alerts are per topic.
 */
const SAMPLED_ROWS = 300;
const UNFINISHED = ["pending", "sending", "failed", "suspended"] as const;

export interface MessageStatusParts {
  readonly read: Read;
  readonly statements: Pick<DialectStatements, "housekeeping" | "leases" | "table">;
}

/** Reads a bounded number of rows; with `exact` the whole table. */
export async function readStatus({ read, statements }: MessageStatusParts, exact: boolean): Promise<OutboxStatus> {
  const { housekeeping, leases, table } = statements;
  const { layout } = table;
  const rows = await read(exact ? countByState(table) : housekeeping.gauges(SAMPLED_ROWS, COUNTED_ROWS));
  const counts = rows.map((row) => ({
    topic: textOrEmpty(row, "topic"),
    state: decodeState(layout, row["state"]),
    count: integer(row, "count"),
    oldestAgeMs: Math.max(0, integer(row, "oldest_age_ms")),
  }));
  const totals = exact ? totalsOf(counts, Number.POSITIVE_INFINITY) : await boundedTotals();
  const instances = (await read(leases.readReports())).map(relayStatus);
  const isPart = (state: StateTotal["state"]): boolean =>
    totalsOf(counts).some(
      (seen) =>
        seen.state === state && totals.some((all) => all.state === state && (all.atLeast || all.count > seen.count)),
    );
  return {
    exact,
    totals,
    counts: counts.map((one) => ({ ...one, atLeast: !exact && isPart(one.state) })),
    oldestDue: oldestOf(await read(oldestDue(table))),
    leases: usedLeases(await read(leases.readEveryLease()), instances),
    instances,
    suspensions: (await read(leases.readSuspensions())).map(suspensionRule),
  };

  async function boundedTotals(): Promise<StateTotal[]> {
    const found = await read(countStates(table, { states: UNFINISHED, limit: COUNTED_ROWS }));
    return totalsOf(found.map((row) => ({ state: decodeState(layout, row["state"]), count: integer(row, "count") })));
  }
}

/**
 * Relays with a topic list have their own lease rows (own-topics.ts). Leaves out a list's rows if
 * none of its owners is in the registry, which forgets the dead after a day, and the table's own
 * while only relays with lists run.
 */
export function usedLeases(rows: readonly Row[], relays: readonly RelayStatus[]): ShardLease[] {
  const registered = new Set<string | undefined>(relays.map(({ owner }) => owner));
  const lists = [...grouped(rows, (row) => text(row, "table_name")).values()].map((list) => list.map(shardLease));
  const used = lists.filter((list) => list.some(({ owner }) => registered.has(owner)));
  return (used.length > 0 ? used : lists.slice(0, 1)).flat();
}

/** Sums counts of several topics or index parts. */
function totalsOf(counts: readonly Pick<StateTotal, "state" | "count">[], most = COUNTED_ROWS): StateTotal[] {
  const totals = new Map<StateTotal["state"], number>();
  for (const { count, state } of counts) totals.set(state, (totals.get(state) ?? 0) + count);
  return [...totals]
    .filter(([, count]) => count > 0)
    .map(([state, count]) => ({ state, count, atLeast: count >= most }));
}

function oldestOf(rows: readonly Row[]): OldestDue | undefined {
  const due = rows.map((row) => ({
    id: text(row, "id"),
    topic: textOrEmpty(row, "topic"),
    waitingMs: Math.max(0, integer(row, "waiting_ms")),
  }));
  return due.sort((left, right) => right.waitingMs - left.waitingMs)[0];
}
