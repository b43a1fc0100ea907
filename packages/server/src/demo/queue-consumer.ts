import { fromQueue } from "rowpost/inbox";
import { queueBroker } from "rowpost/queue";
import { brokerLabel } from "../broker-url.ts";
import { openQueue } from "../queue-url.ts";
import type { StartConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const GROUP = "rowpost_demo";
const PARTITIONS = 4;

export const startQueueConsumer: StartConsumer = async (url, { atEnd, environment, database, orders, say }) => {
  const opened = await openQueue(url, environment, database);
  atEnd(() => opened.close());
  const { queue } = opened;
  await queue.migrate();
  const { created } = await queue.createTopic({ topic: TOPIC, partitions: PARTITIONS });
  if (created) say(`made the topic ${TOPIC}`);
  const broker = queueBroker({ queue });
  atEnd(() => broker.close());
  const consumer = await queue.consume({
    topic: TOPIC,
    group: GROUP,
    logger: orders.options.logger,
    handler: (message) => orders.receive(() => fromQueue(message)),
  });
  atEnd(() => consumer.stop());
  return { broker, topic: TOPIC, label: `${brokerLabel(url)} topic ${TOPIC}, group ${GROUP}` };
};
