/** `rowpost relay --confirmations`: what consumers have published to a topic, on each broker. */
import { AckPolicy, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Redis } from "ioredis";
import { rocketmq } from "rowpost/rocketmq";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createTopics, deleteTopics, testClient, uniqueName } from "../../rowpost/test/brokers/kafka-server.ts";
import { noDeadline, outgoing } from "../../rowpost/test/brokers/messages.ts";
import { openTestQueues } from "../../rowpost/test/brokers/rabbitmq-queues.ts";
import { createGroup, createTopic, deleteTopic, serverAddress } from "../../rowpost/test/brokers/rocketmq-server.ts";
import { describeWithService } from "../../rowpost/test/services.ts";
import { insertMessages, type Running, rowpostHere, startRowpost, temporaryFile } from "./command.ts";

let place: Awaited<ReturnType<typeof temporaryFile>>;
let type: string;
let relay: Running | undefined;
const ends: (() => unknown)[] = [];

beforeEach(async () => {
  place = await temporaryFile();
  expect(await rowpostHere(["migrate", "--database", place.url])).toMatchObject({ code: 0 });
  const database = sqlite({ file: place.file });
  await insertMessages(database, { count: 4, topic: "orders", prefix: "a" });
  const session = await database.connect({ purpose: "tool" });
  await session.run({ name: "test", text: "UPDATE local_message SET state = 2", params: [] });
  const { rows } = await session.run({ name: "test", text: "SELECT message_type AS t FROM local_message", params: [] });
  type = String(rows[0]?.["t"]);
  await session.close();
  await database.close();
});
afterEach(async () => {
  relay?.child.kill("SIGTERM");
  await relay?.finished;
  relay = undefined;
  for (const end of ends.splice(0).reverse()) await end();
  await place.remove();
});

function start(...args: string[]): Running {
  relay = startRowpost(["relay", "--database", place.url, ...args]);
  return relay;
}

/** Keys that are consumed. */
async function consumed(): Promise<string[]> {
  const { stdout } = await rowpostHere(["list", "--database", place.url, "--state", "consumed", "--json"]);
  return (JSON.parse(stdout) as { key: string }[]).map(({ key }) => key).toSorted();
}

/** One report, a list with one for nobody and one that is none, and two more that are none. */
const bodies = (): string[] => [
  JSON.stringify({ type, key: "a-0" }),
  JSON.stringify([
    { type, key: "a-1" },
    { type, key: "a-2", extra: 1 },
    { type, key: "gone" },
  ]),
  "{",
  JSON.stringify({ type: 7 }),
  JSON.stringify({ type, key: "a-3" }),
];

/** Those of them that are none, as the log shows them. */
const wrong = (): string[] => [JSON.stringify({ type, key: "a-2", extra: 1 }), "{", JSON.stringify({ type: 7 })];

/** Each once: a broker may give a message again, and it is dropped each time that it comes. */
function dropped(): string[] {
  const whole = relay?.stderr().split("\n").slice(0, -1) ?? [];
  const told = whole.filter((line) => line.includes("is no confirmation, and is dropped"));
  return [...new Set(told.map((line) => String((JSON.parse(line) as { body?: unknown }).body)))].toSorted();
}

/** Waits until all of them were read, ends the relay, and looks. */
async function check(): Promise<void> {
  await expect.poll(consumed).toEqual(["a-0", "a-1", "a-3"]);
  await expect.poll(dropped).toEqual(wrong().toSorted());
  await relay?.printed("confirmed messages are neither in the table nor in its archive");
  relay?.child.kill("SIGTERM");
  expect((await relay?.finished)?.code).toBe(0);
}

describeWithService("rabbitmq", "confirmations", ({ address }) => {
  test("are read from a queue, also one that is made only later, and acknowledged", async () => {
    const queues = await openTestQueues(address);
    ends.push(() => queues.close());
    const name = queues.name("confirm");
    await start("--broker", address, "--confirmations", name).printed("the confirmation topic cannot be read");
    await queues.channel.assertQueue(name, { durable: true });
    ends.push(() => queues.channel.deleteQueue(name));
    for (const body of bodies()) queues.channel.sendToQueue(name, Buffer.from(body));
    await check();
    expect((await queues.channel.checkQueue(name)).messageCount).toBe(0);
  });
});

describeWithService("kafka", "confirmations", ({ address }) => {
  test("are read from a topic, and committed", async () => {
    const topic = uniqueName("confirm");
    await createTopics(address, [{ topic, numPartitions: 2 }]);
    ends.push(() => deleteTopics(address, [topic]));
    const client = testClient(address);
    const producer = client.producer();
    await producer.connect();
    await producer.send({ topic, messages: bodies().map((value) => ({ value })) });
    await producer.disconnect();
    start(
      ...["--broker", "memory:", "--confirmations", topic],
      ...["--confirmations-broker", address, "--confirmations-group", topic],
    );
    await check();
    const admin = client.admin();
    await admin.connect();
    const [committed] = await admin.fetchOffsets({ groupId: topic, topics: [topic] });
    const written = await admin.fetchTopicOffsets(topic);
    await admin.disconnect();
    // Not 5: the test's own producer repeats what was not answered in time.
    const total = (list: readonly { offset: string }[]): number =>
      list.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
    expect(total(written)).toBeGreaterThanOrEqual(5);
    expect(total(committed?.partitions ?? [])).toBe(total(written));
  });
});

describeWithService("rocketmq", "confirmations", ({ address }) => {
  test("are read from a topic, each for as many consumers as have to confirm", async () => {
    const server = serverAddress(address);
    const topic = await createTopic(server, uniqueName("confirm"));
    ends.push(() => deleteTopic(server, topic).catch(() => undefined));
    const group = await createGroup(server, uniqueName("confirm"));
    const broker = rocketmq({ endpoints: new URL(address).host });
    ends.push(() => broker.close());
    const publish = async (some: readonly string[]): Promise<void> => {
      const results = await broker.publish(
        some.map((body, index) => outgoing(`c-${index}`, { topic, body })),
        noDeadline(),
      );
      expect(results.map(({ status }) => status)).toEqual(some.map(() => "sent"));
    };
    start(
      ...["--broker", address, "--confirmations", topic, "--confirmations-group", group],
      ...["--consumers", `${type}=stock,billing`],
    );
    await publish(["billing", "stock"].map((consumer) => JSON.stringify({ type, key: "a-2", consumer })));
    await expect.poll(consumed).toEqual(["a-2"]);
    await publish([JSON.stringify({ type, key: "a-1", consumer: "stock" }), JSON.stringify({ type, key: "a-0" })]);
    await relay?.printed("is no confirmation, and is dropped");
    expect(await consumed()).toEqual(["a-2"]);
  });
});

describeWithService("nats", "confirmations", ({ address }) => {
  test("are read from a stream by its durable consumer, also one that is made only later, and acknowledged", async () => {
    const connection = await connect({ servers: address });
    ends.push(() => connection.close());
    const manager = await jetstreamManager(connection);
    const stream = uniqueName("confirm");
    await manager.streams.add({ name: stream, subjects: [stream] });
    ends.push(() => manager.streams.delete(stream));
    await start("--broker", address, "--confirmations", stream).printed("the confirmation topic cannot be read");
    const durable = { durable_name: "rowpost-confirmations", ack_policy: AckPolicy.Explicit };
    await manager.consumers.add(stream, durable);
    for (const body of bodies()) await connection.request(stream, body);
    await check();
    const left = await manager.consumers.info(stream, durable.durable_name);
    expect(left).toMatchObject({ num_pending: 0, num_ack_pending: 0 });
  });
});

describeWithService("redis", "confirmations", ({ address }) => {
  test("are read from a stream, in a group that is made, and acknowledged", async () => {
    const redis = new Redis(address);
    ends.push(() => redis.disconnect());
    const topic = uniqueName("confirm");
    const stream = `shop:${topic}`;
    ends.push(() => redis.del(stream));
    for (const body of bodies()) await redis.xadd(stream, "*", "body", body);
    start("--broker", `${address}?prefix=shop:`, "--confirmations", topic);
    await check();
    const [group] = (await redis.xinfo("GROUPS", stream)) as unknown[][];
    expect(group).toEqual(expect.arrayContaining(["rowpost-confirmations", "pending", 0, "lag", 0]));
  });
});

describe("confirmations", () => {
  test("are read from the message queue in the same database", async () => {
    const queue = (...args: string[]): ReturnType<typeof rowpostHere> =>
      rowpostHere(["queue", ...args, "--database", place.url]);
    await queue("create", "confirmed");
    for (const [index, body] of bodies().entries()) {
      const mediaType = index % 2 === 0 ? "text/plain" : "application/json";
      const sent = await queue("send", "confirmed", body, "--content-type", mediaType);
      expect(sent).toMatchObject({ code: 0 });
    }
    start("--broker", "queue:", "--confirmations", "confirmed");
    await check();
    expect((await queue("groups", "confirmed", "--json")).stdout).toContain("rowpost-confirmations");
  });

  test("wrong options are refused before anything is opened", async () => {
    for (const [args, words] of [
      [["--broker", "memory:", "--confirmations", "c"], "nothing can be read from memory"],
      [["--broker", "https://x.test/hook", "--confirmations", "c"], "POST /confirmations"],
      [["--broker", "memory:", "--confirmations-broker", "queue:"], "without --confirmations"],
      [["--broker", "queue:", "--confirmations", "c", "--once"], "--once"],
      [["--route", "a=memory:", "--confirmations", "c"], "--confirmations-broker"],
      [["--broker", "memory:", "--consumers", "t=a"], "--confirmations"],
    ] as const) {
      const { code, stderr } = await rowpostHere(["relay", "--database", place.url, ...args]);
      expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(words) });
    }
  });
});
