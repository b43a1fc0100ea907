import type { ServerResponse } from "node:http";
import { decodeWebhookHeaders, http, verifyWebhook } from "../../src/brokers/http.ts";
import type { BrokerHarness, ReceivedLog } from "../../src/testing/index.ts";
import { createReceivedLog, createTcpProxy } from "../../src/testing/index.ts";
import { bindBrokerContract } from "./bind.ts";
import type { ReceivedRequest } from "./http-receiver.ts";
import { startHttpReceiver } from "./http-receiver.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TOKEN = "Bearer of-good-news";
const LIMIT = 262_144;

/** One url for everything, behind a proxy that breaks it; the receiver demands a token and a signature. */
bindBrokerContract("http with one url", async (): Promise<BrokerHarness> => {
  const log = createReceivedLog();
  const receiver = await startHttpReceiver((request, response) => receive(log, request, response));
  const proxy = await createTcpProxy({ target: { port: receiver.port } });
  const create = (authorization: string) =>
    http({ url: `http://127.0.0.1:${proxy.port}/hook`, secret: SECRET, headers: { authorization } });
  return {
    name: "http",
    createBroker: () => create(TOKEN),
    createUnauthorized: () => create("Bearer of-bad-news"),
    features: { ordering: "none", delay: false, reportsUnknownTopic: false, maxBodyBytes: undefined },
    // Answers come one after another for each ordering key, so the receiver sees their order although HTTP has no such thing.
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
});

/** A url for each topic. No faults here: an endpoint that is away is then the topic's trouble (`destination`), see http.test.ts. */
bindBrokerContract("http with a url by topic", async (): Promise<BrokerHarness> => {
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
    features: { ordering: "none", delay: false, reportsUnknownTopic: true, maxBodyBytes: LIMIT },
    topics: { main: "orders", other: "billing", ordered: "billing", unknown: "nowhere" },
    consume: log.consume,
    restart: receiver.restart,
    consumeWithinMs: 5_000,
    close: receiver.close,
  };
});

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
