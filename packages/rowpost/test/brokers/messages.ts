import type { OutgoingMessage } from "../../src/brokers/broker.ts";

/** A message for tests of brokers; `changes` replace parts of it. */
export function outgoing(key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  const type = changes.type ?? "order.created";
  return {
    id: "1",
    type,
    key,
    topic: "orders",
    body: `{"order":"${key}"}`,
    contentType: "application/json",
    headers: { "rowpost-id": `${type}:${key}`, "rowpost-type": type, "rowpost-key": key, "rowpost-attempt": "1" },
    orderingKey: undefined,
    attempt: 1,
    ...changes,
  };
}

/** A signal that is never aborted. */
export function noDeadline(): { readonly signal: AbortSignal } {
  return { signal: new AbortController().signal };
}
