/** A real RabbitMQ consumer: receives, handles the order, acknowledges. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Channel, type ChannelModel, type ConsumeMessage, connect } from "amqplib";
import { fromRabbitmq } from "rowpost/inbox";
import { type RabbitmqOptions, rabbitmq, rabbitmqOptionsFromUrl } from "rowpost/rabbitmq";
import { brokerLabel } from "../broker-url.ts";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";

/**
 * A fanout exchange: each run has a queue of its own there, so that runs side by side do not take
 * each other's orders.
 */
const EXCHANGE = "rowpost_demo_orders";
const TOPIC = "rowpost_demo_orders";
/** The queue of a run that was killed is deleted by the server after this time. */
const EXPIRES_MS = 600_000;
/** Messages that are received and not acknowledged yet. */
const PREFETCH = 100;
const AGAIN_MS = 200;

/** Makes the exchange where it is missing, and a queue, and begins to receive. */
export async function startRabbitmqConsumer(url: string, parts: ConsumerParts): Promise<DemoConsumer> {
  const { environment, orders, onTrouble } = parts;
  const settings = { ...rabbitmqOptionsFromUrl(url, environment), exchange: EXCHANGE };
  const queue = `${EXCHANGE}_${randomBytes(6).toString("hex")}`;
  const ending = new AbortController();
  let connection: ChannelModel | undefined;

  async function consume(): Promise<void> {
    const opened = await connectTo(settings);
    opened.on("error", () => undefined);
    try {
      await receiveOn(await opened.createChannel());
    } catch (error) {
      await opened.close().catch(() => undefined);
      throw error;
    }
    opened.once("close", (error?: Error) => {
      if (!ending.signal.aborted) reconnect(error).catch(() => undefined);
    });
    connection = opened;
    // Closed while this one came about.
    if (ending.signal.aborted) await opened.close().catch(() => undefined);
  }

  async function receiveOn(channel: Channel): Promise<void> {
    channel.on("error", (error) => onTrouble(`consumer: ${error.message}`));
    await channel.assertExchange(EXCHANGE, "fanout", { durable: true });
    await channel.assertQueue(queue, { durable: true, arguments: { "x-expires": EXPIRES_MS } });
    await channel.bindQueue(queue, EXCHANGE, "");
    await channel.prefetch(PREFETCH);
    await channel.consume(queue, (message: ConsumeMessage | null) => {
      if (message === null) return;
      orders
        .receive(() => fromRabbitmq(message))
        .then(
          () => channel.ack(message),
          () => undefined, // The run is over.
        );
    });
  }

  async function reconnect(cause: Error | undefined): Promise<void> {
    onTrouble(`consumer: ${cause?.message ?? "the connection was closed"}`);
    while (!ending.signal.aborted) {
      try {
        await consume();
        return;
      } catch (error) {
        onTrouble(`consumer: ${error instanceof Error ? error.message : String(error)}`);
        await sleep(AGAIN_MS, undefined, { signal: ending.signal });
      }
    }
  }

  const broker = rabbitmq(settings);
  try {
    await consume();
  } catch (error) {
    // What it says about a wrong address or account helps more.
    try {
      await broker.check();
    } finally {
      await broker.close();
    }
    throw error;
  }
  return {
    broker,
    topic: TOPIC,
    label: `${brokerLabel(url)} exchange ${EXCHANGE}`,
    trouble: new Map(),
    async close() {
      ending.abort();
      await broker.close();
      await connection
        ?.createChannel()
        .then((channel) => channel.deleteQueue(queue))
        .catch(() => undefined);
      await connection?.close().catch(() => undefined);
    },
  };
}

/** A connection of amqplib to the first node that the URL names. */
async function connectTo({ url, username, password, tls = {} }: RabbitmqOptions): Promise<ChannelModel> {
  const server = new URL([url].flat()[0] ?? "");
  if (username !== undefined) server.username = encodeURIComponent(username);
  if (password !== undefined) server.password = encodeURIComponent(password);
  const { ca, cert, key, serverName, rejectUnauthorized = true } = tls;
  return await connect(server.href, {
    noDelay: true,
    rejectUnauthorized,
    ...(ca !== undefined && { ca: Buffer.from(ca) }),
    ...(cert !== undefined && { cert: Buffer.from(cert) }),
    ...(key !== undefined && { key: Buffer.from(key) }),
    ...(serverName !== undefined && { servername: serverName }),
  });
}
