/**
 * What a consumer that asked for order gets, in the order in which it gets it: RocketMQ's own
 * client in an orderly group.
 */
import { SimpleConsumer } from "rocketmq-client-nodejs";
import { createGroup, type ServerAddress, uniqueName } from "../brokers/rocketmq-server.ts";

export interface OrderlyMessage {
  readonly key: string;
  readonly group: string | undefined;
  readonly messageId: string;
}

export interface OrderlyReader {
  /** In the order of arrival, copies included. */
  readonly arrived: readonly OrderlyMessage[];
  close(): Promise<void>;
}

const QUIET = { info() {}, warn() {}, error() {}, debug() {}, close() {} };
/** One for each queue of a topic made by the tests. */
const RECEIVERS = 4;
const INVISIBLE_MS = 30_000;
/** The least that the server takes. */
const LONG_POLL_MS = 5_000;

/** Reads a topic from its beginning until it is closed. */
export async function createOrderlyReader(server: ServerAddress, topic: string): Promise<OrderlyReader> {
  const consumer = new SimpleConsumer({
    endpoints: `127.0.0.1:${server.port}`,
    namespace: "",
    consumerGroup: await createGroup(server, uniqueName("orderly"), { orderly: true }),
    subscriptions: new Map([[topic, "*"]]),
    awaitDuration: LONG_POLL_MS,
    logger: QUIET,
  });
  await consumer.startup();
  const arrived: OrderlyMessage[] = [];
  let closed = false;

  async function receive(): Promise<void> {
    while (!closed) {
      const views = await consumer.receive(32, INVISIBLE_MS).catch(() => []);
      for (const { properties, messageGroup, messageId } of views) {
        arrived.push({ key: properties.get("rowpost-key") ?? "", group: messageGroup, messageId });
      }
      // Only then the queue is given out again.
      await Promise.all(views.map((view) => consumer.ack(view).catch(() => undefined)));
    }
  }

  const receivers = Array.from({ length: RECEIVERS }, receive);
  return {
    arrived,
    async close() {
      closed = true;
      await consumer.shutdown().catch(() => undefined);
      await Promise.all(receivers);
    },
  };
}
