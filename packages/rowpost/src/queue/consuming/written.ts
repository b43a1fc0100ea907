import { MOST_IN_A_RECORD, queueMonth } from "../../message/queue-id.ts";
import type { ConsumptionRecord, Redelivery } from "../store.ts";
import { type Delivery, hasRecord, holdsUp, isDone } from "./delivery.ts";
import type { ConsumerSettings } from "./options.ts";

export function recordsOf(deliveries: readonly Delivery[], mode: ConsumerSettings["records"]): ConsumptionRecord[] {
  const records: ConsumptionRecord[] = [];
  for (const together of mode === "batch" ? stretches(deliveries) : []) {
    const well = together.filter((delivery) => isDone(delivery) && !delivery.recorded);
    const [first] = well;
    if (first === undefined) continue;
    const durationMs = Math.max(...well.map(({ outcome }) => (outcome?.kind === "consumed" ? outcome.durationMs : 0)));
    const last = well.at(-1)?.message.id ?? null;
    records.push({ ...recordOf(first, "consumed", durationMs, null), key: null, lastId: last, messages: well.length });
  }
  for (const delivery of deliveries) {
    const { outcome } = delivery;
    if (
      outcome === undefined ||
      delivery.recorded ||
      !hasRecord(outcome) ||
      (mode === "batch" && isDone(delivery) && !delivery.again)
    )
      continue;
    if (outcome.kind === "consumed") records.push(recordOf(delivery, "consumed", outcome.durationMs, null));
    else if (outcome.kind === "skipped") records.push(recordOf(delivery, "skipped", 0, outcome.error));
    else records.push(recordOf(delivery, outcome.final ? "dead" : "failed", outcome.durationMs, outcome.error));
  }
  return records;
}

/**
 * In order, without redeliveries. Each stretch lies in one month, so that its record is dropped
 * with the messages, and is short enough to be searched for.
 */
function stretches(deliveries: readonly Delivery[]): readonly Delivery[][] {
  const all: Delivery[][] = [];
  let month = 0;
  for (const delivery of deliveries) {
    if (delivery.again) continue;
    const its = queueMonth(delivery.message.id);
    const last = all.at(-1);
    if (last !== undefined && its === month && last.length < MOST_IN_A_RECORD) last.push(delivery);
    else all.push([delivery]);
    month = its;
  }
  return all;
}

export function recordOf(
  { message, attempt }: Delivery,
  result: ConsumptionRecord["result"],
  durationMs: number,
  error: string | null,
): ConsumptionRecord {
  return {
    id: message.id,
    lastId: null,
    messages: 1,
    key: message.key,
    attempt,
    result,
    durationMs: Math.round(durationMs),
    error,
  };
}

export function redeliveryOf(
  { message, attempt, countedAttempt, again, outcome, recorded }: Delivery,
  retryInMs: (attempt: number) => number,
  blocks: boolean,
): Redelivery | undefined {
  const { id, orderingKey } = message;
  if (outcome?.kind === "delayed") {
    return { id, attempt: 0, state: "waiting", dueInMs: outcome.dueInMs, failReason: null };
  }
  if (outcome?.kind === "behind") {
    return { id, attempt: 0, state: "waiting", dueInMs: null, failReason: null, orderingKey };
  }
  if (outcome?.kind !== "failed" || recorded) return undefined;
  const { final, error } = outcome;
  return {
    id,
    attempt,
    again,
    failReason: error,
    orderingKey: blocks ? orderingKey : null,
    state: final ? "dead" : "waiting",
    dueInMs: final ? 0 : retryInMs(countedAttempt),
  };
}

/**
 * Keys whose first waiting message may be due: one before it is done, or it has just begun to wait.
 */
export function releasedKeys(deliveries: readonly Delivery[]): string[] {
  const keys = deliveries
    .filter(({ again, outcome }) => outcome?.kind === "behind" || (again && !holdsUp(outcome)))
    .flatMap(({ message }) => message.orderingKey ?? []);
  return [...new Set(keys)];
}
