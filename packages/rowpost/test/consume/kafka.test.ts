/** rowpost/consume on Kafka, with each client that runs here. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { kafka } from "../../src/brokers/kafka/index.ts";
import {
  consumeKafka,
  type DeliveredMessage,
  type KafkaConsumeOptions,
  type KafkajsConsumer,
} from "../../src/consume/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox, type Inbox } from "../../src/inbox/index.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { createTopics, DRIVERS, deleteTopics, testClient, uniqueName } from "../brokers/kafka-server.ts";
import { noDeadline, outgoing } from "../brokers/messages.ts";
import { describeWithService } from "../services.ts";
import { type ConsumerPlace, describeConsumer } from "./cases.ts";

/** Where the package is, for a process that has it not beside it. */
function clientPath(): string | undefined {
  const folder = process.env["ROWPOST_TEST_PEERS"];
  return DRIVERS.includes("platformatic")
    ? pathToFileURL(createRequire(`${folder}/package.json`).resolve("@platformatic/kafka")).href
    : undefined;
}

interface OpenConsumer {
  readonly consumer: KafkaConsumeOptions["consumer"];
  readonly end: () => Promise<void>;
}

async function openConsumer(driver: (typeof DRIVERS)[number], address: string, groupId: string): Promise<OpenConsumer> {
  if (driver === "kafkajs") {
    const consumer = testClient(address).consumer({ groupId, sessionTimeout: 6_000, maxWaitTimeInMs: 100 });
    await consumer.connect();
    return { consumer, end: () => consumer.disconnect() };
  }
  const { Consumer } = await import("@platformatic/kafka");
  const bootstrapBrokers = [new URL(address).host];
  const consumer = new Consumer({ clientId: "test", groupId, bootstrapBrokers, sessionTimeout: 6_000 });
  return { consumer, end: () => consumer.close(true) };
}

describeWithService("kafka", "consume", ({ address }) => {
  async function makePlace(driver: (typeof DRIVERS)[number] = "kafkajs"): Promise<ConsumerPlace> {
    const brokers = [new URL(address).host];
    const topic = uniqueName("consume");
    const group = uniqueName("consume");
    await createTopics(address, [{ topic, numPartitions: 2 }]);
    const broker = kafka({ brokers, driver: "kafkajs" });
    const client = testClient(address);
    const admin = client.admin();
    await admin.connect();
    return {
      topic,
      broker,
      async publishForeign(body) {
        const producer = client.producer();
        await producer.connect();
        await producer.send({ topic, messages: [{ key: "k", value: body }] });
        await producer.disconnect();
      },
      async consume(options) {
        const { consumer, end } = await openConsumer(driver, address, group);
        const consumption = await consumeKafka({ ...options, consumer, topics: [topic] } as never);
        return {
          async close() {
            const closed = await consumption.close();
            await end();
            return closed;
          },
        };
      },
      async left() {
        const ends = await admin.fetchTopicOffsets(topic);
        const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
        const offsets = new Map(
          committed?.partitions.map((each) => [each.partition, Math.max(0, Number(each.offset))]),
        );
        return ends.reduce((sum, { partition, high }) => sum + Number(high) - (offsets.get(partition) ?? 0), 0);
      },
      address: { kind: driver, brokers, topic, group, client: clientPath() },
      async drop() {
        await admin.disconnect();
        await broker.close();
        await deleteTopics(address, [topic]);
      },
    };
  }

  for (const driver of DRIVERS) {
    const stays = driver === "platformatic";
    describeConsumer(`with ${driver}`, () => makePlace(driver), { keepsOrder: true, kills: 3, stays });
  }

  test.each(DRIVERS)(
    "one that goes back is not overtaken by later ones of its key, and keeps what is behind it uncommitted (%s)",
    async (driver) => {
      const place = await makePlace(driver);
      const database = sqlite({ file: ":memory:" });
      const inbox = createInbox({ database, consumer: "points" });
      await inbox.migrate();
      const keys = ["a-1", "b-1", "a-2", "b-2", "a-3"];
      await place.broker.publish(
        keys.map((key) => outgoing(key, { topic: place.topic, orderingKey: "one partition" })),
        noDeadline(),
      );
      const handled: string[] = [];
      let failures = 0;
      let isWell = false;
      const consumption = await place.consume({
        inbox,
        orderBy: ({ key }) => key.slice(0, 1),
        retry: { maxAttempts: 1, maxMs: 1 },
        logger: "silent",
        handler: ({ key }) => {
          if (key === "a-1" && !isWell) {
            failures += 1;
            throw new Error("not yet");
          }
          handled.push(key);
        },
      });
      await expect.poll(() => failures).toBeGreaterThanOrEqual(3);
      expect(handled.filter((key) => key.startsWith("a"))).toEqual([]);
      expect(await place.left(), "nothing behind it is committed").toBe(keys.length);
      isWell = true;
      await expect.poll(() => handled.length).toBe(keys.length);
      await consumption.close();
      expect(handled.filter((key) => key.startsWith("a"))).toEqual(["a-1", "a-2", "a-3"]);
      expect(handled.filter((key) => key.startsWith("b"))).toEqual(["b-1", "b-2"]);
      expect(await place.left()).toBe(0);
      await place.drop();
      await database.close();
    },
  );

  /** A topic with the message 4711. */
  async function topicWithOne(): Promise<{ topic: string; inbox: Inbox; drop: () => Promise<void> }> {
    const topic = uniqueName("consume");
    await createTopics(address, [{ topic }]);
    const database = sqlite({ file: ":memory:" });
    const inbox = createInbox({ database, consumer: "points" });
    await inbox.migrate();
    const broker = kafka({ brokers: new URL(address).host, driver: "kafkajs" });
    await broker.publish([outgoing("4711", { topic })], noDeadline());
    return {
      topic,
      inbox,
      async drop() {
        await broker.close();
        await database.close();
        await deleteTopics(address, [topic]);
      },
    };
  }

  test("a consumer that has crashed for good is told, and connected and run again", async () => {
    const { topic, inbox, drop } = await topicWithOne();
    const retry = { retries: 0, restartOnFailure: () => Promise.resolve(false) };
    const consumer = testClient(address).consumer({
      groupId: uniqueName("consume"),
      retry,
      maxWaitTimeInMs: 100,
      sessionTimeout: 6_000,
    });
    await consumer.connect();
    let crashes = 0;
    const crashing: KafkajsConsumer = {
      ...consumer,
      run: (options: Parameters<typeof consumer.run>[0]) =>
        consumer.run({
          ...options,
          async eachBatch(payload) {
            crashes += 1;
            if (crashes === 1) throw new Error("broken");
            await options?.eachBatch?.(payload);
          },
        }),
    };
    const lines: string[] = [];
    const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) };
    const handled: string[] = [];
    const handler = ({ key }: DeliveredMessage): unknown => handled.push(key);
    const consumption = await consumeKafka({ consumer: crashing, topics: [topic], inbox, logger, handler });
    await expect.poll(() => handled, { timeout: 60_000 }).toEqual(["4711"]);
    // Whatever else a client without retries takes for the end is told in the same words.
    expect(new Set(lines)).toEqual(new Set(["a consumer lost its connection and opens another one"]));
    expect(await consumption.close()).toEqual({ drained: true });
    await consumer.disconnect();
    await drop();
  });

  test("heartbeats go on while a handler runs", async () => {
    const { topic, inbox, drop } = await topicWithOne();
    const consumer = testClient(address).consumer({ groupId: uniqueName("consume"), heartbeatInterval: 100 });
    await consumer.connect();
    let beats = 0;
    let isRunning = false;
    consumer.on(consumer.events.HEARTBEAT, () => {
      if (isRunning) beats += 1;
    });
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const handler = async (): Promise<void> => {
      isRunning = true;
      await held;
    };
    const consumption = await consumeKafka({ consumer, topics: [topic], inbox, handler });
    await expect.poll(() => beats).toBeGreaterThanOrEqual(2);
    release();
    expect(await consumption.close()).toEqual({ drained: true });
    await consumer.disconnect();
    await drop();
  });
});
