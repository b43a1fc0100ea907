/**
 * The identity of messages that the adapters have published to the real brokers, out of what each
 * broker's usual client gives.
 */
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connectAsync as connectMqtt } from "mqtt";
import { afterEach, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import { http } from "../../src/brokers/http.ts";
import { kafka } from "../../src/brokers/kafka/index.ts";
import { mqtt } from "../../src/brokers/mqtt/index.ts";
import { nats } from "../../src/brokers/nats/index.ts";
import { rabbitmq } from "../../src/brokers/rabbitmq/index.ts";
import { redis } from "../../src/brokers/redis/index.ts";
import { rocketmq } from "../../src/brokers/rocketmq/index.ts";
import {
  fromKafka,
  fromMqtt,
  fromNats,
  fromQueue,
  fromRabbitmq,
  fromRedis,
  fromRocketmq,
  fromWebhook,
  type MqttPacket,
  type ReceivedMessage,
} from "../../src/inbox/index.ts";
import { createOutbox, createRelay, migrate } from "../../src/index.ts";
import { createQueue, queueBroker } from "../../src/queue.ts";
import { startHttpReceiver } from "../brokers/http-receiver.ts";
import { createTopics, DRIVERS, deleteTopics, testClient, uniqueName } from "../brokers/kafka-server.ts";
import { noDeadline, outgoing } from "../brokers/messages.ts";
import { uniqueTopic as uniqueMqttTopic } from "../brokers/mqtt-server.ts";
import { createAdmin as createNatsAdmin, uniqueName as uniqueStream } from "../brokers/nats-server.ts";
import { openTestQueues } from "../brokers/rabbitmq-queues.ts";
import { createAdmin as createRedisAdmin } from "../brokers/redis-server.ts";
import * as rocketmqServer from "../brokers/rocketmq-server.ts";
import { describeOnEach } from "../queue/places.ts";
import { describeWithService } from "../services.ts";

/** Plain ones, and with what brokers, headers and URLs give a meaning to. */
const IDENTITIES: readonly (readonly [type: string, key: string])[] = [
  ["order.paid", "4711"],
  ["订单.已支付", "单号 张𠮷"],
  ["a:b", "c%41:d, e|f"],
  ["tab\there", "line\nbreak \u0001"],
  ["Order.Paid", 'ORDER-1/é?x=1&y="2"'],
];

/** In the order of {@link IDENTITIES}. */
function messagesFor(topic: string): OutgoingMessage[] {
  return IDENTITIES.map(([type, key], index) => {
    const { headers } = outgoing(key, { type });
    return outgoing(key, { type, topic, headers: { ...headers, "rowpost-attempt": String(index + 1) } });
  });
}

const identities = (topic?: string): ReceivedMessage[] =>
  IDENTITIES.map(([type, key], index) => ({
    type,
    key,
    attempt: index + 1,
    ...(topic === undefined ? {} : { topic }),
  }));

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Resolves to the receipts. */
async function publish(broker: Broker, messages: readonly OutgoingMessage[]): Promise<string[]> {
  ends.push(() => broker.close());
  const results = await broker.publish(messages, noDeadline());
  expect(results.map(({ status }) => status)).toEqual(messages.map(() => "sent"));
  return results.map((result) => (result.status === "sent" ? String(result.messageId) : ""));
}

/** By attempt, which is the order in which they were published. */
function inOrder(received: readonly ReceivedMessage[]): ReceivedMessage[] {
  return received.toSorted((left, right) => (left.attempt ?? 0) - (right.attempt ?? 0));
}

const withIds = (expected: readonly ReceivedMessage[], ids: readonly string[]): ReceivedMessage[] =>
  expected.map((message, index) => ({ ...message, id: ids[index] }));

describeWithService("kafka", "identities", ({ address }) => {
  test.each(DRIVERS)("published by %s, read with kafkajs", { timeout: 60_000 }, async (driver) => {
    const topic = uniqueName("inbox");
    const brokers = new URL(address).host;
    await createTopics(address, [{ topic }]);
    ends.push(() => deleteTopics(address, [topic]));
    const receipts = await publish(kafka({ brokers, driver }), messagesFor(topic));
    const consumer = testClient(address).consumer({ groupId: uniqueName("inbox"), maxWaitTimeInMs: 100 });
    ends.push(() => consumer.disconnect());
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    // By offset: Kafka gives a record again when the group was put together anew.
    const received = new Map<string, ReceivedMessage>();
    const bare = new Map<string, ReceivedMessage>();
    await consumer.run({
      eachMessage: async (payload) => {
        received.set(payload.message.offset, fromKafka(payload));
        bare.set(payload.message.offset, fromKafka(payload.message));
      },
    });
    await expect.poll(() => received.size, { timeout: 30_000 }).toBe(IDENTITIES.length);
    expect(inOrder([...received.values()])).toEqual(withIds(identities(topic), receipts));
    expect(inOrder([...bare.values()])).toEqual(identities());
  });
});

describeWithService("rabbitmq", "identities", ({ address }) => {
  test("read with amqplib", async () => {
    const queues = await openTestQueues(address);
    ends.push(() => queues.close());
    const topic = await queues.create("inbox");
    await publish(rabbitmq({ url: address }), messagesFor(topic));
    const received: ReceivedMessage[] = [];
    await queues.channel.consume(topic, (message) => message !== null && received.push(fromRabbitmq(message)), {
      noAck: true,
    });
    await expect.poll(() => received.length, { timeout: 20_000 }).toBe(IDENTITIES.length);
    const ids = IDENTITIES.map(([type, key]) => `${type}:${key}`);
    expect(inOrder(received)).toEqual(withIds(identities(), ids));
  });
});

describeWithService("nats", "identities", ({ address }) => {
  test("read with a JetStream consumer", async () => {
    const { host } = new URL(address);
    const admin = await createNatsAdmin({ servers: host });
    ends.push(() => admin.close());
    const stream = uniqueStream("inbox");
    await admin.createStream({ name: stream, subjects: [`${stream}.>`] });
    ends.push(() => admin.deleteStream(stream));
    const topic = `${stream}.orders`;
    const receipts = await publish(nats({ servers: host }), messagesFor(topic));
    const manager = await jetstreamManager(admin.connection);
    await manager.consumers.add(stream, { durable_name: "inbox" });
    const consumer = await jetstream(admin.connection).consumers.get(stream, "inbox");
    const received: ReceivedMessage[] = [];
    for await (const message of await consumer.fetch({ max_messages: IDENTITIES.length, expires: 20_000 })) {
      received.push(fromNats(message));
    }
    expect(inOrder(received)).toEqual(withIds(identities(topic), receipts));
  });
});

describeWithService("mosquitto", "identities", ({ address }) => {
  test("read with MQTT.js", async () => {
    const topic = uniqueMqttTopic();
    const received: ReceivedMessage[] = [];
    const client = await connectMqtt(address, { protocolVersion: 5 });
    ends.push(() => client.endAsync());
    client.on("message", (_topic, _body, packet) => received.push(fromMqtt(packet as MqttPacket)));
    await client.subscribeAsync(topic, { qos: 1 });
    await publish(mqtt({ servers: address }), messagesFor(topic));
    await expect.poll(() => received.length).toBe(IDENTITIES.length);
    expect(inOrder(received)).toEqual(identities(topic));
  });
});

describeWithService("redis", "identities", ({ address }) => {
  test("read with XREADGROUP of ioredis, as texts and as buffers", async () => {
    const admin = createRedisAdmin(Number(new URL(address).port));
    ends.push(() => admin.disconnect());
    const topic = uniqueName("inbox");
    ends.push(() => admin.del(topic));
    const receipts = await publish(redis({ url: address }), messagesFor(topic));
    type Read = [stream: string, entries: [id: string, fields: string[]][]][];
    for (const group of ["texts", "buffers"] as const) await admin.xgroup("CREATE", topic, group, "0");
    const from = ["c", "COUNT", 100, "STREAMS", topic, ">"] as const;
    const texts = (await admin.xreadgroup("GROUP", "texts", ...from)) as Read;
    const buffers = (await admin.xreadgroupBuffer("GROUP", "buffers", ...from)) as unknown as Read;
    expect(buffers[0]?.[1][0]?.[1][0]).toBeInstanceOf(Buffer);
    for (const [[, entries] = ["", []]] of [texts, buffers]) {
      expect(inOrder(entries.map(fromRedis))).toEqual(withIds(identities(), receipts));
    }
  });
});

describe("identities over HTTP", () => {
  test("read from node:http's headers, and from those of fetch", async () => {
    const receiver = await startHttpReceiver();
    ends.push(() => receiver.close());
    await publish(http({ url: receiver.url }), messagesFor("orders"));
    const requests = receiver.requests.map(({ headers }) => headers);
    const received = inOrder(requests.map(fromWebhook));
    expect(received.map(({ id: _id, ...message }) => message)).toEqual(identities());
    expect(received[0]?.id).toBe("order%2Epaid:4711");
    const fetched = requests.map((headers) => new Headers(headers as Record<string, string>));
    expect(inOrder(fetched.map(fromWebhook))).toEqual(received);
  });
});

describeWithService("rocketmq", "identities", ({ address }) => {
  test("read with RocketMQ's own client", { timeout: 60_000 }, async () => {
    const server = rocketmqServer.serverAddress(address);
    const topic = rocketmqServer.uniqueName("inbox");
    await rocketmqServer.createTopic(server, topic);
    ends.push(() => rocketmqServer.deleteTopic(server, topic));
    const reader = await rocketmqServer.createOfficialReader(server, [topic]);
    ends.push(() => reader.close());
    const receipts = await publish(rocketmq({ endpoints: `127.0.0.1:${server.port}` }), messagesFor(topic));
    const views = await reader.waitFor(topic, (messages) => messages.length === IDENTITIES.length);
    expect(inOrder(views.map(fromRocketmq))).toEqual(withIds(identities(topic), receipts));
    const objects = views.map((view) => ({ ...view, properties: Object.fromEntries(view.properties) }));
    expect(inOrder(objects.map(fromRocketmq))).toEqual(withIds(identities(topic), receipts));
  });
});

describeOnEach("identities in the queue", (make) => {
  test("of messages that a relay has put there, and of those that were appended", async () => {
    const place = await make();
    ends.push(() => place.drop());
    const database = place.open();
    await migrate(database, { layout: database.defaultLayout });
    const queue = createQueue({ database });
    ends.push(() => queue.close());
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    const outbox = createOutbox({ database });
    await outbox.transaction((tx) =>
      outbox.enqueue(tx, { type: "order.paid", key: "4711", topic: "orders", body: {} }),
    );
    const relay = createRelay({ database, broker: queueBroker({ queue }) });
    expect(await relay.tick()).toMatchObject({ sent: 1 });
    await relay.stop();
    await queue.append([
      { topic: "orders", type: "order.paid", key: "4712", body: {} },
      { topic: "orders", key: "4713", body: {} },
    ]);
    const received: unknown[] = [];
    const consumer = await queue.consume({
      topic: "orders",
      group: "g",
      logger: "silent",
      retry: { maxAttempts: 1 },
      handler: (message) => {
        try {
          received.push(fromQueue(message));
        } catch (error) {
          received.push(error);
        }
      },
    });
    ends.push(() => consumer.stop());
    await expect.poll(() => received.length, { timeout: 20_000 }).toBe(3);
    const id = expect.stringMatching(/^\d+$/);
    expect(received).toContainEqual({ type: "order.paid", key: "4711", id, topic: "orders", attempt: 1 });
    expect(received).toContainEqual({ type: "order.paid", key: "4712", id, topic: "orders" });
    expect(received).toContainEqual(expect.objectContaining({ code: "MISSING_IDENTITY", missing: ["type"] }));
  });
});
