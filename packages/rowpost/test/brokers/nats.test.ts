/**
 * The NATS broker on the shared server: what is stored, which copies are dropped, and what is
 * refused.
 */
import { AckPolicy } from "@nats-io/jetstream";
import { connect, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { decodeNatsHeaders, type NatsOptions, nats, natsFromUrl } from "../../src/brokers/nats/index.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { type Admin, createAdmin, uniqueName } from "./nats-server.ts";

describeWithService("nats", "the NATS broker", (service) => {
  const servers = new URL(service.address).host;
  const stream = uniqueName("stream");
  const topic = `${stream}.orders`;
  const made: string[] = [];
  let admin: Admin;
  let broker: Broker;

  beforeAll(async () => {
    admin = await createAdmin({ servers });
    await makeStream({ name: stream, subjects: [`${stream}.>`] });
    broker = nats({ servers });
  });

  afterAll(async () => {
    await broker?.close();
    for (const name of made) await admin.deleteStream(name);
    await admin?.close();
  });

  async function makeStream(config: Parameters<Admin["createStream"]>[0]): Promise<void> {
    made.push(config.name);
    await admin.createStream(config);
  }

  async function withBroker<Result>(
    options: Partial<NatsOptions>,
    use: (broker: Broker) => Promise<Result>,
  ): Promise<Result> {
    const other = nats(options.connection === undefined ? { servers, ...options } : options);
    try {
      return await use(other);
    } finally {
      await other.close();
    }
  }

  const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
    outgoing(key, { topic, ...changes });

  const publishOne = async (one: OutgoingMessage, by: Broker = broker): Promise<PublishResult | undefined> =>
    (await by.publish([one], noDeadline()))[0];

  describe("a message", () => {
    test("is stored with its subject, id, headers and body, and its receipt names the place", async () => {
      const one = message("m-1", { contentType: "text/plain", body: "text" });
      const result = await publishOne({ ...one, headers: { ...one.headers, tenant: "blue moon" } });
      const stored = (await admin.stored(stream)).find(({ headers }) => headers["rowpost-key"] === "m-1");
      expect(result).toEqual({ status: "sent", messageId: `${stream}:${stored?.sequence}` });
      expect(stored?.subject).toBe(topic);
      expect(Buffer.from(stored?.body ?? []).toString()).toBe("text");
      expect(stored?.headers).toEqual({
        "rowpost-id": "order.created:m-1",
        "rowpost-type": "order.created",
        "rowpost-key": "m-1",
        "rowpost-attempt": "1",
        tenant: "blue moon",
        "content-type": "text/plain",
      });
      expect(stored?.rawHeaders.get("Nats-Msg-Id")).toBe("order.created:m-1");
    });

    test("reaches a consumer, which reads the headers back whatever is in them", async () => {
      const subject = `${stream}.odd`;
      const manager = await (await import("@nats-io/jetstream")).jetstreamManager(admin.connection);
      await manager.consumers.add(stream, {
        durable_name: "odd",
        filter_subject: subject,
        ack_policy: AckPolicy.Explicit,
      });
      const consumer = await manager.jetstream().consumers.get(stream, "odd");
      const headers = {
        ...message("k").headers,
        "rowpost-key": "order 42\n|订单 ",
        note: "line one\r\nline two",
        nothing: "",
        "full width": "　blank　",
        "a,b": "comma",
        "50%": "100%",
        "rowpost-encoded": "no list of ours",
      };
      const one = message("order 42\n|订单 ", { topic: subject, headers });
      expect(await publishOne(one)).toMatchObject({ status: "sent" });
      const received = await consumer.next({ expires: 5000 });
      expect(decodeNatsHeaders(received?.headers)).toEqual(headers);
      received?.ack();
    });

    test("has no headers that the server obeys", async () => {
      const headers = {
        "Nats-Rollup": "all",
        "nats-rollup": "sub",
        "Nats-Expected-Last-Sequence": "999999",
        "Nats-Msg-Id": "m-1",
        note: "Nats-Expected-Stream: elsewhere",
      };
      const before = await admin.stored(stream);
      const one = message("m-2");
      expect(await publishOne({ ...one, headers: { ...one.headers, ...headers } })).toMatchObject({ status: "sent" });
      const after = await admin.stored(stream);
      expect(after).toHaveLength(before.length + 1);
      expect(after.at(-1)?.headers).toMatchObject(headers);
    });

    test("without a name for a header fails alone", async () => {
      const results = await broker.publish([message("h-1", { headers: { "": "x" } }), message("h-2")], noDeadline());
      expect(results).toMatchObject([
        { status: "failed", scope: "message", retriable: false, code: "ILLEGAL_HEADER" },
        { status: "sent" },
      ]);
    });

    test("from a URL, with a prefix", async () => {
      const fromUrl = natsFromUrl(`nats://${servers}?prefix=${stream}.&stream=${stream}&timeoutMs=5000`, {});
      try {
        await fromUrl.check();
        const result = await publishOne(outgoing("url", { topic: "by-url" }), fromUrl);
        expect(result).toMatchObject({ status: "sent" });
        expect((await admin.stored(stream)).at(-1)?.subject).toBe(`${stream}.by-url`);
      } finally {
        await fromUrl.close();
      }
    });
  });

  describe("copies", () => {
    test("of a message are dropped by JetStream, and are as good as sent, with the first one's receipt", async () => {
      const first = await publishOne(message("twice"));
      const second = await publishOne(message("twice", { attempt: 2 }));
      expect(first).toMatchObject({ status: "sent" });
      expect(second).toEqual(first);
      const stored = (await admin.stored(stream)).filter(({ headers }) => headers["rowpost-key"] === "twice");
      expect(stored).toHaveLength(1);
    });

    test("are not messages whose type and key only look alike when joined", async () => {
      const batch = [message("c", { type: "a:b" }), message("b:c", { type: "a" }), message("b%3Ac", { type: "a" })];
      const results = await broker.publish(batch, noDeadline());
      expect(results.map(({ status }) => status)).toEqual(["sent", "sent", "sent"]);
      expect(new Set(results.map((result) => (result.status === "sent" ? result.messageId : ""))).size).toBe(3);
    });

    test("are told apart by the prefix of each outbox", async () => {
      const first = await publishOne(message("shared"));
      const other = await withBroker({ messageIdPrefix: "shop2/" }, (by) => publishOne(message("shared"), by));
      expect(other).toMatchObject({ status: "sent" });
      expect(other).not.toEqual(first);
    });
  });

  describe("a stream", () => {
    test("that is full pauses its topic without counting, and goes on when there is room", async () => {
      const name = uniqueName("full");
      await makeStream({ name, subjects: [name], max_msgs: 2, discard: "new" });
      const batch = ["1", "2", "3", "4"].map((key) => message(`full-${key}`, { topic: name, orderingKey: "k" }));
      const results = await broker.publish([...batch, message("full-5", { topic })], noDeadline());
      expect(results).toMatchObject(
        [
          { status: "sent" },
          { status: "sent" },
          {
            status: "failed",
            scope: "destination",
            code: "STREAM_FULL",
            reason: /maximum messages exceeded/,
            retryAfterMs: 1000,
          },
          { status: "notStarted" },
          { status: "sent" },
        ].map((each) => ("reason" in each ? { ...each, reason: expect.stringMatching(each.reason) } : each)),
      );
      await admin.updateStream(name, { max_msgs: 10 });
      expect(await broker.publish(batch.slice(2), noDeadline())).toMatchObject([
        { status: "sent" },
        { status: "sent" },
      ]);
    });

    test("that does not exist fails its messages and no others, and works once it exists", async () => {
      const name = uniqueName("missing");
      const results = await broker.publish([message("s-1", { topic: name }), message("s-2")], noDeadline());
      expect(results).toMatchObject([
        { status: "failed", scope: "message", retriable: true, code: "STREAM_NOT_FOUND" },
        { status: "sent" },
      ]);
      expect(results[0]).toMatchObject({
        reason: expect.stringContaining(`nats stream add NAME --subjects '${name}'`),
      });
      await makeStream({ name, subjects: [name] });
      expect(await publishOne(message("s-1", { topic: name }))).toMatchObject({ status: "sent" });
    });

    test("that is not the expected one refuses the message", async () => {
      await withBroker({ stream: (each) => (each === topic ? stream : "ELSEWHERE") }, async (by) => {
        const results = await by.publish([message("x-1", { topic: `${stream}.x` }), message("x-2")], noDeadline());
        expect(results).toMatchObject([
          { status: "failed", scope: "message", retriable: true, code: "WRONG_STREAM" },
          { status: "sent" },
        ]);
      });
    });

    test("with a smaller limit than the server refuses larger messages for good", async () => {
      const name = uniqueName("small");
      await makeStream({ name, subjects: [name], max_msg_size: 1000 });
      const batch = [message("l-1", { topic: name, body: "x".repeat(1001) }), message("l-2", { topic: name })];
      expect(await broker.publish(batch, noDeadline())).toMatchObject([
        { status: "failed", scope: "message", retriable: false, code: "MESSAGE_TOO_LARGE" },
        { status: "sent" },
      ]);
    });

    test("without receipts, or that does not exist, is refused by check; one in memory is warned of", async () => {
      const [silent, memory] = [uniqueName("silent"), uniqueName("memory")];
      await makeStream({ name: silent, subjects: [silent], no_ack: true });
      await makeStream({ name: memory, subjects: [memory], storage: "memory" });
      await withBroker({ stream: silent, ackTimeoutMs: 300 }, async (by) => {
        await expect(by.check()).rejects.toMatchObject({
          name: "BrokerError",
          code: "STREAM_WITHOUT_RECEIPTS",
          message: expect.stringContaining(`nats stream edit ${silent} --ack`),
        });
        // And nothing is called sent that nobody acknowledged.
        const result = await publishOne(message("silent", { topic: silent }), by);
        expect(result).toMatchObject({
          scope: "unknown",
          code: "ACK_TIMEOUT",
          reason: expect.stringContaining("no_ack"),
        });
      });
      await withBroker({ stream: "NO_SUCH_STREAM" }, async (by) => {
        await expect(by.check()).rejects.toThrow(/has no stream NO_SUCH_STREAM.*nats stream add/);
      });
      const warnings: string[] = [];
      await withBroker({ stream: memory, onWarning: (text) => warnings.push(text) }, (by) => by.check());
      expect(warnings).toEqual([expect.stringContaining(`${memory} is kept in memory`)]);
    });
  });

  describe("sizes", () => {
    test("up to the server's limit go out, one byte more fails alone and does not break the connection", async () => {
      const limit = admin.connection.info?.max_payload ?? 0;
      const sized = (key: string, bytes: number): OutgoingMessage => message(key, { body: Buffer.alloc(bytes, "x") });
      // Headers count too: their size is what the refusal of a body without room for them says.
      const refused = await publishOne(sized("big", limit));
      expect(refused).toMatchObject({
        status: "failed",
        scope: "message",
        retriable: false,
        code: "MESSAGE_TOO_LARGE",
      });
      const headerBytes = Number(/ \+ (\d+) bytes/.exec(refused?.status === "failed" ? refused.reason : "")?.[1]);
      const batch = [sized("big", limit - headerBytes), sized("too", limit - headerBytes + 1), message("small")];
      expect(await broker.publish(batch, noDeadline())).toMatchObject([
        { status: "sent" },
        { status: "failed", code: "MESSAGE_TOO_LARGE", reason: expect.stringContaining("max_payload") },
        { status: "sent" },
      ]);
    });

    test("of headers have a limit of their own", async () => {
      const one = message("headers");
      const results = await broker.publish(
        [{ ...one, headers: { ...one.headers, note: "x".repeat(70_000) } }, message("headers-2")],
        noDeadline(),
      );
      expect(results).toMatchObject([
        { status: "failed", scope: "message", retriable: false, code: "HEADERS_TOO_LARGE" },
        { status: "sent" },
      ]);
    });
  });

  test.each([
    "",
    "a b",
    "a..b",
    ".a",
    "a.",
    "a.*",
    ">",
    "$JS.API.STREAM.DELETE.x",
    "_INBOX.x",
    "tab\there",
    "x".repeat(3000),
  ])("a topic that is no subject (%j) fails alone and for good", async (illegal) => {
    const results = await broker.publish([message("i-1", { topic: illegal }), message("i-2")], noDeadline());
    expect(results).toMatchObject([
      { status: "failed", scope: "message", retriable: false, code: "ILLEGAL_SUBJECT" },
      { status: "sent" },
    ]);
  });

  test("topics are mapped; a mapping that throws fails its own messages", async () => {
    const subject = (name: string): string => {
      if (name === "unmapped") throw new Error("not in my list");
      return `${stream}.mapped.${name.replace(" ", "_")}`;
    };
    await withBroker({ subject }, async (by) => {
      const batch = [message("map-1", { topic: "a b" }), message("map-2", { topic: "unmapped" })];
      expect(await by.publish(batch, noDeadline())).toMatchObject([
        { status: "sent" },
        {
          status: "failed",
          scope: "message",
          code: "TOPIC_NOT_MAPPED",
          reason: expect.stringContaining("not in my list"),
        },
      ]);
      expect((await admin.stored(stream)).at(-1)?.subject).toBe(`${stream}.mapped.a_b`);
    });
  });

  test("an answer of a program that is not JetStream is no receipt", async () => {
    const subject = uniqueName("service");
    const subscription = admin.connection.subscribe(subject, {
      callback: (_error, asked) => void asked.respond("thanks"),
    });
    await admin.connection.flush();
    try {
      await withBroker({ ackTimeoutMs: 300 }, async (by) => {
        const result = await publishOne(message("service", { topic: subject }), by);
        expect(result).toMatchObject({
          scope: "unknown",
          code: "ACK_TIMEOUT",
          reason: expect.stringContaining("not JetStream"),
        });
        // Where a stream takes the subject too, its receipt counts, whoever answers first.
        await makeStream({ name: subject, subjects: [subject] });
        expect(await publishOne(message("service", { topic: subject }), by)).toMatchObject({ status: "sent" });
      });
    } finally {
      subscription.unsubscribe();
    }
  });

  test.each<[what: string, answer: (asked: Msg) => void]>([
    ["JSON-RPC without an error", (asked) => void asked.respond('{"jsonrpc":"1.0","result":"ok","error":null}')],
    ["headers that cannot be read", (asked) => void asked.respond("", { headers: rawHeaders("a b: c") })],
  ])("an answer of another program (%s) leaves the rest of the connection alone", async (_what, answer) => {
    const [subject, other] = [uniqueName("service"), uniqueName("other")];
    const subscription = admin.connection.subscribe(subject, { callback: (_error, asked) => answer(asked) });
    await admin.connection.flush();
    const connection = await connect({ servers });
    const received: string[] = [];
    connection.subscribe(other, { callback: (_error, each) => void received.push(each.string()) });
    try {
      await withBroker({ connection, ackTimeoutMs: 1000 }, async (by) => {
        const result = await publishOne(message("other-program", { topic: subject }), by);
        const reason = expect.stringContaining("not JetStream");
        expect(result).toMatchObject({ scope: "unknown", code: "ACK_TIMEOUT", reason });
        expect(await publishOne(message(uniqueName("after")), by)).toMatchObject({ status: "sent" });
      });
      connection.publish(other, "still read");
      await connection.flush();
      expect(received).toEqual(["still read"]);
    } finally {
      subscription.unsubscribe();
      await connection.close();
    }
  });

  test("an abort right behind the call, before anything went out: nothing was started", async () => {
    const key = uniqueName("at-once");
    await broker.check();
    const aborting = new AbortController();
    const publishing = broker.publish([message(key), message(`${key}-2`, { orderingKey: "k" })], aborting);
    aborting.abort();
    expect(await publishing).toMatchObject([{ status: "notStarted" }, { status: "notStarted" }]);
    // On the same connection, so that anything that went out before it is stored by then.
    expect(await publishOne(message(`${key}-3`))).toMatchObject({ status: "sent" });
    const stored = (await admin.stored(stream)).map(({ headers }) => headers["rowpost-key"]);
    expect(stored.filter((each) => each?.startsWith(key))).toEqual([`${key}-3`]);
  });

  test("500 messages in one call, 8 calls at once: each stored once", async () => {
    const subject = `${stream}.many`;
    const calls = Array.from({ length: 8 }, (_call, call) =>
      Array.from({ length: 500 }, (_, index) => message(`many-${call}-${index}`, { topic: subject })),
    );
    const before = (await admin.stored(stream)).length;
    const results = await Promise.all(calls.map((batch) => broker.publish(batch, noDeadline())));
    expect(results.flat().every(({ status }) => status === "sent")).toBe(true);
    const receipts = new Set(results.flat().map((result) => (result.status === "sent" ? result.messageId : "")));
    expect(receipts.size).toBe(4000);
    expect(await admin.stored(stream)).toHaveLength(before + 4000);
  });

  describe("a connection that was handed in", () => {
    test("is used, and left open without a trace", async () => {
      const connection = await connect({ servers });
      try {
        const own = nats({ connection });
        await own.check();
        expect(await publishOne(message("given-1"), own)).toMatchObject({ status: "sent" });
        await own.close();
        expect(await publishOne(message("given-2"), own)).toMatchObject({ scope: "connection", code: "CLOSED" });
        expect(connection.isClosed()).toBe(false);
        await connection.flush();
      } finally {
        await connection.close();
      }
    });

    test("may reconnect: unknown, then held back, then sent", async () => {
      const proxy = await createTcpProxy({ target: { port: Number(new URL(service.address).port) } });
      const connection = await connect({
        servers: `127.0.0.1:${proxy.port}`,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 20,
        reconnectJitter: 0,
      });
      try {
        await withBroker({ connection }, async (by) => {
          expect(await publishOne(message("re-1"), by)).toMatchObject({ status: "sent" });
          proxy.mute("toClient");
          const publishing = publishOne(message("re-2"), by);
          await proxy.refuse();
          await proxy.cut();
          proxy.unmute();
          expect(await publishing).toMatchObject({ scope: "unknown", code: "CONNECTION_LOST" });
          expect(await publishOne(message("re-3"), by)).toMatchObject({ scope: "connection" });
          await proxy.accept();
          const again = async (): Promise<string | undefined> => (await publishOne(message("re-3"), by))?.status;
          await expect.poll(again, { timeout: 30_000, interval: 20 }).toBe("sent");
        });
      } finally {
        await connection.close();
        await proxy.close();
      }
    });

    test("and was closed by its owner turns everything away", async () => {
      const connection = await connect({ servers });
      await withBroker({ connection }, async (by) => {
        expect(await publishOne(message("closed-1"), by)).toMatchObject({ status: "sent" });
        await connection.close();
        expect(await publishOne(message("closed-2"), by)).toMatchObject({ scope: "connection", code: "CLOSED" });
        await expect(by.check()).rejects.toThrow(/handed in is closed/);
      });
    });
  });
});

/** Headers as no client of NATS writes them. */
function rawHeaders(line: string): MsgHdrs {
  return { encode: () => Buffer.from(`NATS/1.0\r\n${line}\r\n\r\n`) } as unknown as MsgHdrs;
}
