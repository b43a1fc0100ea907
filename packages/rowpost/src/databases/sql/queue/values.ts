import { BEGUN_MARK } from "../../../message/member-silent.ts";
import type { ConsumptionRecord, GroupKey, Redelivery } from "../../../queue/store.ts";
import { type Row, text, textOrNull } from "../rows.ts";

export const RESULTS: Readonly<Record<ConsumptionRecord["result"], number>> = {
  consumed: 0,
  failed: 1,
  dead: 2,
  skipped: 3,
  discarded: 4,
  redelivered: 5,
};

/** Due time of a message behind another with its ordering key. */
export const BEHIND_UNTIL = "9999-12-31 00:00:00.000";

/** Takes an instant in ISO 8601. */
export function isBehind(instant: string): boolean {
  return instant.startsWith(BEHIND_UNTIL.slice(0, 10));
}

/** Redeliveries as one JSON parameter: id, state, attempt, due_ms, fail_reason, ordering_key. */
export function redeliveryRows(redeliveries: readonly Redelivery[]): string {
  const rows = redeliveries.map(
    ({ id, state, attempt, dueInMs, failReason, orderingKey = null }) =>
      `[${id},${state === "dead" ? 1 : 0},${attempt},${dueInMs === null ? null : Math.ceil(dueInMs)},${JSON.stringify(failReason)},${JSON.stringify(orderingKey)}]`,
  );
  return `[${rows.join(",")}]`;
}

/**
 * Whether an attempt ends this redelivery: it is the next one, or its start is marked there.
 * Otherwise the message was redelivered by hand, and the row stays.
 */
export function endsRedelivery(row: string, attempt: string): string {
  return `(${row}.attempt = ${attempt} - 1 OR (${row}.attempt = ${attempt} AND ${row}.fail_reason LIKE '${BEGUN_MARK}%'))`;
}

/** The order in which every statement locks rows of several groups. */
export function inOrder<Of extends { readonly key: GroupKey }>(list: readonly Of[]): Of[] {
  const name = ({ key: { topic, group } }: Of): string => `${topic} ${group}`;
  return list.toSorted((left, right) => (name(left) < name(right) ? -1 : 1));
}

/** Groups as one JSON parameter: topic, group. */
export function keyRows(keys: readonly GroupKey[]): string {
  return JSON.stringify(keys.map(({ topic, group }) => [topic, group]));
}

/** Last id per partition, from a topic's counters. */
export function lastIdsOf(counters: string): Map<number, string> {
  const given = Object.entries(JSON.parse(counters) as Record<string, string>);
  return new Map(
    given.map(([partition, last]) => [Number(partition), String((BigInt(last) << 6n) | BigInt(partition))]),
  );
}

/** The same for one topic, from rows of `readCounters`. */
export function lastIdsIn(rows: readonly Row[]): Map<number, string> {
  const row = rows.find((each) => textOrNull(each, "counters") !== null);
  return row === undefined ? new Map() : lastIdsOf(text(row, "counters"));
}
