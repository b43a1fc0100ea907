import { randomBytes } from "node:crypto";
import type { Channel } from "amqplib";
import { rabbitmq, rabbitmqOptionsFromUrl } from "rowpost/rabbitmq";
import { brokerLabel } from "../broker-url.ts";
import { connectRabbitmq, consumeRabbitmqQueue } from "../consumers/rabbitmq.ts";
import type { StartConsumer } from "./consumer.ts";

/**
 * A fanout exchange with a queue for each run, so that parallel runs do not take each other's
 * orders.
 */
const EXCHANGE = "rowpost_demo_orders";
const TOPIC = "rowpost_demo_orders";
/** The server deletes a killed run's queue after this time. */
const EXPIRES_MS = 600_000;

export const startRabbitmqConsumer: StartConsumer = async (url, { atEnd, environment, orders }) => {
  const settings = { ...rabbitmqOptionsFromUrl(url, environment), exchange: EXCHANGE };
  const queue = `${EXCHANGE}_${randomBytes(6).toString("hex")}`;

  async function onChannel(work: (channel: Channel) => Promise<unknown>): Promise<void> {
    const connection = await connectRabbitmq(settings);
    try {
      await work(await connection.createChannel());
    } finally {
      await connection.close();
    }
  }

  const broker = rabbitmq(settings);
  atEnd(() => broker.close());
  atEnd(() => onChannel((channel) => channel.deleteQueue(queue)));
  try {
    await onChannel(async (channel) => {
      await channel.assertExchange(EXCHANGE, "fanout", { durable: true });
      await channel.assertQueue(queue, { durable: true, arguments: { "x-expires": EXPIRES_MS } });
      await channel.bindQueue(queue, EXCHANGE, "");
    });
  } catch (error) {
    // Its errors about address or account help more.
    await broker.check();
    throw error;
  }
  const consumption = await consumeRabbitmqQueue({ url, environment, topic: queue, group: "" }, orders.options);
  atEnd(() => consumption.close());
  return { broker, topic: TOPIC, label: `${brokerLabel(url)} exchange ${EXCHANGE}` };
};
