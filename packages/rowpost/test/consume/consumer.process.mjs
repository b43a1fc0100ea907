/**
 * A consumer in a process of its own: each message has an effect, a row in `effects`, and is told
 * to the parent from within its transaction, before the commit and the acknowledgment.
 *
 * Arguments as JSON in argv[2]: { kind, databaseUrl, … } and what the broker's own client needs.
 */
import { consumeKafka, consumeNats, consumeRabbitmq, consumeRedis, consumeRocketmq } from "../../dist/consume/index.js";
import { postgres } from "../../dist/databases/postgres/index.js";
import { createInbox } from "../../dist/inbox/index.js";

const { kind, databaseUrl, ...address } = JSON.parse(process.argv[2] ?? "{}");
const database = postgres({ url: databaseUrl });

const common = {
  inbox: createInbox({ database, consumer: "points" }),
  concurrency: 6,
  logger: "silent",
  handler: async ({ key }, { tx }) => {
    await tx.query("INSERT INTO effects (message) VALUES ($1)", [key]);
    process.send(key);
  },
};

const start = {
  async kafkajs({ brokers, topic, group }) {
    const { default: kafkajs } = await import("kafkajs");
    const kafka = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.NOTHING });
    const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6_000, maxWaitTimeInMs: 100 });
    await consumer.connect();
    return await consumeKafka({ ...common, consumer, topics: [topic] });
  },
  async rabbitmq({ url, queue }) {
    const amqplib = await import("amqplib");
    return await consumeRabbitmq({ ...common, queue, connect: () => amqplib.connect(url) });
  },
  async platformatic({ brokers, topic, group, client }) {
    const { Consumer } = await import(client);
    const consumer = new Consumer({
      clientId: "test",
      groupId: group,
      bootstrapBrokers: brokers,
      sessionTimeout: 6_000,
    });
    return await consumeKafka({ ...common, consumer, topics: [topic] });
  },
  async nats({ servers, stream, durable }) {
    const { connect } = await import("@nats-io/transport-node");
    return await consumeNats({ ...common, stream, durable, connect: () => connect({ servers }) });
  },
  async redis({ url, stream, group, claimAfterMs }) {
    const { Redis } = await import("ioredis");
    const client = new Redis(url, { lazyConnect: true });
    return await consumeRedis({ ...common, client, streams: [stream], group, claimAfterMs });
  },
  rocketmq: ({ endpoints, group, topic, invisibleMs }) =>
    consumeRocketmq({ ...common, endpoints, group, topics: [topic], invisibleMs }),
};

const consumption = await start[kind](address);
process.once("message", () => {
  void consumption.close().then(() => process.exit(0));
});
