/** A broker that answers at once: what is left is the relay's and the database's own work. */
import type { Broker, OutgoingMessage, PublishResult } from "rowpost";
import { receiptOf } from "./raw/drain.ts";

/** Called with each batch when it is handed over. */
export type Handed = (batch: readonly OutgoingMessage[]) => void;

/**
 * The same broker, taking no more than so many messages a second of this process: its receipts come
 * one after the other. The time is the broker's, not a processor's.
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

/** Makes the broker. Its receipts have 32 characters, as RocketMQ's. */
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
