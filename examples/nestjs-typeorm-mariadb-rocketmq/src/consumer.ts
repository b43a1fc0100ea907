/** Another service: it reads the topic with RocketMQ's own client. */
import { SimpleConsumer } from "rocketmq-client-nodejs";
import { GROUP, ROCKETMQ_ENDPOINTS, TOPIC } from "./settings";

/** The least that the server takes. */
const LONG_POLL_MS = 5_000;
const INVISIBLE_MS = 30_000;

export interface Consumer {
  /** Reads until nothing more comes, and ends. */
  finish(): Promise<void>;
}

/** Calls back with the header `rowpost-key` of each message: the id of an order. */
export async function startConsumer(onOrder: (id: string) => void): Promise<Consumer> {
  const logger = { info() {}, warn() {}, error() {}, debug() {}, close() {} };
  const consumer = new SimpleConsumer({
    endpoints: ROCKETMQ_ENDPOINTS,
    namespace: "",
    consumerGroup: GROUP,
    subscriptions: new Map([[TOPIC, "*"]]),
    awaitDuration: LONG_POLL_MS,
    logger,
  });
  await consumer.startup();
  let isLast = false;

  async function read(): Promise<void> {
    for (;;) {
      const wasLast = isLast;
      const messages = await consumer.receive(32, INVISIBLE_MS);
      for (const message of messages) {
        onOrder(message.properties.get("rowpost-key") ?? "");
        await consumer.ack(message);
      }
      if (wasLast && messages.length === 0) return;
    }
  }

  const reading = read();
  reading.catch(() => undefined); // finish() reports it
  return {
    async finish() {
      isLast = true;
      await reading;
      await consumer.shutdown();
    },
  };
}
