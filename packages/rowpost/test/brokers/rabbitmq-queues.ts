/** Queues of one's own on a real RabbitMQ, and everything that arrives in them. */
import { randomBytes } from "node:crypto";
import { type Channel, type ChannelModel, type ConsumeMessage, connect, type Options } from "amqplib";
import { expect } from "vitest";
import { rabbitmq } from "../../src/brokers/rabbitmq/index.ts";
import { createReceivedLog, type ReceivedLog } from "../../src/testing/index.ts";
import { noDeadline, outgoing } from "./messages.ts";

/** A consumer with queues that no other test has. */
export interface TestQueues {
  readonly connection: ChannelModel;
  readonly channel: Channel;
  /** What arrived; a queue's name is the topic. */
  readonly log: ReceivedLog;
  /** A name that is not taken. */
  name(purpose: string): string;
  /** Makes a durable queue, which is deleted at the end, and returns its name. */
  create(purpose: string, queueArguments?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Makes an exchange, which is deleted at the end, and returns its name. */
  createExchange(type: "direct" | "topic" | "fanout", options?: Options.AssertExchange): Promise<string>;
  /** Writes what arrives in a queue into the log. */
  consume(queue: string): Promise<void>;
  /** Takes the next message out of a queue that nobody consumes. */
  take(queue: string): Promise<ConsumeMessage | undefined>;
  close(): Promise<void>;
}

/** A queue of a run that was killed is deleted by the server after this time without a consumer. */
const EXPIRES_MS = 600_000;

/** Connects to a server, `amqp://…`. */
export async function openTestQueues(url: string): Promise<TestQueues> {
  const connection = await connect(url, { noDelay: true });
  connection.on("error", () => undefined);
  const channel = await connection.createChannel();
  channel.on("error", () => undefined);
  const log = createReceivedLog();
  const queues: string[] = [];
  const exchanges: string[] = [];
  const name = (purpose: string): string => `rowpost-test-${purpose}-${randomBytes(6).toString("hex")}`;
  return {
    connection,
    channel,
    log,
    name,
    async create(purpose, queueArguments = {}) {
      const queue = name(purpose);
      await channel.assertQueue(queue, { durable: true, arguments: { "x-expires": EXPIRES_MS, ...queueArguments } });
      queues.push(queue);
      return queue;
    },
    async createExchange(type, options = {}) {
      const exchange = name(type);
      await channel.assertExchange(exchange, type, { durable: true, ...options });
      exchanges.push(exchange);
      return exchange;
    },
    async consume(queue) {
      const receive = (message: ConsumeMessage | null): void => {
        if (message !== null) log.add(queue, receivedFrom(message));
      };
      await channel.consume(queue, receive, { noAck: true });
    },
    async take(queue) {
      const message = await channel.get(queue, { noAck: true });
      return message === false ? undefined : ({ ...message, fields: message.fields } as unknown as ConsumeMessage);
    },
    async close() {
      for (const queue of queues) await channel.deleteQueue(queue);
      for (const exchange of exchanges) await channel.deleteExchange(exchange);
      await connection.close();
    },
  };
}

function receivedFrom({ content, properties }: ConsumeMessage) {
  const headers = Object.entries(properties.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return {
    body: content,
    headers: Object.fromEntries(headers) as Record<string, string>,
    contentType: String(properties.contentType),
    dedupeId: String(properties.messageId),
    receivedAtMs: Date.now(),
  };
}

/** Publishes messages with these keys as rowpost does. */
export async function publishTo(to: {
  readonly address: string;
  readonly queue: string;
  readonly keys: readonly string[];
}): Promise<void> {
  const broker = rabbitmq({ url: to.address });
  const messages = to.keys.map((key) => outgoing(key, { topic: to.queue }));
  const results = await broker.publish(messages, noDeadline());
  await broker.close();
  expect(results.map(({ status }) => status)).toEqual(to.keys.map(() => "sent"));
}
