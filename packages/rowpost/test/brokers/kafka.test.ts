/**
 * What the Kafka broker does beyond the contract, with each client that runs on this Node.js:
 * places, limits, topics that go, clients of the user's.
 */
import kafkajs from "kafkajs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { kafka } from "../../src/brokers/kafka/index.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import {
  type ConsumedRecord,
  createReader,
  createTopics,
  DRIVERS,
  deleteTopics,
  type Reader,
  testClient,
  uniqueName,
} from "./kafka-server.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { countsWithCode as counts, endsByItself } from "./outcomes.ts";

describeWithService("kafka", "the Kafka broker", (service) => {
  const address = service.address.replace("kafka://", "");
  const topics = { places: uniqueName("places"), small: uniqueName("small"), ledger: uniqueName("ledger") };
  let reader: Reader;

  beforeAll(async () => {
    await createTopics(address, [
      { topic: topics.places, numPartitions: 3 },
      { topic: topics.small, numPartitions: 2, maxBytes: 20_000 },
      { topic: topics.ledger, numPartitions: 2 },
    ]);
    reader = await createReader(address, Object.values(topics));
  });

  afterAll(async () => {
    await reader?.close();
    await deleteTopics(address, Object.values(topics));
  });

  // A client of kafkajs that is handed in is used in another way than one of ours.
  describe.each([...DRIVERS, "given-kafkajs"] as const)("with %s", (driver) => {
    let broker: Broker;
    beforeAll(() => {
      broker =
        driver === "given-kafkajs" ? kafka({ client: testClient(address) }) : kafka({ brokers: address, driver });
    });
    afterAll(() => broker?.close());

    const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
      outgoing(`${driver}-${key}`, { topic: topics.places, ...changes });

    test("each receipt is the place where a consumer finds that very record", async () => {
      const batches = Array.from({ length: 4 }, (_, call) =>
        Array.from({ length: 150 }, (_each, index) => message(`p-${call}-${index}`)),
      );
      const results = await Promise.all(batches.map((batch) => broker.publish(batch, noDeadline())));
      const receipts = new Map(
        batches.flat().map(({ key }, index) => [key, receiptOf(results.flat()[index])] as const),
      );
      const records = await reader.records(topics.places, 600, `${driver}-p-`);
      expect(records).toHaveLength(600);
      for (const { headers, place, recordKey } of records) {
        expect(place).toBe(receipts.get(headers["rowpost-key"] ?? ""));
        expect(recordKey).toBe(headers["rowpost-key"]);
      }
      expect(new Set(records.map(({ partition }) => partition)).size).toBe(3);
    });

    test("the key of a record is the ordering key; an empty body is not a tombstone", async () => {
      const sent = await broker.publish(
        [message("k-1", { orderingKey: "客户 7" }), message("k-2", { body: "" })],
        noDeadline(),
      );
      expect(counts(sent)).toEqual({ sent: 2 });
      const records = await reader.records(topics.places, 2, `${driver}-k-`);
      const byKey = new Map(records.map((record) => [record.headers["rowpost-key"], record]));
      expect(byKey.get(`${driver}-k-1`)?.recordKey).toBe("客户 7");
      expect(byKey.get(`${driver}-k-2`)?.value).toEqual(Buffer.alloc(0));
    });

    test("keys stay on the partitions where kafkajs and Kafka's Java producer put them", async () => {
      const keys = Array.from({ length: 60 }, (_, index) => `${driver}-j-${index}`);
      const ours = await broker.publish(
        keys.map((key) => outgoing(key, { topic: topics.places })),
        noDeadline(),
      );
      const producer = testClient(address).producer({
        allowAutoTopicCreation: false,
        createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
      });
      await producer.connect();
      try {
        for (const [index, key] of keys.entries()) {
          const [theirs] = await producer.send({ topic: topics.places, messages: [{ key, value: "theirs" }] });
          expect(receiptOf(ours[index])).toMatch(new RegExp(`-${theirs?.partition}@`));
        }
      } finally {
        await producer.disconnect();
      }
    });

    test("a topic with a smaller limit: culprits fail alone, neighbors are stored once, followers of a culprit's key wait", async () => {
      const big = "x".repeat(30_000);
      const batch = Array.from({ length: 80 }, (_, index) => {
        const body = [13, 14, 55].includes(index) ? big : "y".repeat(900);
        const orderingKey = index % 8 === 7 || index === 55 ? "keyed" : undefined;
        return message(`s-${index}`, { topic: topics.small, body, orderingKey });
      });
      const results = await broker.publish(batch, noDeadline());
      for (const [index, result] of results.entries()) {
        const said = `${index}: ${JSON.stringify(result)}`;
        if ([13, 14, 55].includes(index)) {
          expect(result, said).toMatchObject({
            status: "failed",
            scope: "message",
            retriable: false,
            code: "MESSAGE_TOO_LARGE",
          });
        } else if (index % 8 === 7 && index > 55) expect(result.status, said).toBe("notStarted");
        else expect(result.status, said).toBe("sent");
      }
      const sent = batch.filter((_, index) => results[index]?.status === "sent").map(({ key }) => key);
      const records = await reader.records(topics.small, sent.length, `${driver}-s-`);
      expect(records).toHaveLength(sent.length);
      expect(new Set(records.map(({ headers }) => headers["rowpost-key"]))).toEqual(new Set(sent));
      for (const record of records) expect(record.place).toBe(receiptOf(resultOf(batch, results, record)));
    });

    test("texts arrive whole, however long and in whatever script", async () => {
      // Lengths around those where Kafka's length of a length changes.
      const texts = [0, 1, 21, 22, 63, 64, 2730, 2731, 8191, 8192].flatMap((length) =>
        ["x", "é", "客", "😀"].map((letter) => letter.repeat(length)),
      );
      const batch = texts.map((text, index) => {
        const { headers } = message(`t-${index}`);
        return message(`t-${index}`, {
          body: text,
          headers: { ...headers, note: text, [`客-${text.slice(0, 70)}`]: "" },
        });
      });
      expect(counts(await broker.publish(batch, noDeadline()))).toEqual({ sent: batch.length });
      const records = await reader.records(topics.places, batch.length, `${driver}-t-`);
      expect(records).toHaveLength(batch.length);
      for (const { headers, body } of records) {
        const own = batch.find(({ key }) => key === headers["rowpost-key"]);
        expect(headers).toEqual(own?.headers);
        expect(Buffer.from(body).toString()).toBe(own?.body);
      }
    });

    test("bodies that together are above the limit go out in several batches", async () => {
      const batch = Array.from({ length: 5 }, (_, index) =>
        message(`l-${index}`, { topic: topics.ledger, orderingKey: "one", body: `${index}${"z".repeat(400_000)}` }),
      );
      expect(counts(await broker.publish(batch, noDeadline()))).toEqual({ sent: 5 });
      const records = await reader.records(topics.ledger, 5, `${driver}-l-`);
      expect(records.map(({ body }) => String(body.subarray(0, 1)))).toEqual(["0", "1", "2", "3", "4"]);
    });

    test("an unknown topic is told each time, and not waited for", async () => {
      for (const round of [1, 2, 3]) {
        const publishing = broker.publish([message(`u-${round}`, { topic: uniqueName("nowhere") })], noDeadline());
        const [result] = await endsByItself("publish", publishing);
        expect(result).toMatchObject({
          status: "failed",
          scope: "message",
          retriable: true,
          code: "UNKNOWN_TOPIC_OR_PARTITION",
        });
      }
    }, 60_000);

    test("a topic that is deleted is away, the others go on; made again it works again", async () => {
      const gone = uniqueName("gone");
      await createTopics(address, [{ topic: gone }]);
      expect(counts(await broker.publish([message("g-1", { topic: gone })], noDeadline()))).toEqual({ sent: 1 });
      await deleteTopics(address, [gone]);
      const publish = (round: number): Promise<PublishResult[]> =>
        broker.publish([message(`g-x${round}`, { topic: gone }), message(`g-y${round}`)], noDeadline());
      for (const round of [1, 2, 3]) {
        let results = await publish(round);
        // The controller has deleted it; a busy broker takes records until it has heard of that.
        while (round === 1 && results[0]?.status === "sent") results = await publish(round);
        expect(results[0], `round ${round}: ${JSON.stringify(results)}`).toMatchObject({
          status: "failed",
          code: "UNKNOWN_TOPIC_OR_PARTITION",
          scope: "destination",
        });
        expect(results[1]?.status).toBe("sent");
      }
      await createTopics(address, [{ topic: gone, numPartitions: 2 }]);
      const again = async (): Promise<unknown> =>
        counts(await broker.publish([message("g-2", { topic: gone })], noDeadline()));
      await expect.poll(again, { timeout: 30_000 }).toEqual({ sent: 1 });
      await deleteTopics(address, [gone]);
    });
  });

  test.each(DRIVERS)("a client of %s of the user's is used and left open", async (driver) => {
    const message = (key: string, topic = topics.places): OutgoingMessage => outgoing(`${driver}-${key}`, { topic });
    const own = await openClient(driver, address);
    try {
      const mine = kafka({ client: own.client });
      await mine.check();
      expect(counts(await mine.publish([message("c-1"), message("c-2")], noDeadline()))).toEqual({ sent: 2 });
      expect(counts(await mine.publish([message("c-3", uniqueName("nowhere"))], noDeadline()))).toEqual({
        "message UNKNOWN_TOPIC_OR_PARTITION": 1,
      });
      await mine.close();
      await own.prove(topics.places);
    } finally {
      await own.close();
    }
  });
});

describeWithService("kafka", "a client of kafkajs that connects without end", (service) => {
  const port = Number(service.address.split(":").at(-1));
  const topic = uniqueName("patient");

  beforeAll(() => createTopics(service.address, [{ topic }]));
  afterAll(() => deleteTopics(service.address, [topic]));

  interface Patient {
    readonly proxy: TcpProxy;
    readonly broker: Broker;
    readonly publish: () => Promise<unknown>;
    /** Attempts to connect so far. */
    readonly attempts: () => number;
  }

  /** A broker of such a client, which is refused by the proxy that it knows. */
  async function patient(): Promise<Patient> {
    const proxy = await createTcpProxy({ target: { port } });
    await proxy.refuse();
    const client = new kafkajs.Kafka({
      brokers: [`127.0.0.1:${proxy.port}`],
      logLevel: kafkajs.logLevel.NOTHING,
      retry: { retries: 1e9, initialRetryTime: 50, maxRetryTime: 100 },
    });
    const clusters = vi.spyOn(client as unknown as Record<symbol, () => object>, createClusterOf(client));
    const broker = kafka({ client, connectTimeoutMs: 500 });
    return {
      proxy,
      broker,
      publish: async () => counts(await broker.publish([outgoing(uniqueName("p"), { topic })], noDeadline())),
      attempts: () => clusters.mock.calls.length,
    };
  }

  test("connects once, however many calls wait for it, and is used when it has", async () => {
    const { proxy, broker, publish, attempts } = await patient();
    try {
      for (let call = 0; call < 3; call += 1) expect(await publish()).toEqual({ "connection CONNECT_TIMEOUT": 1 });
      expect(attempts()).toBe(1);
      await proxy.accept();
      await expect.poll(publish, { timeout: 30_000 }).toEqual({ sent: 1 });
      expect(attempts()).toBe(1);
    } finally {
      await broker.close();
      await proxy.close();
    }
  });

  test("is not waited for by close, and closed when it comes about afterwards", async () => {
    const { proxy, broker, publish } = await patient();
    try {
      expect(await publish()).toEqual({ "connection CONNECT_TIMEOUT": 1 });
      await endsByItself("close", broker.close());
      await proxy.accept();
      await expect.poll(() => proxy.bytesToTarget(), { timeout: 30_000 }).toBeGreaterThan(0);
      await expect.poll(() => proxy.connectionCount(), { timeout: 30_000 }).toBe(0);
    } finally {
      await proxy.close();
    }
  }, 60_000);
});

/** The symbol under which kafkajs keeps what makes its clusters. */
function createClusterOf(client: kafkajs.Kafka): symbol {
  const found = Object.getOwnPropertySymbols(client).find(({ description }) => description?.endsWith("createCluster"));
  if (found === undefined) throw new Error("kafkajs is built differently");
  return found;
}

interface OwnClient {
  readonly client: NonNullable<Parameters<typeof kafka>[0]["client"]>;
  /** Rejects when the client was closed. */
  prove(topic: string): Promise<unknown>;
  close(): Promise<unknown>;
}

async function openClient(driver: "kafkajs" | "platformatic", address: string): Promise<OwnClient> {
  if (driver === "kafkajs") {
    const client = testClient(address);
    const producer = client.producer();
    await producer.connect();
    return {
      client,
      prove: (topic) => producer.send({ topic, messages: [{ value: "still open" }] }),
      close: () => producer.disconnect(),
    };
  }
  const { Producer } = await import("@platformatic/kafka");
  const client = new Producer({ clientId: "users-own", bootstrapBrokers: [address] });
  return {
    client,
    prove: (topic) => client.send({ messages: [{ topic, value: Buffer.from("still open") }], acks: -1 }),
    close: async () => client.close(),
  };
}

function receiptOf(result: PublishResult | undefined): string {
  return result?.status === "sent" ? result.messageId : JSON.stringify(result);
}

function resultOf(
  batch: readonly OutgoingMessage[],
  results: readonly PublishResult[],
  { headers }: ConsumedRecord,
): PublishResult | undefined {
  return results[batch.findIndex(({ key }) => key === headers["rowpost-key"])];
}
