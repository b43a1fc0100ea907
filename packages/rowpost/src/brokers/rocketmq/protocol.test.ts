/**
 * Answers that a real RocketMQ does not give on demand: throttling, an answer for each message, a
 * server that forgets or redirects us. An in-process gRPC server with the same protos gives them.
 * Everything else is tested on a real server.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Broker, OutgoingMessage } from "../broker.ts";
import { rocketmq } from "./index.ts";
import type { RocketmqOptions } from "./options.ts";

interface SentMessage {
  readonly topic: { readonly name: string };
  readonly systemProperties: { readonly messageId: string };
}

interface Request {
  readonly messages: readonly SentMessage[];
}

interface FakeProxy {
  readonly endpoint: string;
  readonly calls: { readonly name: string; readonly request: unknown; readonly metadata: grpc.Metadata }[];
  readonly streams: grpc.ServerDuplexStream<unknown, unknown>[];
  /** By method; the default is OK. */
  answers: Record<string, (request: Request) => object>;
  maxBodySize: number;
  sizes(): number[];
  close(): void;
}

const OK = { code: "OK", message: "OK" };
const closing: (() => unknown)[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0).reverse()) await close();
});

async function fakeProxy(): Promise<FakeProxy> {
  const protos = fileURLToPath(new URL("../../../proto", import.meta.url));
  const definition = loadSync("apache/rocketmq/v2/service.proto", {
    includeDirs: [protos],
    longs: Number,
    enums: String,
  });
  const calls: FakeProxy["calls"] = [];
  const streams: FakeProxy["streams"] = [];
  const server = new grpc.Server();
  const unary =
    (name: string, usual: object) =>
    (call: grpc.ServerUnaryCall<Request, object>, callback: grpc.sendUnaryData<object>): void => {
      calls.push({ name, request: call.request, metadata: call.metadata });
      callback(null, proxy.answers[name]?.(call.request) ?? usual);
    };
  server.addService(definition["apache.rocketmq.v2.MessagingService"] as unknown as grpc.ServiceDefinition, {
    QueryRoute: unary("QueryRoute", { status: OK, messageQueues: [{ acceptMessageTypes: ["NORMAL"] }] }),
    SendMessage: unary("SendMessage", { status: OK, entries: [{ status: OK, messageId: "x" }] }),
    Heartbeat: unary("Heartbeat", { status: OK }),
    NotifyClientTermination: unary("NotifyClientTermination", { status: OK }),
    Telemetry: (stream: grpc.ServerDuplexStream<unknown, unknown>) => {
      streams.push(stream);
      stream.on("error", () => undefined);
      stream.on("data", (request: unknown) => {
        calls.push({ name: "Telemetry", request, metadata: stream.metadata });
        stream.write({ status: OK, settings: { publishing: { maxBodySize: proxy.maxBodySize } } });
      });
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const proxy: FakeProxy = {
    endpoint: `127.0.0.1:${port}`,
    calls,
    streams,
    answers: {},
    maxBodySize: 4_194_304,
    sizes: () =>
      calls.filter(({ name }) => name === "SendMessage").map(({ request }) => (request as Request).messages.length),
    close: () => server.forceShutdown(),
  };
  closing.push(() => proxy.close());
  return proxy;
}

function brokerOn(proxy: FakeProxy, options: Partial<RocketmqOptions> = {}): Broker {
  const broker = rocketmq({ endpoints: proxy.endpoint, batchSize: 8, onWarning: () => undefined, ...options });
  closing.push(() => broker.close());
  return broker;
}

function messages(count: number, changes: Partial<OutgoingMessage> = {}): OutgoingMessage[] {
  return Array.from({ length: count }, (_, index) => ({
    id: String(index),
    type: "t",
    key: `k${index}`,
    topic: "orders",
    body: "{}",
    contentType: "application/json",
    headers: {},
    orderingKey: undefined,
    attempt: 1,
    ...changes,
  }));
}

const patience = (): { signal: AbortSignal } => ({ signal: new AbortController().signal });
const status = (code: string, message = ""): object => ({ status: { code, message } });

describe("closing", () => {
  test("while a heartbeat and a check wait for a connection: both end in words, and nothing is left to end the process", async () => {
    // Accepts connections and stays silent.
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    closing.push(() => silent.close());
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const broker = rocketmq({ endpoints: `127.0.0.1:${(silent.address() as AddressInfo).port}` });
    const waits = broker.publish(messages(1), { signal: AbortSignal.timeout(200) });
    await once(silent, "connection");
    vi.advanceTimersByTime(10_000);
    const checked = broker.check().catch((error: unknown) => error);
    expect(await waits).toMatchObject([{ status: "notStarted" }]);
    await broker.close();
    expect(await checked).toMatchObject({ name: "BrokerError" });
    // An unhandled rejection of the heartbeat would fail the run in the next turns.
    await delay(50);
  });

  test("a publish after it fails as not connected; behind it nothing of a key was started", async () => {
    const broker = rocketmq({ endpoints: "127.0.0.1:1" });
    await broker.close();
    const results = await broker.publish([...messages(1), ...messages(2, { orderingKey: "a" })], patience());
    expect(results).toMatchObject([
      { status: "failed", scope: "connection", code: "CLOSED" },
      { status: "failed", scope: "connection", code: "CLOSED" },
      { status: "notStarted" },
    ]);
  });
});

describe("answers", () => {
  test.each([
    ["TOO_MANY_REQUESTS", 1000],
    ["HA_NOT_AVAILABLE", undefined],
  ])("%s pauses the topic: what has not gone yet is not tried", async (code, retryAfterMs) => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy, { maxInFlight: 1 });
    proxy.answers["SendMessage"] = () => status(code, "slow down");
    const results = await broker.publish(messages(80), patience());
    for (const result of results) {
      const failed = { status: "failed", scope: "destination", code, reason: "slow down", retryAfterMs };
      expect(result).toMatchObject(failed);
    }
    expect(proxy.sizes()).toEqual([8]);
  });

  test.each(["PROXY_TIMEOUT", "SLAVE_PERSISTENCE_TIMEOUT"])(
    "%s: what was in the request may be stored, followers of a key too; what comes behind it is not started",
    async (code) => {
      const proxy = await fakeProxy();
      const broker = brokerOn(proxy, { maxInFlight: 1 });
      proxy.answers["SendMessage"] = () => status(code, "no answer");
      const results = await broker.publish(messages(10, { orderingKey: "a" }), patience());
      const scopes = results.map((result) => (result.status === "failed" ? result.scope : result.status));
      const [together = 0] = proxy.sizes();
      expect(proxy.sizes()).toEqual([together]);
      expect(scopes).toEqual([...Array(together).fill("unknown"), ...Array(10 - together).fill("notStarted")]);
    },
  );

  test("other topics go on meanwhile", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy, { maxInFlight: 1 });
    proxy.answers["SendMessage"] = ({ messages: [first] }) =>
      first?.topic.name === "slow" ? status("TOO_MANY_REQUESTS") : { status: OK, entries: [{ status: OK }] };
    const results = await broker.publish([...messages(8, { topic: "slow" }), ...messages(80)], patience());
    expect(results.map((result) => result.status === "sent")).toEqual([
      ...Array(8).fill(false),
      ...Array(80).fill(true),
    ]);
  });

  test("an entry that failed counts for the whole request", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    const entries = [{ status: OK }, { status: { code: "MASTER_PERSISTENCE_TIMEOUT", message: "not flushed" } }];
    proxy.answers["SendMessage"] = () => ({ status: OK, entries });
    expect(await broker.publish(messages(2), patience())).toMatchObject([
      { status: "failed", code: "MASTER_PERSISTENCE_TIMEOUT" },
      { status: "failed", code: "MASTER_PERSISTENCE_TIMEOUT" },
    ]);
  });

  test("an answer without a status is not taken for success", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    proxy.answers["SendMessage"] = () => ({ entries: [{ messageId: "x" }] });
    expect(await broker.publish(messages(1), patience())).toMatchObject([{ status: "failed", scope: "message" }]);
  });

  test("a culprit in a batch is found by halving, and its key's later messages are not sent", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    const isBad = ({ systemProperties }: SentMessage): boolean => systemProperties.messageId === "t:k5";
    proxy.answers["SendMessage"] = ({ messages: sent }) =>
      sent.some(isBad) ? status("INTERNAL_SERVER_ERROR", "something in it") : { status: OK };
    const results = await broker.publish(messages(8, { orderingKey: "k" }), patience());
    expect(results.map((result) => result.status)).toEqual([
      ...Array(5).fill("sent"),
      "failed",
      "notStarted",
      "notStarted",
    ]);
    expect(proxy.sizes()).toEqual([8, 4, 4, 2, 1, 1]);
  });

  test("a server that cannot store now is not asked for each half", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    proxy.answers["SendMessage"] = () => status("INTERNAL_SERVER_ERROR", "service not available now, disk is full");
    expect(await broker.publish(messages(8), patience())).toMatchObject(Array(8).fill({ scope: "destination" }));
    expect(proxy.sizes()).toEqual([8]);
  });

  test("a topic that is missing after it was there is away, not wrong", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    await broker.publish(messages(1), patience());
    proxy.answers["SendMessage"] = () =>
      status("MESSAGE_PROPERTY_CONFLICT_WITH_TYPE", "expected type is UNSPECIFIED, but actual type is NORMAL");
    expect(await broker.publish(messages(1), patience())).toMatchObject([{ scope: "destination" }]);
    const never = messages(1, { topic: "never" });
    proxy.answers["QueryRoute"] = () => status("TOPIC_NOT_FOUND");
    expect(await broker.publish(never, patience())).toMatchObject([{ scope: "message", code: "TOPIC_NOT_FOUND" }]);
  });

  test("a route that cannot be told now pauses the topic", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    proxy.answers["QueryRoute"] = () => status("INTERNAL_SERVER_ERROR", "name server away");
    expect(await broker.publish(messages(2), patience())).toMatchObject(Array(2).fill({ scope: "destination" }));
    expect(proxy.sizes()).toEqual([]);
  });
});

describe("the session", () => {
  test("tells the server who we are, and takes its limit of the body", async () => {
    const proxy = await fakeProxy();
    proxy.maxBodySize = 100;
    const broker = brokerOn(proxy, { namespace: "shop", accessKey: "ak", secretKey: "sk", sessionToken: "token" });
    await broker.publish(messages(1), patience());
    await expect.poll(() => broker.features.maxBodyBytes).toBe(100);
    expect(await broker.publish(messages(1, { body: "x".repeat(101) }), patience())).toMatchObject([
      { status: "failed", code: "MESSAGE_BODY_TOO_LARGE", retriable: false },
    ]);
    expect(proxy.sizes()).toEqual([1]);
    const telemetry = proxy.calls.find(({ name }) => name === "Telemetry");
    expect(telemetry?.request).toMatchObject({
      settings: { clientType: "PRODUCER", publishing: {}, userAgent: { language: "NODE_JS" } },
    });
    for (const { metadata } of proxy.calls) {
      expect(metadata.get("x-mq-namespace")).toEqual(["shop"]);
      expect(metadata.get("x-mq-session-token")).toEqual(["token"]);
      expect(String(metadata.get("authorization")[0])).toMatch(
        /^MQv2-HMAC-SHA1 Credential=ak, SignedHeaders=x-mq-date-time, Signature=[0-9A-F]{40}$/,
      );
      expect(String(metadata.get("x-mq-date-time")[0])).toMatch(/^\d{8}T\d{6}Z$/);
    }
    const sent = proxy.calls.find(({ name }) => name === "SendMessage")?.request as Request;
    expect(sent.messages[0]?.topic).toEqual({ resourceNamespace: "shop", name: "orders" });
  });

  test("heartbeats every 10 s, with the topics that came since", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    await broker.publish(messages(1), patience());
    const count = (name: string): number => proxy.calls.filter((call) => call.name === name).length;
    await expect.poll(() => count("Telemetry")).toBe(1);
    vi.advanceTimersByTime(9_999);
    await delay(20);
    expect(count("Heartbeat")).toBe(0);
    vi.advanceTimersByTime(1);
    await expect.poll(() => count("Heartbeat")).toBe(1);
    await expect.poll(() => count("Telemetry")).toBe(2);
    expect(proxy.calls.findLast(({ name }) => name === "Telemetry")?.request).toMatchObject({
      settings: { publishing: { topics: [{ name: "orders" }] } },
    });
    vi.advanceTimersByTime(20_000);
    await expect.poll(() => count("Heartbeat")).toBe(3);
    expect(count("Telemetry")).toBe(2);
  });

  test("introduces itself again to a server that forgot it", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    await broker.publish(messages(1), patience());
    await expect.poll(() => proxy.streams.length).toBe(1);
    proxy.answers["Heartbeat"] = () => status("UNRECOGNIZED_CLIENT_TYPE");
    vi.advanceTimersByTime(10_000);
    await expect.poll(() => proxy.calls.some(({ name }) => name === "Heartbeat")).toBe(true);
    await expect
      .poll(async () => {
        await broker.publish(messages(1), patience());
        return proxy.streams.length;
      })
      .toBe(2);
  });

  test("opens an ended stream again, by itself", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    await broker.publish(messages(1), patience());
    await expect.poll(() => proxy.streams.length).toBe(1);
    proxy.streams[0]?.end();
    await expect.poll(() => proxy.streams.length, { timeout: 3000 }).toBe(2);
  });

  test("takes a fresh connection when the server asks for it", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    await broker.publish(messages(1), patience());
    await expect.poll(() => proxy.streams.length).toBe(1);
    const peer = proxy.streams[0]?.getPeer();
    proxy.streams[0]?.write({ status: OK, reconnectEndpointsCommand: { nonce: "1" } });
    await expect
      .poll(async () => {
        await broker.publish(messages(1), patience());
        return proxy.streams.at(-1)?.getPeer() !== peer;
      })
      .toBe(true);
  });

  test("says goodbye at close, after which nothing is called any more", async () => {
    const proxy = await fakeProxy();
    const broker = brokerOn(proxy);
    await broker.publish(messages(1), patience());
    await expect.poll(() => proxy.streams.length).toBe(1);
    await broker.close();
    expect(proxy.calls.at(-1)?.name).toBe("NotifyClientTermination");
    expect(await broker.publish(messages(1), patience())).toMatchObject([
      { status: "failed", scope: "connection", code: "CLOSED" },
    ]);
    expect(proxy.calls.at(-1)?.name).toBe("NotifyClientTermination");
  });
});

describe("without its peers", () => {
  test.each(["@grpc/grpc-js", "@grpc/proto-loader"])(
    "%s missing: check names the install line, and no message is to blame",
    async (name) => {
      vi.resetModules();
      vi.doMock(name, () => {
        throw new Error(`Cannot find package '${name}'`);
      });
      try {
        const { rocketmq: fresh } = await import("./index.ts");
        const broker = fresh({ endpoints: "127.0.0.1:1" });
        await expect(broker.check()).rejects.toMatchObject({
          code: "MISSING_PEER",
          message: expect.stringContaining(`npm install "${name}@^`),
        });
        expect(await broker.publish(messages(1), patience())).toMatchObject([
          { status: "failed", scope: "connection", code: "MISSING_PEER" },
        ]);
        await broker.close();
      } finally {
        vi.doUnmock(name);
        vi.resetModules();
      }
    },
  );
});
