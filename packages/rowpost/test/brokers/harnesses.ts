/** Harnesses of the brokers that need no server but those which they start themselves. */
import type { ServerResponse } from "node:http";
import { Writable } from "node:stream";
import type { Broker } from "../../src/brokers/broker.ts";
import { decodeWebhookHeaders, http, verifyWebhook } from "../../src/brokers/http.ts";
import { memory } from "../../src/brokers/memory.ts";
import { routes } from "../../src/brokers/routes.ts";
import type { StdoutLine } from "../../src/brokers/stdout.ts";
import { stdout } from "../../src/brokers/stdout.ts";
import type { ArrivedMessage, BrokerHarness, ReceivedLog } from "../../src/testing/index.ts";
import { createReceivedLog, createTcpProxy } from "../../src/testing/index.ts";
import type { ReceivedRequest } from "./http-receiver.ts";
import { startHttpReceiver } from "./http-receiver.ts";

const MEMORY_LIMIT = 65_536;

/** The memory broker, which has no connection that could be broken. */
export function memoryHarness(): BrokerHarness {
  const brokers: ReturnType<typeof memory>[] = [];
  // Seen first at: waitFor() resolves in the moment in which a message becomes visible.
  const arrivedAt = new Map<object, number>();
  return {
    name: "memory",
    createBroker() {
      const broker = memory({ topics: ["orders", "billing"], maxBodyBytes: MEMORY_LIMIT });
      brokers.push(broker);
      return broker;
    },
    features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: MEMORY_LIMIT },
    topics: { main: "orders", other: "billing", ordered: "orders", unknown: "nowhere" },
    async consume({ topic, keyPrefix, count, withinMs }) {
      const broker =
        brokers.find((each) => each.published(topic).some(({ key }) => key.startsWith(keyPrefix))) ?? brokers.at(-1);
      await broker?.waitFor(count, { withinMs }).catch(() => undefined);
      const published = broker?.published(topic).filter(({ key }) => key.startsWith(keyPrefix)) ?? [];
      return published.map((message): ArrivedMessage => {
        if (!arrivedAt.has(message)) arrivedAt.set(message, Date.now());
        const body = typeof message.body === "string" ? Buffer.from(message.body) : message.body;
        const headers = Object.fromEntries(
          Object.entries(message.headers).map(([name, value]) => [name.toLowerCase(), value]),
        );
        return { body, headers, contentType: message.contentType, receivedAtMs: arrivedAt.get(message) ?? 0 };
      });
    },
  };
}

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TOKEN = "Bearer of-good-news";
const LIMIT = 262_144;

/**
 * One url for everything, behind a proxy that breaks it; the receiver demands a token and a
 * signature.
 */
export async function httpHarness(): Promise<BrokerHarness> {
  const log = createReceivedLog();
  const receiver = await startHttpReceiver((request, response) => receive(log, request, response));
  const proxy = await createTcpProxy({ target: { port: receiver.port } });
  const create = (authorization: string) =>
    http({ url: `http://127.0.0.1:${proxy.port}/hook`, secret: SECRET, headers: { authorization } });
  return {
    name: "http",
    createBroker: () => create(TOKEN),
    createUnauthorized: () => create("Bearer of-bad-news"),
    features: { ordering: "none", reportsUnknownTopic: false, maxBodyBytes: undefined },
    // Answers come one after another for each ordering key, so the receiver sees their order
    // although HTTP has no such thing.
    topics: { main: "orders", other: "billing", ordered: "orders" },
    consume: log.consume,
    faults: proxy,
    restart: receiver.restart,
    unsendable: (message) => ({ ...message, headers: { ...message.headers, "x-refuse": "422" } }),
    consumeWithinMs: 5_000,
    async close() {
      await proxy.close();
      await receiver.close();
    },
  };
}

/** The same, with a broker for each topic. */
export async function routesHarness(): Promise<BrokerHarness> {
  const harness = await httpHarness();
  const each = async (create: () => Broker | Promise<Broker>): Promise<Broker> =>
    routes({ [harness.topics.main]: await create(), [harness.topics.other]: await create() });
  const unauthorized = (): Broker | Promise<Broker> => {
    if (harness.createUnauthorized === undefined) throw new Error("the http harness makes an unauthorized broker");
    return harness.createUnauthorized();
  };
  return {
    ...harness,
    name: "routes",
    createBroker: () => each(() => harness.createBroker()),
    createUnauthorized: () => each(unauthorized),
  };
}

/**
 * A url for each topic. No faults here: an endpoint that is away is then the topic's trouble
 * (`destination`), see http.test.ts.
 */
export async function httpByTopicHarness(): Promise<BrokerHarness> {
  const log = createReceivedLog();
  const receiver = await startHttpReceiver((request, response) => receive(log, request, response));
  const urls = new Map(["orders", "billing"].map((topic) => [topic, `http://127.0.0.1:${receiver.port}/${topic}`]));
  return {
    name: "http by topic",
    createBroker: () =>
      http({
        urlByTopic: (topic) => urls.get(topic),
        secret: [SECRET, "an older one"],
        headers: { authorization: TOKEN },
        maxBodyBytes: LIMIT,
        maxInFlight: 4,
      }),
    features: { ordering: "none", reportsUnknownTopic: true, maxBodyBytes: LIMIT },
    topics: { main: "orders", other: "billing", ordered: "billing", unknown: "nowhere" },
    consume: log.consume,
    restart: receiver.restart,
    consumeWithinMs: 5_000,
    close: receiver.close,
  };
}

function receive(log: ReceivedLog, request: ReceivedRequest, response: ServerResponse): void {
  const { headers, body, method } = request;
  if (headers.authorization !== TOKEN) return void response.writeHead(401).end("who are you?");
  if (method !== "POST") return void response.writeHead(405).end();
  if (!verifyWebhook({ secret: SECRET, headers, body })) return void response.writeHead(400).end("bad signature");
  if (headers["x-refuse"] !== undefined)
    return void response.writeHead(Number(headers["x-refuse"])).end("refused as asked");
  const decoded = decodeWebhookHeaders(headers);
  log.add(decoded["rowpost-topic"] ?? "", {
    body,
    headers: decoded,
    contentType: headers["content-type"],
    dedupeId: String(headers["webhook-id"]),
    receivedAtMs: Date.now(),
  });
  response.writeHead(202).end();
}

/** The stdout broker, on a stream that is slow and cuts chunks anywhere. */
export function stdoutHarness(): BrokerHarness {
  const log = createReceivedLog();
  return {
    name: "stdout",
    createBroker: () => stdout({ stream: lineReader((line) => log.add(line.topic, received(line))) }),
    features: { ordering: "key", reportsUnknownTopic: false, maxBodyBytes: undefined },
    topics: { main: "orders", other: "billing", ordered: "orders" },
    consume: log.consume,
  };
}

/** A stream that is read like a pipe: chunks are cut anywhere, lines are put together again. */
function lineReader(onLine: (line: StdoutLine) => void): Writable {
  let rest = Buffer.alloc(0);
  return new Writable({
    highWaterMark: 1_024,
    write(chunk: Buffer, _encoding, callback) {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        onLine(JSON.parse(rest.subarray(0, end).toString()) as StdoutLine);
        rest = rest.subarray(end + 1);
      }
      setImmediate(callback);
    },
  });
}

function received({ body, bodyEncoding, headers, contentType }: StdoutLine) {
  const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    body: Buffer.from(body, bodyEncoding ?? "utf8"),
    headers: Object.fromEntries(lowerCase),
    contentType,
    receivedAtMs: Date.now(),
  };
}
