/**
 * A RocketMQ for tests: topics and groups in milliseconds, a consumer, and servers of one's own to
 * kill and freeze.
 *
 * Topics are made through the broker's classic port, as mqadmin makes them: a frame of JSON instead
 * of a JVM that takes 2 s.
 */
import { execFile } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { SimpleConsumer } from "rocketmq-client-nodejs";
import { killProcess } from "../own-process.ts";

/** Keys of a server with access control. */
export interface Keys {
  readonly accessKey: string;
  readonly secretKey: string;
}

/**
 * Where a server listens; the classic port follows from the gRPC port as in
 * tools/services/rocketmq.
 */
export interface ServerAddress {
  readonly port: number;
  readonly keys?: Keys | undefined;
}

/** The address of a service of the test run, such as `rocketmq://127.0.0.1:8081`. */
export function serverAddress(address: string): ServerAddress {
  return { port: Number(new URL(address.replace(/^rocketmq:/, "http:")).port || 8081) };
}

/** A name that no other test has. */
export function uniqueName(name: string): string {
  return `rowpost-test-${process.pid}-${randomBytes(3).toString("hex")}-${name}`;
}

/** Queues of a topic. */
export const QUEUES = 4;

/** Makes a topic. */
export async function createTopic(
  server: ServerAddress,
  name: string,
  type: "NORMAL" | "FIFO" | "DELAY" | "TRANSACTION" | "MIXED" = "NORMAL",
): Promise<string> {
  await askBroker(server, 17, {
    topic: name,
    defaultTopic: "TBW102",
    readQueueNums: String(QUEUES),
    writeQueueNums: String(QUEUES),
    perm: "6",
    topicFilterType: "SINGLE_TAG",
    topicSysFlag: "0",
    order: "false",
    attributes: `+message.type=${type}`,
  });
  return name;
}

/** Removes a topic. */
export async function deleteTopic(server: ServerAddress, name: string): Promise<void> {
  await askBroker(server, 215, { topic: name });
}

/**
 * Makes a consumer group. `orderly`: a queue is given to one receiver at a time, which gets its
 * next messages after it has acknowledged these.
 */
export async function createGroup(
  server: ServerAddress,
  name: string,
  { orderly = false, retries = 16 }: { readonly orderly?: boolean; readonly retries?: number } = {},
): Promise<string> {
  const group = {
    groupName: name,
    consumeEnable: true,
    consumeFromMinEnable: true,
    consumeBroadcastEnable: true,
    consumeMessageOrderly: orderly,
    retryQueueNums: 1,
    retryMaxTimes: retries,
    brokerId: 0,
    whichBrokerWhenConsumeSlowly: 1,
    notifyConsumerIdsChangedEnable: true,
  };
  await askBroker(server, 200, {}, JSON.stringify(group));
  return name;
}

export async function deleteGroup(server: ServerAddress, name: string): Promise<void> {
  await askBroker(server, 207, { groupName: name });
}

/**
 * Messages that a topic made by {@link createTopic} holds, copies included: the ends of its queues.
 */
export async function messageCount(server: ServerAddress, topic: string): Promise<number> {
  let count = 0;
  for (let queue = 0; queue < QUEUES; queue += 1) {
    const { offset } = await askBroker(server, 30, { topic, queueId: String(queue) });
    count += Number(offset);
  }
  return count;
}

/**
 * One request on the classic protocol: lengths, a JSON header, a body. Resolves with the fields of
 * the answer.
 */
async function askBroker(
  server: ServerAddress,
  code: number,
  fields: Record<string, string>,
  body = "",
): Promise<Record<string, string>> {
  const extFields = server.keys === undefined ? fields : signed(fields, body, server.keys);
  const header = Buffer.from(
    JSON.stringify({
      code,
      language: "JAVA",
      version: 0,
      opaque: 1,
      flag: 0,
      extFields,
      serializeTypeCurrentRPC: "JSON",
    }),
  );
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(4 + header.length + Buffer.byteLength(body), 0);
  frame.writeUInt32BE(header.length, 4);
  const socket = connect(server.port + 2830, "127.0.0.1");
  socket.setTimeout(10_000, () => socket.destroy(new Error("the broker did not answer within 10 s")));
  try {
    socket.write(Buffer.concat([frame, header, Buffer.from(body)]));
    let answer = Buffer.alloc(0);
    for await (const chunk of socket) {
      answer = Buffer.concat([answer, chunk as Buffer]);
      if (answer.length >= 4 && answer.length >= 4 + answer.readUInt32BE(0)) break;
    }
    const text = answer.subarray(8, 8 + (answer.readUInt32BE(4) & 0xff_ff_ff)).toString();
    const reply = JSON.parse(text) as { code: number; remark?: string; extFields?: Record<string, string> };
    if (reply.code !== 0) throw new Error(`RocketMQ refused request ${code}: ${reply.code} ${reply.remark ?? ""}`);
    return reply.extFields ?? {};
  } finally {
    socket.destroy();
  }
}

/** The classic signature: all values in the order of their names, then the body. */
function signed(fields: Record<string, string>, body: string, keys: Keys): Record<string, string> {
  const all: Record<string, string> = { ...fields, AccessKey: keys.accessKey };
  const content = Object.keys(all)
    .sort()
    .map((name) => all[name])
    .join("");
  return {
    ...all,
    Signature: createHmac("sha1", keys.secretKey)
      .update(content + body)
      .digest("base64"),
  };
}

/** A message as RocketMQ's own Node.js client sees it. */
export interface ConsumedMessage {
  readonly topic: string;
  readonly messageId: string;
  readonly tag: string | undefined;
  readonly keys: readonly string[];
  readonly group: string | undefined;
  readonly properties: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly bornHost: string;
  readonly bornAtMs: number | undefined;
  readonly queue: number;
  /** Place in the queue: the order in which the server stored the messages. */
  readonly offset: number;
  readonly receivedAtMs: number;
}

/** Reads topics from their beginning, all the time. */
export interface Reader {
  /**
   * All messages of a topic so far, copies included, by queue and in the order in which the server
   * stored them.
   */
  messages(topic: string): ConsumedMessage[];
  /**
   * Resolves to {@link messages} once `isEnough` says so; rejects after `withinMs` (default
   * 20,000).
   */
  waitFor(
    topic: string,
    isEnough: (messages: ConsumedMessage[]) => boolean,
    withinMs?: number,
  ): Promise<ConsumedMessage[]>;
  close(): Promise<void>;
}

const QUIET = { info() {}, warn() {}, error() {}, debug() {}, close() {} };

/**
 * Starts reading with RocketMQ's own Node.js client. The topics must exist. It takes no body of 4
 * MiB, and is slow to come back after a restart.
 */
export async function createOfficialReader(server: ServerAddress, topics: readonly string[]): Promise<Reader> {
  const group = await createGroup(server, uniqueName("group"));
  const consumers: SimpleConsumer[] = [];
  for (const topic of topics) {
    const consumer = new SimpleConsumer({
      endpoints: `127.0.0.1:${server.port}`,
      namespace: "",
      consumerGroup: group,
      subscriptions: new Map([[topic, "*"]]),
      awaitDuration: LONG_POLL_MS,
      logger: QUIET,
    });
    await consumer.startup();
    consumers.push(consumer);
  }
  return readerOf(
    consumers.map((consumer) => async () => {
      const views = await consumer.receive(32, INVISIBLE_MS);
      for (const view of views) void consumer.ack(view).catch(() => undefined);
      return views.map(consumedByOfficial);
    }),
    async () => {
      await Promise.allSettled(consumers.map((consumer) => consumer.shutdown()));
    },
  );
}

/** The least that the server takes. */
const LONG_POLL_MS = 5000;
/** A message that was received and not acknowledged comes again after this long. */
const INVISIBLE_MS = 30_000;

/** Keeps calling each poll and collects what they return. */
export function readerOf(polls: readonly (() => Promise<ConsumedMessage[]>)[], end: () => Promise<void>): Reader {
  // A message that comes again, because its acknowledgement was late, has the same place in the
  // queue.
  const seen = new Map<string, ConsumedMessage>();
  let closed = false;
  let lastError: unknown;
  const running = polls.map(async (poll) => {
    while (!closed) {
      try {
        for (const message of await poll()) seen.set(`${message.topic}/${message.queue}/${message.offset}`, message);
      } catch (error) {
        lastError = error;
        if (!closed) await delay(200); // the server is away
      }
    }
  });
  const messages = (topic: string): ConsumedMessage[] =>
    [...seen.values()]
      .filter((message) => message.topic === topic)
      .sort((a, b) => a.queue - b.queue || a.offset - b.offset);
  return {
    messages,
    async waitFor(topic, isEnough, withinMs = 20_000) {
      const giveUpAt = performance.now() + withinMs;
      for (;;) {
        const now = messages(topic);
        if (isEnough(now)) return now;
        if (performance.now() > giveUpAt) {
          throw new Error(`only ${now.length} messages in ${topic} within ${withinMs} ms`, { cause: lastError });
        }
        await delay(20);
      }
    },
    async close() {
      closed = true;
      await end();
      await Promise.allSettled(running);
    },
  };
}

type MessageView = Awaited<ReturnType<SimpleConsumer["receive"]>>[number];

function consumedByOfficial(view: MessageView): ConsumedMessage {
  // The client has no accessor for them, but its receipt handle does: … broker queue offset.
  const handle = view.receiptHandle.split(" ");
  return {
    topic: view.topic,
    messageId: view.messageId,
    tag: view.tag,
    keys: view.keys,
    group: view.messageGroup === "" ? undefined : view.messageGroup,
    properties: view.properties,
    body: view.body,
    bornHost: view.bornHost,
    bornAtMs: view.bornTimestamp?.getTime(),
    queue: Number(handle[6]),
    offset: Number(handle[7]),
    receivedAtMs: Date.now(),
  };
}

interface WireMessage {
  readonly topic: { readonly name: string };
  readonly userProperties?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly systemProperties: {
    readonly messageId: string;
    readonly tag?: string;
    readonly keys?: readonly string[];
    readonly messageGroup?: string;
    readonly bornHost: string;
    readonly bornTimestamp?: { readonly seconds?: number; readonly nanos?: number };
    readonly receiptHandle: string;
    readonly queueId?: number;
    readonly queueOffset?: number;
  };
}

/**
 * Starts reading with the bare protocol: any size, and back as soon as the server is. One poll
 * brings 32 messages of one queue at most.
 */
export async function createReader(
  server: ServerAddress,
  topics: readonly string[],
  { pollsAtOnce = 1 }: { readonly pollsAtOnce?: number } = {},
): Promise<Reader> {
  const group = { name: await createGroup(server, uniqueName("group")) };
  const protos = fileURLToPath(new URL("../../proto", import.meta.url));
  const definition = loadSync("apache/rocketmq/v2/service.proto", {
    includeDirs: [protos],
    longs: Number,
    enums: String,
  });
  const service = definition["apache.rocketmq.v2.MessagingService"] as unknown as grpc.ServiceDefinition;
  const client = new grpc.Client(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_reconnect_backoff_ms": 500,
    "grpc.use_local_subchannel_pool": 1,
  });
  const metadata = (): grpc.Metadata => {
    const date = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
    const headers = new grpc.Metadata();
    headers.set("x-mq-client-id", group.name);
    headers.set("x-mq-language", "NODE_JS");
    headers.set("x-mq-client-version", "5.0.0");
    headers.set("x-mq-date-time", date);
    if (server.keys !== undefined) {
      const { accessKey, secretKey } = server.keys;
      const signature = createHmac("sha1", secretKey).update(date).digest("hex");
      const parts = [`Credential=${accessKey}`, "SignedHeaders=x-mq-date-time", `Signature=${signature}`];
      headers.set("authorization", `MQv2-HMAC-SHA1 ${parts.join(", ")}`);
    }
    return headers;
  };
  const filterExpression = { type: "TAG", expression: "*" };
  let telemetry: grpc.ClientDuplexStream<unknown, unknown> | undefined;
  // The server must know the group's settings before it lets us receive, and forgets them when it
  // restarts.
  const introduce = (): void => {
    if (telemetry !== undefined) return;
    const { path: name, requestSerialize, responseDeserialize } = method(service, "Telemetry");
    const stream = client.makeBidiStreamRequest(name, requestSerialize, responseDeserialize, metadata(), {});
    telemetry = stream;
    const forget = (): void => {
      if (telemetry === stream) telemetry = undefined;
    };
    stream
      .on("error", forget)
      .on("end", forget)
      .on("data", () => undefined);
    const subscriptions = topics.map((name) => ({ topic: { name }, expression: filterExpression }));
    stream.write({
      settings: {
        clientType: "SIMPLE_CONSUMER",
        subscription: { group, subscriptions },
        userAgent: { language: "NODE_JS" },
      },
    });
  };
  const acknowledge = (topic: string, messages: readonly WireMessage[]): void => {
    const { path: name, requestSerialize, responseDeserialize } = method(service, "AckMessage");
    const entries = messages.map(({ systemProperties: { messageId, receiptHandle } }) => ({
      messageId,
      receiptHandle,
    }));
    const request = { group, topic: { name: topic }, entries };
    const deadline = Date.now() + 5000;
    client.makeUnaryRequest(
      name,
      requestSerialize,
      responseDeserialize,
      request,
      metadata(),
      { deadline },
      () => undefined,
    );
  };
  const poll = async (topic: string): Promise<ConsumedMessage[]> => {
    introduce();
    const { path: name, requestSerialize, responseDeserialize } = method(service, "ReceiveMessage");
    const request = {
      group,
      messageQueue: { topic: { name: topic } },
      filterExpression,
      batchSize: 32,
      invisibleDuration: { seconds: INVISIBLE_MS / 1000 },
      longPollingTimeout: { seconds: LONG_POLL_MS / 1000 },
    };
    const deadline = Date.now() + 2 * LONG_POLL_MS;
    const stream = client.makeServerStreamRequest(name, requestSerialize, responseDeserialize, request, metadata(), {
      deadline,
    });
    const messages: WireMessage[] = [];
    for await (const part of stream as AsyncIterable<{
      message?: WireMessage;
      status?: { code: string; message: string };
    }>) {
      if (part.message !== undefined) messages.push(part.message);
      else if (part.status !== undefined && !["OK", "MESSAGE_NOT_FOUND"].includes(part.status.code)) {
        throw new Error(`${part.status.code}: ${part.status.message}`);
      }
    }
    if (messages.length > 0) acknowledge(topic, messages);
    return messages.map(consumed);
  };
  return readerOf(
    topics.flatMap((topic) => Array.from({ length: pollsAtOnce }, () => () => poll(topic))),
    async () => {
      telemetry?.cancel();
      client.close();
    },
  );
}

function method(service: grpc.ServiceDefinition, name: string): grpc.MethodDefinition<unknown, unknown> {
  const found = service[name];
  if (found === undefined) throw new Error(`no method ${name}`);
  return found as grpc.MethodDefinition<unknown, unknown>;
}

function consumed({ topic, userProperties = {}, body, systemProperties }: WireMessage): ConsumedMessage {
  const { bornTimestamp, messageGroup } = systemProperties;
  return {
    topic: topic.name,
    messageId: systemProperties.messageId,
    tag: systemProperties.tag,
    keys: systemProperties.keys ?? [],
    group: messageGroup === "" ? undefined : messageGroup,
    properties: new Map(Object.entries(userProperties)),
    body: body ?? Buffer.alloc(0),
    bornHost: systemProperties.bornHost,
    bornAtMs: (bornTimestamp?.seconds ?? 0) * 1000 + Math.floor((bornTimestamp?.nanos ?? 0) / 1_000_000),
    queue: systemProperties.queueId ?? 0,
    offset: systemProperties.queueOffset ?? 0,
    receivedAtMs: Date.now(),
  };
}

const SCRIPT = fileURLToPath(new URL("../../../../tools/services/rocketmq", import.meta.url));
const run = promisify(execFile);

/** A server of one's own. */
export interface PrivateServer extends ServerAddress {
  readonly endpoint: string;
  readonly keys: Keys;
  /** PEM file of its certificate, for localhost and 127.0.0.1. */
  readonly certificateFile: string;
  start(): Promise<void>;
  /** SIGKILL, before this returns its promise; resolves when the process is gone. */
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends it for good and deletes its data. */
  remove(): Promise<void>;
}

/** Starts a server with access control, plaintext and TLS on one port. Takes 5 to 20 s. */
export async function startPrivateServer(): Promise<PrivateServer> {
  // Two servers with neighboring process ids must not meet: + 1797, + 2828, + 2830 and + 2831
  // differ when divided by 4, or lie far apart.
  const port = 18_000 + 4 * (process.pid % 425);
  const folder = path.join(tmpdir(), `rowpost-test-rocketmq-${process.pid}`);
  const keys: Keys = { accessKey: "rowpost", secretKey: "of-good-news" };
  const env = {
    ...process.env,
    ROCKETMQ_GRPC_PORT: String(port),
    ROCKETMQ_NAMESRV_PORT: String(port + 1797),
    ROCKETMQ_BROKER_PORT: String(port + 2830),
    ROCKETMQ_DATA: path.join(folder, "data"),
    ROCKETMQ_RUN: path.join(folder, "run"),
    ROCKETMQ_ACCESS_KEY: keys.accessKey,
    ROCKETMQ_SECRET_KEY: keys.secretKey,
  };
  const server: PrivateServer = {
    port,
    keys,
    endpoint: `127.0.0.1:${port}`,
    ...runBy(SCRIPT, folder, env),
  };
  await server.start();
  return server;
}

/** What a script's server can be told; its data stand in the folder, and go with it. */
export function runBy(
  script: string,
  folder: string,
  env: NodeJS.ProcessEnv,
): Pick<PrivateServer, "certificateFile" | "start" | "kill" | "freeze" | "thaw" | "remove"> {
  const verb = (name: string) => async (): Promise<void> => {
    await run(script, [name], { env });
  };
  return {
    certificateFile: path.join(folder, "run", "tls", "server.crt"),
    start: verb("start"),
    kill: () => killProcess(Number(readFileSync(path.join(folder, "run", "server.pid"), "utf8"))),
    freeze: verb("freeze"),
    thaw: verb("thaw"),
    async remove() {
      await run(script, ["wipe"], { env });
      await run("rm", ["-rf", folder]);
    },
  };
}

/** The keys of the first `count` messages of a topic; the reader is closed. */
export async function keysRead(reader: Reader, topic: string, count: number, withinMs: number): Promise<string[]> {
  try {
    const messages = await reader.waitFor(topic, (all) => all.length >= count, withinMs);
    return messages.map(({ properties }) => properties.get("rowpost-key") ?? "");
  } finally {
    await reader.close();
  }
}
