/** A real consumer group of the message queue: each order is handled. */
import { describeError, type Logger } from "rowpost";
import { fromQueue } from "rowpost/inbox";
import { queueBroker } from "rowpost/queue";
import { brokerLabel } from "../broker-url.ts";
import { openQueue } from "../queue-url.ts";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const GROUP = "rowpost_demo";
const PARTITIONS = 4;

/** Makes tables and topic where they are missing, and begins to receive. */
export async function startQueueConsumer(url: string, parts: ConsumerParts): Promise<DemoConsumer> {
  const { environment, database, orders, onTrouble, say } = parts;
  const opened = await openQueue(url, environment, database);
  const { queue } = opened;
  try {
    await queue.migrate();
    const { created } = await queue.createTopic({ topic: TOPIC, partitions: PARTITIONS });
    if (created) say(`made the topic ${TOPIC}`);
    const consumer = await queue.consume({
      ...{ topic: TOPIC, group: GROUP, logger: toldTo(onTrouble) },
      handler: (message) => orders.receive(() => fromQueue(message)),
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

function toldTo(onTrouble: (text: string) => void): Logger {
  const tell = (text: string, fields?: Readonly<Record<string, unknown>>): void =>
    onTrouble(`consumer: ${text} ${describeError(fields?.["error"] ?? "")}`);
  return { debug: () => undefined, info: () => undefined, warn: tell, error: tell };
}
