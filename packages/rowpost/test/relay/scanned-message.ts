/** Rows and messages for tests of single parts of the relay. */
import type { InFlight } from "../../src/relay/in-flight.ts";
import type { ScannedMessage } from "../../src/relay/store.ts";

/** A waiting row as a scan returns it, with what the test says otherwise. */
export function scannedMessage(change: Partial<ScannedMessage> = {}): ScannedMessage {
  const id = change.id ?? "1";
  return {
    id,
    shard: 0,
    type: "t",
    key: id,
    topic: "orders",
    body: "{}",
    bodyBytes: 2,
    isBodyNull: false,
    headers: null,
    contentType: null,
    orderingKey: null,
    retryCount: 0,
    deliveryCount: 0,
    lockVersion: "0",
    identityHash: `t ${change.key ?? id}`,
    resend: false,
    waitingMs: 0,
    due: false,
    ...change,
  };
}

/** Such a row on its way. */
export function inFlightMessage(change: Partial<ScannedMessage> = {}): InFlight {
  const row = scannedMessage(change);
  const { id, type, key, topic } = row;
  return {
    row,
    epoch: "1",
    outgoing: {
      id,
      type,
      key,
      topic,
      body: "{}",
      contentType: "application/json",
      headers: {},
      attempt: 1,
      orderingKey: row.orderingKey ?? undefined,
    },
  };
}
