/** A real consumer group of the message queue: each order goes into the ledger. */
import { describeError, type Logger } from "rowpost";
import { queueBroker } from "rowpost/queue";
import { brokerLabel } from "../broker-url.ts";
import { openQueue } from "../queue-url.ts";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const GROUP = "rowpost_demo";
const PARTITIONS = 4;

/** Makes tables and topic where they are missing, and begins to receive. */
export async function startQueueConsumer(url: string, parts: ConsumerParts): Promise<DemoConsumer> {
  const { environment, database, ledger, onTrouble, say } = parts;
  const opened = await openQueue(url, environment, database);
  const { queue } = opened;
  try {
    await queue.migrate();
    const { created } = await queue.createTopic({ topic: TOPIC, partitions: PARTITIONS });
    if (created) say(`made the topic ${TOPIC}`);
    const consumer = await queue.consume({
      ...{ topic: TOPIC, group: GROUP, logger: toldTo(onTrouble) },
      handler: ({ body }) => ledger.receive(orderNumberOf(body)),
    });
    const broker = queueBroker({ queue });
    return {
      broker,
      topic: TOPIC,
      label: `${brokerLabel(url)} topic ${TOPIC}, group ${GROUP}`,
      trouble: new Map(),
      async close() {
        await consumer.stop();
        await broker.close();
        await opened.close();
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** What is not an order has a number that no order has. */
function orderNumberOf(body: unknown): string {
  const has = typeof body === "object" && body !== null && "orderNo" in body;
  return has ? String(body.orderNo) : "";
}

function toldTo(onTrouble: (text: string) => void): Logger {
  const tell = (text: string, fields?: Readonly<Record<string, unknown>>): void =>
    onTrouble(`consumer: ${text} ${describeError(fields?.["error"] ?? "")}`);
  return { debug: () => undefined, info: () => undefined, warn: tell, error: tell };
}
