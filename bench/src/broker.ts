/** A broker that answers at once, which leaves only the work of the relay and the database. */
import type { Broker, OutgoingMessage, PublishResult } from "rowpost";
import { receiptOf } from "./raw/drain.ts";

export type Handed = (batch: readonly OutgoingMessage[]) => void;

/**
 * The same broker, limited to so many messages a second of this process; receipts come one by one.
 * It waits instead of using CPU.
 */
export function throttledBroker(broker: Broker, messagesPerSecond: number): Broker {
  let freeAtMs = 0;
  return {
    ...broker,
    async publish(batch, options) {
      freeAtMs = Math.max(freeAtMs, performance.now()) + (batch.length * 1_000) / messagesPerSecond;
      await new Promise((resolve) => setTimeout(resolve, freeAtMs - performance.now()));
      return await broker.publish(batch, options);
    },
  };
}

/** Its receipts have 32 characters, like RocketMQ's. */
export function instantBroker(handed: Handed): Broker {
  let receipts = 0;
  return {
    name: "instant",
    features: { ordering: "key", reportsUnknownTopic: false, maxBodyBytes: undefined },
    async publish(batch) {
      handed(batch);
      return batch.map((): PublishResult => {
        receipts += 1;
        return { status: "sent", messageId: receiptOf(receipts) };
      });
    },
    async check() {},
    async close() {},
  };
}
