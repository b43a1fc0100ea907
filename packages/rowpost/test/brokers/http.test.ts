/**
 * The HTTP broker against real servers: what the contract suite, which is the same for every
 * broker, does not ask.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { EventEmitter, getEventListeners, once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { decodeWebhookHeaders, http, httpFromUrl, verifyWebhook } from "../../src/brokers/http.ts";
import { ConfigurationError } from "../../src/runtime/errors.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./certificate.ts";
import type { HttpReceiver, ReceivedRequest } from "./http-receiver.ts";
import { startHttpReceiver } from "./http-receiver.ts";
import { noDeadline, outgoing } from "./messages.ts";

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function receiver(answer?: (request: ReceivedRequest, response: ServerResponse) => void): Promise<HttpReceiver> {
  const started = await startHttpReceiver(answer);
  closing.push(started.close);
  return started;
}

function broker(options: Parameters<typeof http>[0]): Broker {
  const made = http(options);
  closing.push(() => made.close());
  return made;
}

/** A TCP server that does with each connection what it is told; closed after the test. */
async function rawServer(onConnection: Parameters<typeof createServer>[1]): Promise<number> {
  const server = createServer(onConnection);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** The sockets that clients in this process open from now on. */
function clientSockets(): readonly Socket[] {
  const opened: Socket[] = [];
  const note = (message: unknown): void => void opened.push((message as { readonly socket: Socket }).socket);
  subscribe("net.client.socket", note);
  closing.push(() => void unsubscribe("net.client.socket", note));
  return opened;
}

describe("a request", () => {
  test("is a signed POST with the identity, the topic and the ordering key", async () => {
    const { url, requests } = await receiver();
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const message = outgoing("订单 1", {
      orderingKey: "客户-7",
      headers: { "rowpost-key": "订单 1", traceparent: "00-1-2-01" },
    });
    const [result] = await broker({ url: `${url}?token=abc`, secret }).publish([message], noDeadline());
    expect(result).toEqual({ status: "sent", messageId: "order%2Ecreated:%E8%AE%A2%E5%8D%95%201" });
    const [request] = requests;
    expect(request).toMatchObject({ method: "POST", path: "/hook?token=abc" });
    expect(request?.body.toString()).toBe(message.body);
    const { headers = {}, body = "" } = request ?? {};
    expect(headers["content-type"]).toBe("application/json");
    expect(headers["webhook-id"]).toBe("order%2Ecreated:%E8%AE%A2%E5%8D%95%201");
    expect(verifyWebhook({ secret, headers, body })).toBe(true);
    expect(decodeWebhookHeaders(headers)).toMatchObject({
      ...message.headers,
      "rowpost-topic": "orders",
      "rowpost-ordering-key": "客户-7",
    });
  });

  test("without a secret is not signed, and has its id and time all the same", async () => {
    const { url, requests } = await receiver();
    const before = Math.floor(Date.now() / 1_000);
    await broker({ url }).publish([outgoing("1")], noDeadline());
    const after = Math.floor(Date.now() / 1_000);
    const headers = requests[0]?.headers ?? {};
    expect(headers["webhook-signature"]).toBeUndefined();
    expect(headers["webhook-id"]).toBe("order%2Ecreated:1");
    expect(Number(headers["webhook-timestamp"])).toBeGreaterThanOrEqual(before);
    expect(Number(headers["webhook-timestamp"])).toBeLessThanOrEqual(after);
  });

  test("carries the endpoint's own headers, which a message cannot replace", async () => {
    const { url, requests } = await receiver();
    const withUser = url.replace("http://", "http://me:p%40ss@");
    const headers = { "x-api-key": "stolen", authorization: "Bearer stolen", host: "elsewhere" };
    await broker({ url: withUser, headers: { "X-Api-Key": "right" } }).publish(
      [outgoing("1", { headers })],
      noDeadline(),
    );
    const received = requests[0]?.headers ?? {};
    expect(received["x-api-key"]).toBe("right");
    expect(received.authorization).toBe(`Basic ${Buffer.from("me:p@ss").toString("base64")}`);
    expect(received.host).toMatch(/^127\.0\.0\.1:/);
    expect(decodeWebhookHeaders(received)).toMatchObject(headers);
  });

  test("with a content type that HTTP cannot carry fails alone, before anything is sent", async () => {
    const { url, requests } = await receiver();
    const batch = [outgoing("1", { contentType: "text/plain\r\nx: y" }), outgoing("2")];
    const results = await broker({ url }).publish(batch, noDeadline());
    expect(results[0]).toMatchObject({ status: "failed", scope: "message", retriable: false, code: "INVALID_REQUEST" });
    expect(results[1]).toMatchObject({ status: "sent" });
    expect(requests).toHaveLength(1);
  });
});

describe("an answer", () => {
  test("headers that differ in the case of their names alone are refused, and nothing is sent", async () => {
    const { url, requests } = await receiver();
    const message = { ...outgoing("1"), headers: { "X-Tenant": "blue", "x-tenant": "red" } };
    expect(await broker({ url }).publish([message], noDeadline())).toMatchObject([
      { status: "failed", scope: "message", code: "AMBIGUOUS_HEADERS", retriable: false },
    ]);
    expect(requests).toEqual([]);
  });

  test("that redirects is a failure; the other address is never asked", async () => {
    const elsewhere = await receiver();
    const { url } = await receiver(
      (_request, response) => void response.writeHead(307, { location: elsewhere.url }).end(),
    );
    const [result] = await broker({ url }).publish([outgoing("1")], noDeadline());
    expect(result).toMatchObject({ status: "failed", scope: "message", retriable: true, code: "HTTP_307" });
    expect(elsewhere.requests).toHaveLength(0);
  });

  test("429 with Retry-After holds the rest of the call back from that endpoint, and from no other", async () => {
    const busy = await receiver(
      (_request, response) => void response.writeHead(429, { "retry-after": "30" }).end("slow down"),
    );
    const idle = await receiver();
    const urls: Record<string, string> = { orders: busy.url, billing: idle.url };
    const batch = Array.from({ length: 10 }, (_, index) =>
      outgoing(String(index), { topic: index < 5 ? "orders" : "billing" }),
    );
    const limited = broker({ urlByTopic: (topic) => urls[topic], maxInFlight: 1 });
    const results = await limited.publish(batch, noDeadline());
    for (const result of results.slice(0, 5)) {
      expect(result).toMatchObject({ status: "failed", scope: "destination", code: "HTTP_429", retryAfterMs: 30_000 });
    }
    for (const result of results.slice(5)) expect(result.status).toBe("sent");
    expect([busy.requests.length, idle.requests.length]).toEqual([1, 5]);
  });

  test("whose body never ends is the receiver's word all the same, and is not read for ever", async () => {
    let written = 0;
    const { url, disconnected } = await receiver((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain", "rowpost-receipt": "r-1" });
      const chunk = Buffer.alloc(65_536, "x");
      const pump = (): void => {
        while (!response.destroyed && response.write(chunk)) written += chunk.length;
      };
      response.on("drain", pump);
      pump();
    });
    const [result] = await broker({ url }).publish([outgoing("1")], noDeadline());
    expect(result).toEqual({ status: "sent", messageId: "r-1" });
    await disconnected();
    expect(written).toBeLessThan(50_000_000);
  });

  test("whose body stalls is the receiver's word at the deadline", async () => {
    const { url } = await receiver((_request, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write('{"id":');
    });
    const [result] = await broker({ url, timeoutMs: 200 }).publish([outgoing("1")], noDeadline());
    expect(result).toEqual({ status: "sent", messageId: "order%2Ecreated:1" });
  });

  test("whose connection breaks in the body is the receiver's word", async () => {
    const { url } = await receiver((_request, response) => {
      response.writeHead(422, { "content-length": "100" });
      response.write("because", () => response.destroy());
    });
    const [result] = await broker({ url }).publish([outgoing("1")], noDeadline());
    expect(result).toMatchObject({ status: "failed", scope: "message", code: "HTTP_422" });
  });

  test("that is not HTTP leaves it unknown whether the message arrived", async () => {
    const port = await rawServer(
      (socket) => void socket.once("data", () => socket.end("hello, this is not a web server\r\n")),
    );
    const [result] = await broker({ url: `http://127.0.0.1:${port}/` }).publish([outgoing("1")], noDeadline());
    expect(result).toMatchObject({ status: "failed", scope: "unknown", retriable: true });
  });

  test("that never comes leaves it unknown, after the broker's own timeout", async () => {
    const { url } = await receiver(() => undefined);
    const [result] = await broker({ url, timeoutMs: 150 }).publish([outgoing("1")], noDeadline());
    expect(result).toMatchObject({ status: "failed", scope: "unknown", code: "TIMEOUT" });
  });
});

describe("an endpoint that is away", () => {
  test("with one url is the connection's trouble, and is asked once in a call", async () => {
    const { port, close } = await startHttpReceiver();
    await close();
    const batch = [
      outgoing("1"),
      outgoing("2", { orderingKey: "k" }),
      outgoing("3", { orderingKey: "k" }),
      outgoing("4"),
    ];
    const results = await broker({ url: `http://127.0.0.1:${port}/`, maxInFlight: 1 }).publish(batch, noDeadline());
    const refused = { status: "failed", scope: "connection", retriable: true, code: "ECONNREFUSED" };
    expect(results).toMatchObject([refused, refused, { status: "notStarted" }, refused]);
  });

  test("with a url by topic is that topic's trouble only", async () => {
    const { url } = await receiver();
    const away = await startHttpReceiver();
    await away.close();
    const urls: Record<string, string> = { orders: away.url, billing: url };
    const byTopic = broker({ urlByTopic: (topic) => urls[topic] });
    const results = await byTopic.publish([outgoing("1"), outgoing("2", { topic: "billing" })], noDeadline());
    expect(results).toMatchObject([{ scope: "destination", code: "ECONNREFUSED" }, { status: "sent" }]);
  });

  test("urlByTopic that throws or gives no url fails its topic, and can be retried", async () => {
    const byTopic = broker({
      urlByTopic: (topic) => {
        if (topic === "broken") throw new Error("no configuration");
        return topic === "odd" ? "ftp://127.0.0.1/" : undefined;
      },
    });
    const batch = ["missing", "broken", "odd"].map((topic) => outgoing("1", { topic }));
    const results = await byTopic.publish(batch, noDeadline());
    const failed = { status: "failed", scope: "message", retriable: true };
    expect(results).toMatchObject([
      { ...failed, code: "TOPIC_NOT_FOUND" },
      { ...failed, code: "TOPIC_URL_INVALID", reason: expect.stringContaining("no configuration") },
      { ...failed, code: "TOPIC_URL_INVALID", reason: expect.stringContaining("http://") },
    ]);
  });
});

describe("TLS", () => {
  async function secureReceiver() {
    let requests = 0;
    let open = 0;
    const server = createSecureServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (_request, response) => {
      requests += 1;
      response.writeHead(204).end();
    });
    server.on("tlsClientError", () => undefined);
    server.on("secureConnection", (socket: Socket) => {
      open += 1;
      socket.on("close", () => {
        open -= 1;
      });
    });
    server.keepAliveTimeout = 0;
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { port: (server.address() as AddressInfo).port, requests: () => requests, openConnections: () => open };
  }

  test("a server whose certificate is not trusted gets nothing", async () => {
    const { port, requests } = await secureReceiver();
    const untrusting = broker({ url: `https://127.0.0.1:${port}/` });
    const [result] = await untrusting.publish([outgoing("1")], noDeadline());
    expect(result).toMatchObject({ status: "failed", scope: "connection", code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    await expect(untrusting.check()).rejects.toThrow(/certificate/);
    expect(requests()).toBe(0);
  });

  test("with its authority given, messages go out on connections that are used again", async () => {
    const { port, requests, openConnections } = await secureReceiver();
    const trusting = broker({ url: `https://127.0.0.1:${port}/`, tls: { ca: TEST_CERTIFICATE }, maxInFlight: 2 });
    await trusting.check();
    const results = await trusting.publish(
      Array.from({ length: 10 }, (_, index) => outgoing(String(index))),
      noDeadline(),
    );
    expect(results.map(({ status }) => status)).toEqual(new Array(10).fill("sent"));
    expect(requests()).toBe(11);
    await trusting.close();
    await expect.poll(openConnections).toBe(0);
  });

  test("a server that speaks no TLS was given nothing", async () => {
    const { port, requests } = await receiver();
    const [result] = await broker({ url: `https://127.0.0.1:${port}/` }).publish([outgoing("1")], noDeadline());
    expect(result).toMatchObject({ status: "failed", scope: "connection" });
    expect(requests).toHaveLength(0);
  });

  test("a handshake that hangs ends at the timeout, as a connection that did not come about", async () => {
    const port = await rawServer((socket) => void socket.on("error", () => undefined));
    const [result] = await broker({ url: `https://127.0.0.1:${port}/`, timeoutMs: 150 }).publish(
      [outgoing("1")],
      noDeadline(),
    );
    expect(result).toMatchObject({ status: "failed", scope: "connection", code: "CONNECT_TIMEOUT" });
  });
});

describe("connections", () => {
  test("are never more than maxInFlight, over all calls, and are used again", async () => {
    let atOnce = 0;
    let most = 0;
    const { url, connectionCount, requests } = await receiver((_request, response) => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      setImmediate(() => {
        atOnce -= 1;
        response.writeHead(204).end();
      });
    });
    const four = broker({ url, maxInFlight: 4 });
    const stop = new AbortController();
    const calls = Array.from({ length: 5 }, (_, call) =>
      Array.from({ length: 20 }, (_, index) => outgoing(`${call}-${index}`)),
    );
    await Promise.all(calls.map((batch) => four.publish(batch, stop)));
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
    expect(requests).toHaveLength(100);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
    expect(connectionCount()).toBeLessThanOrEqual(4);
  });

  test("that the server closed while they were idle are not used again", async () => {
    const { url } = await receiver((_request, response) => {
      response.writeHead(204, { connection: "keep-alive" }).end();
      // What a server does at the end of its keep-alive time, only sooner.
      response.on("finish", () => setImmediate(() => response.req.socket.destroy()));
    });
    const opened = clientSockets();
    const reused = broker({ url });
    for (const count of [1, 2, 3]) {
      const [result] = await reused.publish([outgoing(String(count))], noDeadline());
      expect(result).toMatchObject({ status: "sent" });
      expect(opened).toHaveLength(count);
      await expect.poll(() => opened.every(({ closed }) => closed), { interval: 1 }).toBe(true);
    }
  });

  test("that nobody uses are given up before a server with Node's default of 5 s would do it", async () => {
    const { url } = await receiver();
    const opened = clientSockets();
    await broker({ url }).publish([outgoing("1")], noDeadline());
    // Timers of one process fire in their order, however busy it is.
    await delay(4_900);
    expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
  });

  test("of one endpoint that hangs take their own places, and leave those of all others", async () => {
    const hung = await receiver(() => undefined);
    const healthy = await receiver();
    const own = broker({ urlByTopic: (topic) => (topic === "hung" ? hung.url : healthy.url), maxInFlight: 4 });
    const deadline = new AbortController();
    const waiting = own.publish(
      Array.from({ length: 40 }, (_, index) => outgoing(`hung-${index}`, { topic: "hung" })),
      { signal: deadline.signal },
    );
    const mixed = Array.from({ length: 40 }, (_, index) => outgoing(`ok-${index}`));
    for (const each of await own.publish(mixed, noDeadline())) expect(each.status).toBe("sent");
    expect(hung.requests).toHaveLength(4);
    deadline.abort();
    const counted = (await waiting).map((each) => (each.status === "failed" ? each.scope : each.status));
    expect(counted.filter((each) => each === "unknown")).toHaveLength(4);
    expect(counted.filter((each) => each === "notStarted")).toHaveLength(36);
    expect(healthy.requests).toHaveLength(40);
  });

  test("an abort tells what was handed over from what was not, frees the slots, and leaves no listener", async () => {
    const arrived = new EventEmitter();
    const { url, requests } = await receiver((request, response) => {
      arrived.emit("request");
      // Answers only those of the second call.
      if (request.headers["rowpost-topic"] === "billing") response.writeHead(204).end();
    });
    const two = broker({ url, maxInFlight: 2 });
    const deadline = new AbortController();
    const batch = ["1", "2", "3", "4"].map((key) => outgoing(key));
    const hanging = two.publish(batch, { signal: deadline.signal });
    const next = two.publish([outgoing("5", { topic: "billing" })], noDeadline());
    while (requests.length < 2) await once(arrived, "request");
    deadline.abort();
    const unknown = { status: "failed", scope: "unknown", code: "TIMEOUT" };
    expect(await hanging).toMatchObject([unknown, unknown, { status: "notStarted" }, { status: "notStarted" }]);
    expect(await next).toMatchObject([{ status: "sent" }]);
    expect(getEventListeners(deadline.signal, "abort")).toHaveLength(0);
    expect(requests).toHaveLength(3);
  });
});

describe("configuration", () => {
  test.each([
    ["no url", {}],
    ["two urls", { url: "http://a/", urlByTopic: () => "http://b/" }],
    ["an unreadable url", { url: "127.0.0.1:80" }],
    ["another scheme", { url: "ftp://127.0.0.1/" }],
    ["no time", { url: "http://a/", timeoutMs: 0 }],
    ["no connection", { url: "http://a/", maxInFlight: 0.5 }],
    ["a negative size", { url: "http://a/", maxBodyBytes: -1 }],
    ["a header with a line break", { url: "http://a/", headers: { authorization: "Bearer a\r\nb" } }],
    ["a header with no name", { url: "http://a/", headers: { "": "x" } }],
    ["an asymmetric key", { url: "http://a/", secret: "whsk_AAAA" }],
  ])("%s is refused", (_what, options) => {
    expect(() => http(options)).toThrow(ConfigurationError);
  });

  test("what is wrong is told without the secret", () => {
    const options = { url: "http://a/", headers: { authorization: "Bearer s3cret\n" } };
    expect(() => http(options)).toThrow(expect.objectContaining({ message: expect.not.stringContaining("s3cret") }));
    expect(() => http({ url: "http://me:s3cret@[bad/" })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("s3cret") }),
    );
  });

  test("credentials and queries of the url stand in no reason", async () => {
    const { port } = await receiver((_request, response) => void response.writeHead(500).end());
    const [result] = await broker({ url: `http://me:s3cret@127.0.0.1:${port}/hook?token=s3cret` }).publish(
      [outgoing("1")],
      noDeadline(),
    );
    expect(result).toMatchObject({ reason: `POST http://127.0.0.1:${port}/hook answered 500 Internal Server Error` });
  });

  test("httpFromUrl takes its secrets from the environment", async () => {
    const { url, requests } = await receiver();
    const environment = { ROWPOST_HTTP_SECRET: "new-secret old-secret" };
    for (const made of [httpFromUrl(url, environment), httpFromUrl(new URL(url), {})]) {
      closing.push(() => made.close());
      await made.publish([outgoing("1")], noDeadline());
    }
    const [signed, unsigned] = requests;
    for (const secret of ["new-secret", "old-secret"]) {
      expect(verifyWebhook({ secret, headers: signed?.headers ?? {}, body: signed?.body ?? "" })).toBe(true);
    }
    expect(unsigned?.headers["webhook-signature"]).toBeUndefined();
  });

  test("check takes any answer but a refusal of the credentials or a gateway without a receiver", async () => {
    let status = 405;
    const { url } = await receiver((_request, response) => void response.writeHead(status).end());
    const checked = broker({ url });
    await checked.check();
    status = 403;
    await expect(checked.check()).rejects.toMatchObject({ code: "BROKER_UNAUTHORIZED", retriable: true });
    status = 502;
    await expect(checked.check()).rejects.toMatchObject({ code: "BROKER_UNREACHABLE", retriable: true });
    await broker({ urlByTopic: () => undefined }).check();
  });
});
