/** rowpost/consume over HTTP: what rowpost/http sends, through node:http, Express and fetch. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { http } from "../../src/brokers/http.ts";
import { consumeWebhooks, type DeliveredMessage, type WebhookConsumeOptions } from "../../src/consume/index.ts";
import type { Database } from "../../src/databases/database.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox, type Inbox, MissingIdentityError } from "../../src/inbox/index.ts";
import { ConfigurationError } from "../../src/index.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { createMetricsRegistry } from "../../src/runtime/metrics-registry.ts";
import { createManualClock } from "../../src/testing/index.ts";
import { noDeadline, outgoing } from "../brokers/messages.ts";
import { endedSpans, installTelemetry, SPAN, TRACEPARENT } from "../telemetry.ts";

/** Of Express 5, which brings no types. */
interface Express {
  (): ExpressApplication;
  json(): unknown;
  raw(options: { type: () => boolean }): unknown;
}
type ExpressApplication = RequestListener & {
  use(handler: unknown): ExpressApplication;
  post(path: string, handler: unknown): ExpressApplication;
};
const require = createRequire(import.meta.url);
const express: Express = require("express");

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

let database: Database;
let inbox: Inbox;
const ends: (() => unknown)[] = [];
beforeEach(async () => {
  database = sqlite({ file: ":memory:" });
  inbox = createInbox({ database, consumer: "points" });
  await inbox.migrate();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await database.close();
});

type Options = Partial<WebhookConsumeOptions> & Pick<WebhookConsumeOptions, "handler">;

function receiver(options: Options) {
  const webhooks = consumeWebhooks({ inbox, secret: SECRET, logger: "silent", ...options });
  ends.push(() => webhooks.close());
  return webhooks;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
}

async function publish(
  url: string,
  messages: readonly OutgoingMessage[],
  secret: string | false = SECRET,
): Promise<readonly PublishResult[]> {
  const broker = http({ url, ...(secret === false ? {} : { secret }) });
  ends.push(() => broker.close());
  return await broker.publish(messages, noDeadline());
}

const sent = expect.objectContaining({ status: "sent" });
/** As the relay takes it: fetched once more, or given up. */
const failedWith = (status: number, retriable: boolean): unknown =>
  expect.objectContaining({ status: "failed", code: `HTTP_${status}`, retriable });

const city = "上海";
const unusual = (key: string): OutgoingMessage =>
  outgoing(key, { headers: { ...outgoing(key).headers, city }, orderingKey: "c 1", topic: "订单" });

/** Takes the same request as each framework would hand it over. */
const frameworks: Readonly<Record<string, (webhooks: ReturnType<typeof receiver>) => RequestListener>> = {
  "node:http": (webhooks) => webhooks.listener,
  Express: (webhooks) => express().post("/hooks", webhooks.listener),
  "Express behind express.raw": (webhooks) =>
    express()
      .use(express.raw({ type: () => true }))
      .post("/hooks", webhooks.listener),
  "Request and Response": (webhooks) => async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const request = new Request("http://127.0.0.1/hooks", {
      method: "POST",
      headers: incoming.headers as Record<string, string>,
      body: Buffer.concat(chunks),
    });
    const { body, headers, status } = await webhooks.fetch(request);
    response
      .writeHead(status, Object.fromEntries(headers))
      .end(body === null ? "" : Buffer.from(await new Response(body).arrayBuffer()));
  },
  "a framework with the body as bytes": (webhooks) => async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { body, headers, status } = await webhooks.receive({
      headers: incoming.headers,
      body: Buffer.concat(chunks),
    });
    response.writeHead(status, headers).end(body);
  },
};

describe.each(Object.entries(frameworks))("webhooks through %s", (_name, framework) => {
  test("are handled once, with all their parts, and answered 204 both times", async () => {
    const received: DeliveredMessage[] = [];
    const url = await serve(framework(receiver({ handler: (message) => received.push(message) })));
    const message = unusual("单 1");
    expect(await publish(url, [message])).toEqual([sent]);
    expect(await publish(url, [message])).toEqual([sent]);
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ type: "order.created", key: "单 1", topic: "订单", orderingKey: "c 1" });
    expect(received[0]?.headers["city"]).toBe(city);
    expect(received[0]?.json()).toEqual({ order: "单 1" });
  });

  test("are refused without the sender's signature, before anything is read or written", async () => {
    const handler = (): never => expect.unreachable("handled unsigned");
    const url = await serve(framework(receiver({ handler })));
    expect(await publish(url, [outgoing("1")], "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")).toEqual([
      failedWith(401, true),
    ]);
    expect(await publish(url, [outgoing("1")], false)).toEqual([failedWith(401, true)]);
  });

  test("a handler that throws is answered 500, leaves nothing, and is called again with the next request", async () => {
    let calls = 0;
    const handler = async (_message: DeliveredMessage, { tx }: { tx: { query(text: string): Promise<unknown> } }) => {
      calls += 1;
      await tx.query("INSERT INTO effects VALUES (1)");
      if (calls === 1) throw new Error("not yet");
    };
    await database.transaction((tx) => tx.query("CREATE TABLE effects (id INT)"));
    const url = await serve(framework(receiver({ handler })));
    expect(await publish(url, [outgoing("1")])).toEqual([failedWith(500, true)]);
    expect(await publish(url, [outgoing("1")])).toEqual([sent]);
    expect(await database.transaction((tx) => tx.query("SELECT id FROM effects"))).toEqual([{ id: 1 }]);
  });

  test("a body beyond the limit is answered 413", async () => {
    const url = await serve(framework(receiver({ maxBodyBytes: 10, handler: () => expect.unreachable("handled") })));
    expect(await publish(url, [outgoing("1")])).toEqual([failedWith(413, false)]);
  });
});

describe("webhooks", () => {
  test("whose headers were changed behind the signature are refused", async () => {
    const received: string[] = [];
    const webhooks = receiver({ handler: ({ key }) => received.push(key) });
    let seen: { headers: Record<string, string>; body: Buffer } | undefined;
    const url = await serve((incoming, response) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("end", () => {
        seen = { headers: incoming.headers as Record<string, string>, body: Buffer.concat(chunks) };
        response.writeHead(204).end();
      });
    });
    await publish(url, [outgoing("4711")]);
    const request = seen ?? expect.unreachable("no request");
    const replayed = { ...request, headers: { ...request.headers, "rowpost-key": "4712" } };
    expect(await webhooks.receive(replayed)).toMatchObject({ status: 401 });
    expect(await webhooks.receive(request)).toMatchObject({ status: 204 });
    expect(received).toEqual(["4711"]);
  });

  test("without identity are answered 422, or parked", async () => {
    const request = { headers: {}, body: "{}" };
    const handler = (): never => expect.unreachable("handled");
    expect(await receiver({ secret: false, handler }).receive(request)).toMatchObject({ status: 422 });
    const parked: unknown[] = [];
    const parking = receiver({ secret: false, handler, unhandled: (raw, error) => parked.push([raw, error]) });
    expect(await parking.receive(request)).toMatchObject({ status: 204 });
    expect(parked).toEqual([[request, expect.any(MissingIdentityError)]]);
    const failing = receiver({ secret: false, handler, unhandled: () => Promise.reject(new Error("no place")) });
    expect(await failing.receive(request), "to be sent again").toMatchObject({ status: 500 });
  });

  test("whose body a framework has parsed, or left out, are answered, and received by nobody", async () => {
    const handler = (): never => expect.unreachable("handled");
    for (const secret of [SECRET, false] as const) {
      const webhooks = receiver({ secret, handler });
      const answer = await webhooks.receive({ headers: outgoing("1").headers, body: { order: "1" } });
      expect(answer).toMatchObject({ status: 500, body: expect.stringContaining("parsed") });
    }
    const unsigned = await receiver({ handler }).receive({ headers: outgoing("1").headers, body: null });
    expect(unsigned).toMatchObject({ status: 401 });
  });

  test("that no handler saw, because the database failed, are neither given up nor parked", async () => {
    await database.transaction((tx) => tx.query("DROP TABLE message_inbox"));
    const request = { headers: outgoing("1").headers, body: "{}" };
    const handler = (): never => expect.unreachable("handled");
    const park = (): never => expect.unreachable("parked");
    for (const unhandled of ["dead-letter", park] as const) {
      const webhooks = receiver({ secret: false, handler, unhandled });
      expect(await webhooks.receive(request)).toMatchObject({ status: 500 });
    }
    await inbox.migrate();
  });

  test("that were parsed before they came are answered 500, and the log says what to change", async () => {
    const errors: unknown[] = [];
    const logger = {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (_: string, fields?: object) => errors.push(fields),
    };
    const { listener } = receiver({ handler: () => expect.unreachable("handled"), logger });
    const url = await serve(express().use(express.json()).post("/hooks", listener));
    expect(await publish(url, [outgoing("1")])).toEqual([failedWith(500, true)]);
    expect(errors).toEqual([
      { error: expect.objectContaining({ message: expect.stringContaining("express.json()") }) },
    ]);
  });

  test("are answered 503 beyond what may wait, and while it closes, which waits for running handlers", async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let calls = 0;
    const webhooks = receiver({
      secret: false,
      concurrency: 1,
      handler: async () => {
        calls += 1;
        await held;
      },
    });
    const request = (key: string) => ({ headers: outgoing(key).headers, body: "{}" });
    const running = Array.from({ length: 5 }, (_, index) => webhooks.receive(request(`k${index}`)));
    await expect.poll(() => calls).toBe(1);
    expect(await webhooks.receive(request("k5"))).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    const closing = webhooks.close();
    expect(await webhooks.receive(request("k6"))).toMatchObject({ status: 503 });
    release();
    expect(await closing).toEqual({ drained: true });
    const answers = await Promise.all(running);
    expect(answers.map(({ status }) => status)).toEqual([204, 503, 503, 503, 503]);
    expect(calls).toBe(1);
  });

  test("the close waits no longer than it may; the request is answered 503, and the signal aborted", async () => {
    let aborted: AbortSignal | undefined;
    const handler = async (_message: DeliveredMessage, { signal }: { signal: AbortSignal }): Promise<void> => {
      aborted = signal;
      await once(signal, "abort");
      throw signal.reason;
    };
    const webhooks = receiver({ secret: false, drainTimeoutMs: 1, handler });
    const answer = webhooks.receive({ headers: outgoing("1").headers, body: "{}" });
    await expect.poll(() => aborted).toBeDefined();
    expect(await webhooks.close()).toEqual({ drained: false });
    expect(aborted?.aborted).toBe(true);
    expect(await answer).toMatchObject({ status: 503 });
  });

  test("a secret has to be given, or given up", () => {
    const handler = (): void => undefined;
    const wrong = [undefined, [], "", ["whsec_!"], true, null];
    for (const secret of wrong) {
      expect(() => consumeWebhooks({ inbox, handler, secret: secret as string }), String(secret)).toThrow(
        ConfigurationError,
      );
    }
    const nameless = createInbox({ database });
    expect(() => consumeWebhooks({ inbox: nameless, handler, secret: false })).toThrow(/consumer: "points"/);
    expect(() => consumeWebhooks({ inbox, handler, secret: false, consurrency: 1 } as never)).toThrow(/"concurrency"/);
  });
});

test("requests are counted, and their spans continue the sender's trace", async () => {
  const uninstall = installTelemetry();
  ends.push(uninstall);
  const metrics = createMetricsRegistry();
  const told: string[] = [];
  const url = await serve(
    receiver({
      metrics,
      on: {
        handled: ({ message: { key } }) => void told.push(`${key} handled`),
        failed: ({ message: { key }, isLast }) => void told.push(`${key} failed ${isLast}`),
      },
      handler({ key }) {
        if (key === "2") throw new Error("no points");
      },
    }).listener,
  );
  const headers = (key: string) => ({ ...outgoing(key).headers, traceparent: TRACEPARENT });
  await publish(
    url,
    ["1", "2"].map((key) => outgoing(key, { headers: headers(key) })),
  );
  expect(told.toSorted()).toEqual(["1 handled", "2 failed false"]);
  const labels = { consumer: "points", topic: "orders" };
  expect(metrics.value("rowpost_handled_total", labels)).toBe(1);
  expect(metrics.value("rowpost_handle_failures_total", { ...labels, scope: "message" })).toBe(1);
  expect(endedSpans.map(({ name, traceId, parentId }) => [name, traceId, parentId])).toEqual([
    ["process orders", SPAN.traceId, SPAN.spanId],
    ["process orders", SPAN.traceId, SPAN.spanId],
  ]);
});

test("a handler that does not end is told now and then, with the message, and counts as nothing", async () => {
  const clock = createManualClock();
  const told: unknown[] = [];
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const webhooks = receiver({
    clock,
    secret: false,
    warnAfterMs: 1_000,
    handler: () => held,
    logger: { ...silentLogger, warn: (_line, fields) => void told.push(fields) },
  });
  const headers = { "rowpost-type": "order.paid", "rowpost-key": "4711" };
  const answered = webhooks.receive({ headers, body: "{}" });
  const tellsOf = (runningMs: number): unknown =>
    expect.objectContaining({ type: "order.paid", key: "4711", runningMs });
  await clock.advance(999);
  expect(told).toEqual([]);
  await clock.advance(7_000);
  expect(told).toEqual([1_000, 2_000, 4_000].map(tellsOf));
  release();
  expect(await answered).toMatchObject({ status: 204 });
  expect(clock.pendingTimers()).toBe(0);
});
