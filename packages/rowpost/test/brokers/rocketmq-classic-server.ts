/**
 * RocketMQ as classic clients see it, 4.9 and 5.5: servers of a test's own, and a reader on the
 * classic protocol. Topics and groups are made by `rocketmq-server.ts`.
 */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type AbortScope, createAbortScope } from "../../src/brokers/publishing/abort-scope.ts";
import type { RocketmqClassicOptions } from "../../src/brokers/rocketmq-classic/index.ts";
import { connectTo, type Link } from "../../src/brokers/rocketmq-classic/link.ts";
import {
  type ConsumedMessage,
  type Keys,
  QUEUES,
  type Reader,
  readerOf,
  runBy,
  type ServerAddress,
  startPrivateServer,
  uniqueName,
} from "./rocketmq-server.ts";

/** Names of the services, as `describeWithService` takes them. */
export const CLASSIC_SERVICES = ["rocketmq4", "rocketmq"] as const;

/** Where a server's two parts listen on 127.0.0.1. */
export interface ClassicAddress {
  readonly nameServerPort: number;
  readonly brokerPort: number;
  readonly keys?: Keys | undefined;
}

/** The shared server of the test run. */
export function sharedServer(service: (typeof CLASSIC_SERVICES)[number], address: string): ClassicAddress {
  const port = Number(/:(\d+)/.exec(address)?.[1]);
  if (service === "rocketmq4") return { nameServerPort: port, brokerPort: port + 1035 };
  return { nameServerPort: port + 1795, brokerPort: port + 2830 };
}

/** As the functions of `rocketmq-server.ts` take it, to make topics there. */
export function forAdmin({ brokerPort, keys }: ClassicAddress): ServerAddress {
  return { port: brokerPort - 2830, keys };
}

/** Options that lead to a server. */
export function optionsFor({ nameServerPort, keys }: ClassicAddress): RocketmqClassicOptions {
  return { nameServers: `127.0.0.1:${nameServerPort}`, ...keys };
}

/** A server of one's own. */
export interface ClassicServer extends ClassicAddress {
  readonly keys: Keys;
  /** PEM file of its certificate, for localhost and 127.0.0.1. */
  readonly certificateFile: string;
  start(): Promise<void>;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends it for good and deletes its data. */
  remove(): Promise<void>;
}

const SCRIPT = fileURLToPath(new URL("../../../../tools/services/rocketmq4", import.meta.url));
const run = promisify(execFile);

/** A message as the official Java client for the classic protocol reads it. */
export interface JavaMessage {
  readonly id: string;
  readonly tag: string | null;
  readonly keys: string | null;
  readonly base64: string;
  readonly properties: Readonly<Record<string, string>>;
  readonly queue: number;
  readonly offset: number;
  readonly born: number;
}

/** The first messages of a topic, read by Java. */
export async function readByJava(
  { nameServerPort, keys }: ClassicAddress,
  topic: string,
  count: number,
): Promise<JavaMessage[]> {
  const env = {
    ...process.env,
    ROCKETMQ4_PORT: String(nameServerPort),
    ...(keys && { ROCKETMQ4_ACCESS_KEY: keys.accessKey, ROCKETMQ4_SECRET_KEY: keys.secretKey }),
  };
  const words = ["consume", topic, "--group", uniqueName("java"), "--count", String(count)];
  const { stdout } = await run(SCRIPT, words, { env, maxBuffer: 64 * 1024 * 1024 });
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as JavaMessage);
}

/**
 * Starts a server with access control, plaintext and TLS on each port; of 4.9 with more lines for
 * its broker's configuration, and as many as there are numbers for `place` side by side.
 */
export async function startClassicServer(
  service: (typeof CLASSIC_SERVICES)[number],
  brokerLines: readonly string[] = [],
  place = 0,
): Promise<ClassicServer> {
  if (service === "rocketmq4") return await startPrivate49(brokerLines, place);
  const server = await startPrivateServer();
  return { ...server, nameServerPort: server.port + 1797, brokerPort: server.port + 2830 };
}

/** Two 4.9 as one cluster: each is a name server, and a primary that both name servers know. */
export async function startClassicPair(): Promise<readonly [ClassicServer, ClassicServer]> {
  const nameServers = [0, 1].map((place) => `127.0.0.1:${private49Ports(place).nameServerPort}`).join(";");
  const lines = (name: string): string[] => [`brokerName=${name}`, `namesrvAddr=${nameServers}`];
  const first = await startPrivate49(lines("broker-a"), 0);
  try {
    return [first, await startPrivate49(lines("broker-b"), 1)];
  } catch (error) {
    await first.remove();
    throw error;
  }
}

/** The ports of a private 4.9: of neighboring process ids apart, and of places further apart. */
function private49Ports(place: number): { readonly nameServerPort: number; readonly brokerPort: number } {
  const nameServerPort = 24_000 + 4 * (process.pid % 425) + 4000 * place;
  return { nameServerPort, brokerPort: nameServerPort + 2000 };
}

async function startPrivate49(brokerLines: readonly string[], place: number): Promise<ClassicServer> {
  const { nameServerPort, brokerPort } = private49Ports(place);
  const folder = path.join(tmpdir(), `rowpost-test-rocketmq4-${process.pid}-${place}`);
  const keys: Keys = { accessKey: "rowpost", secretKey: "of-good-news" };
  const env = {
    ...process.env,
    ROCKETMQ4_PORT: String(nameServerPort),
    ROCKETMQ4_BROKER_PORT: String(brokerPort),
    ROCKETMQ4_DATA: path.join(folder, "data"),
    ROCKETMQ4_RUN: path.join(folder, "run"),
    ROCKETMQ4_ACCESS_KEY: keys.accessKey,
    ROCKETMQ4_SECRET_KEY: keys.secretKey,
    ROCKETMQ4_BROKER_EXTRA: brokerLines.join("\n"),
  };
  const server: ClassicServer = { nameServerPort, brokerPort, keys, ...runBy(SCRIPT, folder, env) };
  await server.start();
  return server;
}

const MAKE_TOPIC = 17;
const UPDATE_BROKER = 25;

/** Takes writes away from a topic made by `createTopic`. */
export async function makeReadOnly(server: ClassicAddress, topic: string): Promise<void> {
  await tell(server, MAKE_TOPIC, {
    topic,
    defaultTopic: "TBW102",
    readQueueNums: String(QUEUES),
    writeQueueNums: String(QUEUES),
    perm: "4",
    topicFilterType: "SINGLE_TAG",
    topicSysFlag: "0",
    order: "false",
  });
}

/** Changes a broker's configuration as it runs. */
export async function configureBroker(
  server: ClassicAddress,
  changes: Readonly<Record<string, string>>,
): Promise<void> {
  const lines = Object.entries(changes).map(([name, value]) => `${name}=${value}\n`);
  await tell(server, UPDATE_BROKER, {}, Buffer.from(lines.join("")));
}

async function tell(
  server: ClassicAddress,
  code: number,
  fields: Readonly<Record<string, string>>,
  body?: Buffer,
): Promise<void> {
  const link = await linkTo(server, createAbortScope());
  const { answer } = await link.exchange({ code, fields, body }, { timeoutMs: 10_000 });
  link.end("CLOSED", "the request was answered");
  if (answer?.code !== 0) throw new Error(`RocketMQ refused request ${code}: ${answer?.code} ${answer?.remark}`);
}

async function linkTo({ brokerPort, keys }: ClassicAddress, closing: AbortScope): Promise<Link> {
  const made = await connectTo(
    { host: "127.0.0.1", port: brokerPort },
    { tls: undefined, connectTimeoutMs: 3000, closing, keys: keys && { ...keys, sessionToken: undefined } },
  );
  if (!("isUsable" in made)) throw new Error(made.reason);
  return made;
}

const PULL_MESSAGE = 11;
const FOUND = 0;
/** The request brings its own subscription, and is answered at once. */
const SUBSCRIPTION = 4;

/** Reads topics made by `createTopic` from their beginning, by pull requests. */
export async function createClassicReader(server: ClassicAddress, topics: readonly string[]): Promise<Reader> {
  const group = uniqueName("reader");
  const lifetime = createAbortScope();
  let link: Link | undefined;

  async function linkToBroker(): Promise<Link> {
    if (link?.isUsable === true) return link;
    const made = await linkTo(server, lifetime);
    link = made;
    return made;
  }

  function pollOf(topic: string, queue: number): () => Promise<ConsumedMessage[]> {
    let offset = 0;
    return async () => {
      const { answer } = await (await linkToBroker()).exchange(
        {
          code: PULL_MESSAGE,
          fields: {
            consumerGroup: group,
            topic,
            queueId: String(queue),
            queueOffset: String(offset),
            maxMsgNums: "64",
            sysFlag: String(SUBSCRIPTION),
            commitOffset: "0",
            suspendTimeoutMillis: "0",
            subscription: "*",
            subVersion: "0",
            expressionType: "TAG",
          },
        },
        { timeoutMs: 5000, scope: lifetime },
      );
      const messages = answer?.code === FOUND ? messagesIn(answer.body) : [];
      if (messages.length === 0) await delay(20);
      offset = (messages.at(-1)?.offset ?? offset - 1) + 1;
      return messages;
    };
  }

  const queues = Array.from({ length: QUEUES }, (_, queue) => queue);
  return readerOf(
    topics.flatMap((topic) => queues.map((queue) => pollOf(topic, queue))),
    async () => {
      lifetime.abort();
      link?.end("CLOSED", "the reader was closed");
    },
  );
}

/** As a broker stores them. */
function messagesIn(stored: Buffer): ConsumedMessage[] {
  const messages: ConsumedMessage[] = [];
  for (let at = 0; at + 4 <= stored.length; ) {
    const size = stored.readUInt32BE(at);
    messages.push(messageIn(stored.subarray(at, at + size)));
    at += size;
  }
  return messages;
}

/** Bits of its flags: the hosts are of IPv6. */
const BORN_IPV6 = 16;
const STORED_IPV6 = 32;

function messageIn(bytes: Buffer): ConsumedMessage {
  const flags = bytes.readUInt32BE(36);
  const hosts = ((flags & BORN_IPV6) === 0 ? 8 : 20) + ((flags & STORED_IPV6) === 0 ? 8 : 20);
  let at = 48 + hosts + 8 + 12;
  const take = (length: number): Buffer => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const body = take(take(4).readUInt32BE());
  const topic = take(take(1).readUInt8()).toString();
  const text = take(take(2).readUInt16BE()).toString();
  const all = new Map(
    text
      .split("\u0002")
      .filter((pair) => pair !== "")
      .map((pair) => pair.split("\u0001") as [string, string]),
  );
  const own = new Set(["UNIQ_KEY", "TAGS", "KEYS", "__SHARDINGKEY", "CLUSTER", "MSG_REGION", "TRACE_ON", "PGROUP"]);
  return {
    topic,
    body,
    messageId: all.get("UNIQ_KEY") ?? "",
    tag: all.get("TAGS"),
    keys: all.get("KEYS")?.split(" ") ?? [],
    group: all.get("__SHARDINGKEY"),
    properties: new Map([...all].filter(([name]) => !own.has(name))),
    bornHost: bytes.subarray(48, 52).join("."),
    bornAtMs: Number(bytes.readBigInt64BE(40)),
    queue: bytes.readUInt32BE(12),
    offset: Number(bytes.readBigInt64BE(20)),
    receivedAtMs: Date.now(),
  };
}
