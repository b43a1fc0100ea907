/** Values of the queue's columns, the same in every dialect. */
import type { ConsumptionRecord, GroupStart, Redelivery } from "../../../queue/store.ts";

/** Numbers of the column `result`. */
export const RESULTS: Readonly<Record<ConsumptionRecord["result"], number>> = {
  consumed: 0,
  failed: 1,
  dead: 2,
  skipped: 3,
  discarded: 4,
  redelivered: 5,
};

/** First id of a group that does not begin at the end. */
export function startId(start: Exclude<GroupStart, "end">): string {
  return start === "start" ? "0" : start.id;
}

/** When a message is due that waits behind another one of its ordering key. */
export const BEHIND_UNTIL = "9999-12-31 00:00:00.000";

/** Of an instant in ISO 8601. */
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
