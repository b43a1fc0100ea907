/** A Kafka for tests: topics, a consumer, and servers of one's own to kill and freeze. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import kafkajs, { type Admin, type EachBatchPayload, type Kafka, type KafkaMessage } from "kafkajs";
import { runsPlatformatic } from "../../src/brokers/kafka/load.ts";
import {
  type ArrivedMessage,
  createReceivedLog,
  createTcpProxy,
  type ReceivedLog,
  type TcpProxy,
} from "../../src/testing/index.ts";
import { killProcess } from "../own-process.ts";

/**
 * The clients that run on this Node.js, the one that is used by default last. @platformatic/kafka
 * is not installed here, because it refuses Node 20: `tools/test-matrix.sh` brings it.
 */
export const DRIVERS: readonly ("kafkajs" | "platformatic")[] =
  runsPlatformatic(process.versions.node) && process.env["ROWPOST_TEST_PEERS"] !== undefined
    ? ["kafkajs", "platformatic"]
    : ["kafkajs"];
// Here, and not within the time of the first test: it is many files, seconds on a busy machine.
if (DRIVERS.includes("platformatic")) await import("@platformatic/kafka");

/** A client of kafkajs for tests, quiet and patient. */
export function testClient(address: string): Kafka {
  return new kafkajs.Kafka({
    brokers: [address.replace(/^kafka:\/\//, "")],
    clientId: "rowpost-test",
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { initialRetryTime: 50, maxRetryTime: 300, retries: 100 },
  });
}

/** A name that no other test has. */
export function uniqueName(name: string): string {
  return `rowpost-test-${process.pid}-${randomBytes(3).toString("hex")}-${name}`;
}

/** Makes topics. Resolves when their partitions have leaders. */
export async function createTopics(
  address: string,
  topics: readonly { readonly topic: string; readonly numPartitions?: number; readonly maxBytes?: number }[],
): Promise<void> {
  const admin = testClient(address).admin();
  await admin.connect();
  try {
    await admin.createTopics({
      waitForLeaders: false,
      topics: topics.map(({ topic, numPartitions = 1, maxBytes }) => ({
        topic,
        numPartitions,
        configEntries: maxBytes === undefined ? [] : [{ name: "max.message.bytes", value: String(maxBytes) }],
      })),
    });
    await leadersOf(
      admin,
      topics.map(({ topic }) => topic),
    );
  } finally {
    await admin.disconnect();
  }
}

/** kafkajs' own wait for leaders fails while the broker has not heard of its new topic yet. */
async function leadersOf(admin: Admin, names: readonly string[]): Promise<void> {
  for (let look = 0; look < 300; look += 1) {
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [...names] });
      if (topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))) return;
    } catch (error) {
      if ((error as { type?: string }).type !== "UNKNOWN_TOPIC_OR_PARTITION") throw error;
    }
    await sleep(100);
  }
  throw new Error(`no leaders for ${names.join(", ")} within 30 s`);
}

/** Removes topics. */
export async function deleteTopics(address: string, topics: readonly string[]): Promise<void> {
  const admin = testClient(address).admin();
  await admin.connect();
  try {
    await admin.deleteTopics({ topics: [...topics] });
  } finally {
    await admin.disconnect();
  }
}

/** A record as kafkajs's consumer got it. */
export interface ConsumedRecord extends ArrivedMessage {
  /** `topic-partition@offset` */
  readonly place: string;
  readonly partition: number;
  readonly recordKey: string;
  /** Null is a tombstone. */
  readonly value: Buffer | null;
}

/** Reads topics from their beginning, all the time. */
export interface Reader {
  /** What the broker contract asks of a consumer. */
  readonly consume: ReceivedLog["consume"];
  /**
   * All records of a topic with a header `rowpost-key` that begins so, once there are `count`, in
   * the order of their partitions; what there is after 20 s.
   */
  records(topic: string, count: number, keyPrefix?: string): Promise<ConsumedRecord[]>;
  close(): Promise<void>;
}

/** Starts reading. The topics must exist. */
export async function createReader(address: string, topics: readonly string[]): Promise<Reader> {
  const log = createReceivedLog();
  const consumer = testClient(address).consumer({
    groupId: uniqueName("group"),
    maxWaitTimeInMs: 100,
    sessionTimeout: 6000,
    heartbeatInterval: 1000,
    retry: { initialRetryTime: 50, maxRetryTime: 300, retries: 1000 },
  });
  // A record that is read again, after the group was put together anew, has the same place.
  const seen = new Set<string>();
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  await consumer.run({
    async eachBatch({ batch: { topic, partition, messages } }) {
      for (const message of messages) {
        const record = recordOf(topic, partition, message);
        if (!seen.has(record.place)) log.add(topic, record);
        seen.add(record.place);
      }
    },
  });
  return {
    consume: log.consume,
    async records(topic, count, keyPrefix = "") {
      const found = (await log.consume({ topic, keyPrefix, count, withinMs: 20_000 })) as readonly ConsumedRecord[];
      return [...found].sort((a, b) => a.partition - b.partition);
    },
    close: () => consumer.disconnect(),
  };
}

function recordOf(
  topic: string,
  partition: number,
  { key, value, headers = {}, offset }: KafkaMessage,
): ConsumedRecord {
  const texts = Object.entries(headers).map(([name, text]) => [name.toLowerCase(), String(text)] as const);
  const names = Object.fromEntries(texts);
  return {
    place: `${topic}-${partition}@${offset}`,
    partition,
    recordKey: String(key),
    value,
    body: value ?? new Uint8Array(),
    headers: names,
    contentType: names["content-type"] ?? "application/json",
    receivedAtMs: Date.now(),
  };
}

/**
 * Reads a topic from its beginning to its present end. Resolves with the headers `rowpost-key`,
 * copies included, each partition in its order. Rejects when that takes longer than `withinMs`.
 */
export async function readAll(address: string, topic: string, withinMs: number): Promise<string[]> {
  const client = testClient(address);
  const admin = client.admin();
  await admin.connect();
  const ends = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  const count = ends.reduce((sum, { high }) => sum + Number(high), 0);
  // By offset: a record that is read again, after the group was put together anew, is none more.
  const partitions = ends.map(() => new Map<string, string>());
  const consumer = client.consumer({ groupId: uniqueName("ledger"), maxWaitTimeInMs: 100 });
  const read = (): number => partitions.reduce((sum, { size }) => sum + size, 0);
  let timer: NodeJS.Timeout | undefined;
  try {
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await new Promise<void>((resolve, reject) => {
      const late = (): void => reject(new Error(`${read()} of ${count} records of ${topic} within ${withinMs} ms`));
      timer = setTimeout(late, withinMs);
      if (count === 0) resolve();
      const eachBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
        for (const { headers, offset } of batch.messages)
          partitions[batch.partition]?.set(offset, String(headers?.["rowpost-key"]));
        if (read() >= count) resolve();
      };
      consumer.run({ eachBatch }).catch(reject);
    });
  } finally {
    clearTimeout(timer);
    await consumer.disconnect();
  }
  return partitions.flatMap((records) => [...records.values()]);
}

const SCRIPT = fileURLToPath(new URL("../../../../tools/services/kafka", import.meta.url));
const run = promisify(execFile);

/** A server of one's own. */
export interface PrivateServer
  extends Readonly<Record<"start" | "kill" | "freeze" | "thaw" | "remove", () => Promise<void>>> {
  /** `host:port`, plaintext, without login. */
  readonly address: string;
  readonly account: { readonly username: string; readonly password: string };
  /** Before a listener that asks for a login and sends clients back to the proxy. */
  readonly proxy: TcpProxy;
  /** `host:port`: TLS, and TLS with login. */
  readonly tlsAddress: string;
  readonly tlsLoginAddress: string;
  /** PEM file of its certificate, for localhost and 127.0.0.1. */
  readonly certificateFile: string;
}

/** Starts a server. Takes 6 to 15 s. */
export async function startPrivateServer(): Promise<PrivateServer> {
  const port = 24_000 + (process.pid % 1000) * 8;
  const folder = path.join(tmpdir(), `rowpost-test-kafka-${process.pid}`);
  const account = { username: "rowpost", password: "of-good-news" };
  const proxy = await createTcpProxy({ target: { port: port + 4 } });
  const listeners = [`SSL:${port + 2}`, `SASL_SSL:${port + 3}`, `SASL_PLAINTEXT:${port + 4}:${proxy.port}`];
  const env = {
    ...process.env,
    KAFKA_PORT: String(port),
    KAFKA_DATA: folder,
    KAFKA_LISTENERS: listeners.join(" "),
    KAFKA_USER: account.username,
    KAFKA_PASSWORD: account.password,
  };
  const verb = (name: string) => async (): Promise<void> => {
    await run(SCRIPT, [name], { env });
  };
  const server: PrivateServer = {
    address: `127.0.0.1:${port}`,
    account,
    proxy,
    tlsAddress: `127.0.0.1:${port + 2}`,
    tlsLoginAddress: `127.0.0.1:${port + 3}`,
    certificateFile: path.join(folder, "tls", "server.crt"),
    start: verb("start"),
    kill: () => killProcess(Number(readFileSync(path.join(folder, "server.pid"), "utf8"))),
    freeze: verb("freeze"),
    thaw: verb("thaw"),
    async remove() {
      await proxy.close();
      await run(SCRIPT, ["wipe"], { env });
    },
  };
  await server.start();
  return server;
}
