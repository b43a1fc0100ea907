/**
 * The RabbitMQ broker on a server of its own, which is killed, frozen, filled up and run out of
 * memory: what the broker contract does not ask.
 */
import type { Socket } from "node:net";
import { type ChannelModel, connect } from "amqplib";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { type RabbitmqOptions, rabbitmq } from "../../src/brokers/rabbitmq/index.ts";
import { BrokerError } from "../../src/runtime/errors.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { TEST_CERTIFICATE } from "./certificate.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { openTestQueues, type TestQueues } from "./rabbitmq-queues.ts";
import { type PrivateRabbitmq, startPrivateRabbitmq } from "./rabbitmq-server.ts";

/** `max_message_size` of the server. */
const SERVER_LIMIT = 100_000;

describeWithService("rabbitmq", "the RabbitMQ broker and its faults", () => {
  let server: PrivateRabbitmq;
  let queues: TestQueues;
  const closers: (() => unknown)[] = [];

  beforeAll(async () => {
    server = await startPrivateRabbitmq([`max_message_size = ${SERVER_LIMIT}`]);
    queues = await openTestQueues(server.url);
  }, 120_000);

  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  afterAll(async () => {
    await queues?.connection.close().catch(() => undefined);
    await server?.remove();
  }, 60_000);

  function create(options: Partial<RabbitmqOptions> = {}): Broker {
    const where = options.connection === undefined ? { url: server.url } : {};
    const broker = rabbitmq({ ...where, connectTimeoutMs: 2_000, ...options });
    closers.push(() => broker.close());
    return broker;
  }

  const within = (ms: number): { readonly signal: AbortSignal } => ({ signal: AbortSignal.timeout(ms) });

  describe("what a consumer gets", () => {
    test("properties say what the message is, and the receipt where it went", async () => {
      const topic = await queues.create("properties");
      const broker = create();
      const before = Math.floor(Date.now() / 1_000);
      const headers = { ...outgoing("4711").headers, tenant: "blue", "": "nameless", __proto__2: "x" };
      const [result] = await broker.publish([outgoing("4711", { topic, headers })], noDeadline());
      expect(result).toMatchObject({ status: "sent" });
      expect(receiptOf(result)).toMatch(new RegExp(`^/${topic}#[\\w-]{8}-1$`));
      const { content, properties } = (await queues.take(topic)) ?? {};
      expect(content?.toString()).toBe('{"order":"4711"}');
      expect(properties).toMatchObject({
        messageId: "order.created:4711",
        type: "order.created",
        contentType: "application/json",
        deliveryMode: 2,
        headers,
      });
      expect(properties?.timestamp).toBeGreaterThanOrEqual(before);
    });

    test("each message of a batch has its own headers, and no other's", async () => {
      const topic = await queues.create("headers");
      const own: Record<string, string>[] = [{ tenant: "blue" }, {}, { valueOf: "x", tenant: "red" }, { region: "eu" }];
      const batch = own.map((more, index) => {
        const plain = outgoing(`h-${index}`, { topic });
        return { ...plain, headers: { ...plain.headers, ...more } };
      });
      await create().publish(batch, noDeadline());
      for (const { headers } of batch) expect((await queues.take(topic))?.properties.headers).toEqual(headers);
    });

    test("a long identity becomes a digest, the same for every attempt; a type that does not fit is in the headers only", async () => {
      const topic = await queues.create("long");
      const type = "🚚".repeat(64);
      const broker = create();
      for (const attempt of [1, 2]) {
        expect(await broker.publish([outgoing("k", { topic, type, attempt })], noDeadline())).toMatchObject([
          { status: "sent" },
        ]);
      }
      const [first, second] = [await queues.take(topic), await queues.take(topic)];
      expect(first?.properties.messageId).toMatch(/^sha256-[\w-]{43}$/);
      expect(second?.properties.messageId).toBe(first?.properties.messageId);
      expect(first?.properties.type).toBeUndefined();
      expect(first?.properties.headers?.["rowpost-type"]).toBe(type);
    });

    test("receipts are different over channels and connections, and fit into their column", async () => {
      const topic = await queues.create("receipts");
      const exchange = "e".repeat(255);
      await queues.channel.assertExchange(exchange, "fanout", { autoDelete: true });
      await queues.channel.bindQueue(topic, exchange, "");
      const receipts: string[] = [];
      for (let connection = 0; connection < 2; connection += 1) {
        const broker = create({ route: () => ({ exchange, routingKey: "钥".repeat(85) }) });
        for (const key of ["1", "2"]) {
          const [result] = await broker.publish([outgoing(key, { topic })], noDeadline());
          receipts.push(receiptOf(result));
        }
      }
      expect(new Set(receipts).size).toBe(4);
      for (const receipt of receipts) expect(receipt).toHaveLength(255);
    });
  });

  describe("a message that no queue takes", () => {
    test("is returned and fails; its neighbors go out", async () => {
      const topic = await queues.create("there");
      const missing = queues.name("missing");
      const broker = create();
      const batch = [topic, missing, topic, missing].map((each, index) => outgoing(`r-${index}`, { topic: each }));
      const results = await broker.publish(batch, noDeadline());
      expect(results).toMatchObject([
        { status: "sent" },
        { status: "failed", scope: "message", retriable: true, code: "NO_ROUTE" },
        { status: "sent" },
        { status: "failed", scope: "message", retriable: true, code: "NO_ROUTE" },
      ]);
      expect(reasonOf(results[1])).toContain(missing);
      await queues.channel.assertQueue(missing, { durable: true, autoDelete: true });
      expect(await broker.publish(batch.slice(1, 2), noDeadline())).toMatchObject([{ status: "sent" }]);
      await queues.channel.deleteQueue(missing);
    });

    test("holds back the later ones of its ordering key, also where those would find a queue", async () => {
      const topic = await queues.create("keyed");
      const missing = queues.name("missing");
      const broker = create({ route: ({ key }) => ({ routingKey: key === "o-1" ? missing : topic }) });
      const batch = ["o-0", "o-1", "o-2", "o-3"].map((key) => outgoing(key, { topic, orderingKey: "customer" }));
      const results = await broker.publish([...batch, outgoing("free", { topic })], noDeadline());
      expect(results.map(({ status }) => status)).toEqual(["sent", "failed", "notStarted", "notStarted", "sent"]);
      const keys = [await queues.take(topic), await queues.take(topic), await queues.take(topic)].map(
        (message) => message?.properties.messageId,
      );
      expect(new Set(keys)).toEqual(new Set(["order.created:free", "order.created:o-0", undefined]));
    });
  });

  test("one that was returned and cannot be told makes no other one sent", async () => {
    const topic = await queues.create("told");
    const missing = queues.name("missing");
    const broker = create({ route: ({ key }) => ({ routingKey: key.startsWith("lost") ? missing : topic }) });
    // Half of a surrogate pair becomes another character on the wire, and comes back as that.
    const batch = [outgoing("first", { topic }), outgoing("lost \ud83d", { topic }), outgoing("last", { topic })];
    const results = await broker.publish(batch, noDeadline());
    expect(results[1]).toMatchObject({ status: "failed", scope: "unknown", code: "RETURN_UNKNOWN" });
    expect(statuses(await broker.publish([outgoing("next", { topic })], noDeadline()))).toEqual({ sent: 1 });
  });

  describe("two messages of the same identity and attempt, from two tables", () => {
    test("one that is returned is told from one that is stored by its routing key", async () => {
      const topic = await queues.create("twins");
      const missing = queues.name("missing");
      const broker = create();
      await broker.check();
      const calls = [topic, missing].map((each) => broker.publish([outgoing("twin", { topic: each })], noDeadline()));
      expect(await Promise.all(calls)).toMatchObject([
        [{ status: "sent" }],
        [{ status: "failed", scope: "message", code: "NO_ROUTE" }],
      ]);
      expect((await queues.take(topic))?.properties.messageId).toBe("order.created:twin");
    });

    test("those with the same routing key go one after the other; the first one's deadline does not hold up the second", async () => {
      const topic = await queues.create("twins");
      const exchange = queues.name("headers");
      await queues.channel.assertExchange(exchange, "headers", { durable: true, autoDelete: true });
      await queues.channel.bindQueue(topic, exchange, "", { "x-match": "all", tenant: "blue" });
      const proxy = await createTcpProxy({ target: { port: server.port } });
      closers.push(() => proxy.close());
      const url = server.url.replace(String(server.port), String(proxy.port));
      const broker = create({ url, route: () => ({ exchange, routingKey: "same" }) });
      const publish = (tenant: string, { signal } = noDeadline()): Promise<PublishResult[]> => {
        const plain = outgoing("twin", { topic });
        return broker.publish([{ ...plain, headers: { ...plain.headers, tenant } }], { signal });
      };
      expect(await Promise.all(["blue", "red", "blue", "red"].map((tenant) => publish(tenant)))).toMatchObject([
        [{ status: "sent" }],
        [{ status: "failed", code: "NO_ROUTE" }],
        [{ status: "sent" }],
        [{ status: "failed", code: "NO_ROUTE" }],
      ]);
      proxy.mute("toClient");
      const deadline = new AbortController();
      const [first, second] = [publish("red", deadline), publish("blue")];
      deadline.abort();
      expect(await first).toMatchObject([{ status: "failed", scope: "unknown", code: "CONFIRM_TIMEOUT" }]);
      proxy.unmute();
      expect(await second).toMatchObject([{ status: "sent" }]);
    });
  });

  describe("a full queue that rejects", () => {
    test("pauses its topic uncounted; other topics go on; there is room again, and it goes out", async () => {
      const full = await queues.create("full", { "x-max-length": 2, "x-overflow": "reject-publish" });
      const other = await queues.create("other");
      const broker = create();
      const batch = [
        ...["f-1", "f-2", "f-3", "f-4"].map((key) => outgoing(key, { topic: full, orderingKey: "customer" })),
        outgoing("p-1", { topic: other }),
      ];
      const results = await broker.publish(batch, noDeadline());
      expect(results).toMatchObject([
        { status: "sent" },
        { status: "sent" },
        { status: "failed", scope: "destination", code: "NACKED" },
        { status: "notStarted" },
        { status: "sent" },
      ]);
      await queues.channel.purgeQueue(full);
      expect(statuses(await broker.publish(batch.slice(2, 4), noDeadline()))).toEqual({ sent: 2 });
      expect((await queues.take(full))?.properties.messageId).toBe("order.created:f-3");
    });
  });

  describe("exchanges", () => {
    test("one that is missing hurts only its own messages, and is found once it is there", async () => {
      const topic = await queues.create("good");
      const exchange = queues.name("exchange");
      const broker = create({
        route: ({ key }) => ({ exchange: key.startsWith("bad") ? exchange : "", routingKey: topic }),
      });
      const keys = Array.from({ length: 200 }, (_, index) => `${index % 2 === 0 ? "bad" : "good"}-${index}`);
      for (let round = 0; round < 3; round += 1) {
        const results = await broker.publish(
          keys.map((key) => outgoing(key, { topic })),
          noDeadline(),
        );
        for (const [index, result] of results.entries()) {
          if (index % 2 === 1) expect(result).toMatchObject({ status: "sent" });
          else expect(result).toMatchObject({ status: "failed", scope: "message", retriable: true, code: "NOT_FOUND" });
        }
        expect(reasonOf(results[0])).toContain(exchange);
      }
      await queues.channel.assertExchange(exchange, "fanout", { autoDelete: true });
      await queues.channel.bindQueue(topic, exchange, "");
      await expect
        .poll(() => broker.publish([outgoing("bad-now", { topic })], noDeadline()), { timeout: 30_000, interval: 50 })
        .toMatchObject([{ status: "sent" }]);
    });

    test("one that is deleted while messages are on their way leaves them unknown, then missing", async () => {
      const topic = await queues.create("deleted");
      const exchange = await queues.createExchange("fanout");
      await queues.channel.bindQueue(topic, exchange, "");
      const broker = create({ exchange });
      await broker.check();
      expect(await broker.publish([outgoing("d-0", { topic })], noDeadline())).toMatchObject([{ status: "sent" }]);
      await queues.channel.deleteExchange(exchange);
      const [first] = await broker.publish([outgoing("d-1", { topic })], noDeadline());
      expect(first).toMatchObject({ status: "failed", scope: "unknown", code: "NOT_FOUND" });
      const [second] = await broker.publish([outgoing("d-1", { topic })], noDeadline());
      expect(second).toMatchObject({ status: "failed", scope: "message", retriable: true, code: "NOT_FOUND" });
      await expect(broker.check()).rejects.toMatchObject({
        code: "NOT_FOUND",
        message: expect.stringContaining("declare it"),
      });
    });

    test("one that the user may not write to pauses its topics uncounted", async () => {
      const user = `user-${process.pid}`;
      await server.ctl("add_user", user, "secret");
      await server.ctl("set_permissions", user, ".*", "^(allowed|amq\\.default)$", ".*");
      const topic = await queues.create("permission");
      const broker = create({
        username: user,
        password: "secret",
        route: ({ key }) => ({ exchange: key, routingKey: topic }),
      });
      const results = await broker.publish([outgoing("amq.fanout", { topic }), outgoing("", { topic })], noDeadline());
      expect(results).toMatchObject([
        { status: "failed", scope: "destination", code: "ACCESS_REFUSED" },
        { status: "sent" },
      ]);
      expect(reasonOf(results[0])).toContain("grant the user");
    }, 90_000); // each ctl starts an Erlang of its own, which takes 2 s, or 15 on a busy machine
  });

  test("a routing key that the user may not write with pauses its own topics, and no others of the exchange", async () => {
    const user = `topics-${process.pid}`;
    const topic = await queues.create("topics");
    const exchange = await queues.createExchange("topic");
    await queues.channel.bindQueue(topic, exchange, "#");
    await server.ctl("add_user", user, "secret");
    await server.ctl("set_permissions", user, ".*", ".*", ".*");
    await server.ctl("set_topic_permissions", user, exchange, "^public", ".*");
    const broker = create({ username: user, password: "secret", exchange });
    await broker.check();
    const keys = ["public.a", "secret.b", "public.c", "secret.b"];
    const batch = keys.map((key, index) => outgoing(`t-${index}`, { topic: key }));
    const results = await broker.publish(batch, noDeadline());
    expect(results).toMatchObject([
      { status: "failed", scope: "unknown", code: "ACCESS_REFUSED" },
      { status: "failed", scope: "destination", code: "ACCESS_REFUSED" },
      { status: "failed", scope: "unknown", code: "ACCESS_REFUSED" },
      { status: "failed", scope: "destination", code: "ACCESS_REFUSED" },
    ]);
    expect(reasonOf(results[1])).toContain("the routing key secret.b");
    // At once: the refusal is remembered for the routing key, so that it does not end the channel
    // again.
    expect(await broker.publish(batch, noDeadline())).toMatchObject([
      { status: "sent" },
      { status: "failed", scope: "destination", code: "ACCESS_REFUSED" },
      { status: "sent" },
      { status: "failed", scope: "destination", code: "ACCESS_REFUSED" },
    ]);
  }, 90_000); // each ctl starts an Erlang of its own, which takes 2 s, or 15 on a busy machine

  describe("what cannot be sent", () => {
    test("fails alone, before anything is handed over", async () => {
      const topic = await queues.create("alone");
      const broker = create({ route: ({ key, topic: name }) => routeOf(key, name) });
      const bad: readonly (readonly [Partial<OutgoingMessage> & { key: string }, string])[] = [
        [{ key: "body", body: "x".repeat(16_777_217) }, "BODY_TOO_LARGE"],
        [{ key: "cc", headers: { CC: "elsewhere" } }, "HEADER_RESERVED"],
        [{ key: "name", headers: { ["n".repeat(256)]: "x" } }, "HEADER_NAME_TOO_LONG"],
        [{ key: "table", headers: { big: "界".repeat(25_000) } }, "HEADERS_TOO_LARGE"],
        [{ key: "type", contentType: "t".repeat(256) }, "CONTENT_TYPE_TOO_LONG"],
        [{ key: "long-key" }, "ROUTE_TOO_LONG"],
        [{ key: "long-exchange" }, "ROUTE_TOO_LONG"],
        [{ key: "no-text" }, "ROUTE_INVALID"],
      ];
      const batch = bad.flatMap(([changes], index) => [
        outgoing(changes.key, { topic, ...changes }),
        outgoing(`good-${index}`, { topic }),
      ]);
      const results = await broker.publish(batch, noDeadline());
      for (const [index, [{ key }, code]] of bad.entries()) {
        expect(results[2 * index], key).toMatchObject({ status: "failed", scope: "message", retriable: false, code });
        expect(results[2 * index + 1]).toMatchObject({ status: "sent" });
      }
      const channels = new Set(results.map(receiptOf).map((receipt) => receipt.replace(/-\d+$/, "")));
      expect(channels.size, "one channel for all, and none for what was refused").toBe(2);
    });

    test("a mapping that throws fails the message, which can be retried", async () => {
      const broker = create({
        route: () => {
          throw new Error("no such tenant");
        },
      });
      expect(await broker.publish([outgoing("m")], noDeadline())).toMatchObject([
        { scope: "message", retriable: true, code: "ROUTE_FAILED", reason: expect.stringContaining("no such tenant") },
      ]);
    });

    test("a mapping that returns nothing fails the message for good; others go on, also behind a confirm", async () => {
      const topic = await queues.create("unmapped");
      const route = ({ key }: OutgoingMessage) =>
        (key.startsWith("un") ? (key === "unknown" ? null : undefined) : { routingKey: topic }) as {
          routingKey: string;
        };
      const broker = create({ route });
      const batch = [
        outgoing("k-1", { topic, orderingKey: "customer" }),
        outgoing("unmapped", { topic, orderingKey: "customer" }),
        outgoing("k-3", { topic, orderingKey: "customer" }),
        outgoing("unknown", { topic }),
        outgoing("free", { topic }),
      ];
      expect(await broker.publish(batch, noDeadline())).toMatchObject([
        { status: "sent" },
        { status: "failed", scope: "message", retriable: false, code: "ROUTE_INVALID" },
        { status: "notStarted" },
        { status: "failed", scope: "message", retriable: false, code: "ROUTE_INVALID" },
        { status: "sent" },
      ]);
    });

    test("a message that faults ends its own call, and not the connection with all that is on its way", async () => {
      const topic = await queues.create("faults");
      const connection = await connect(server.url);
      connection.on("error", () => undefined);
      closers.push(() => connection.close().catch(() => undefined));
      const broker = create({ connection, route: () => ({ routingKey: topic }) });
      const fault = (): never => {
        throw new Error("a getter that faults");
      };
      const headers = new Proxy({}, { ownKeys: fault });
      const behind = [
        outgoing("k-1", { topic, orderingKey: "customer" }),
        outgoing("k-2", { topic, orderingKey: "customer", headers }),
      ];
      const faulty = Object.defineProperty(outgoing("f"), "topic", { get: fault });
      const results = [behind, [faulty], [outgoing("good", { topic })]].map((batch) =>
        broker.publish(batch, noDeadline()),
      );
      expect(await Promise.all(results)).toMatchObject([
        [{ status: "sent" }, { status: "failed", scope: "message", retriable: false, code: "MESSAGE_INVALID" }],
        [{ status: "failed", scope: "unknown", code: "PUBLISH_FAULT" }],
        [{ status: "sent" }],
      ]);
      expect(await broker.publish([outgoing("next", { topic })], noDeadline())).toMatchObject([{ status: "sent" }]);
    });

    test("headers that just fit arrive", async () => {
      const topic = await queues.create("headers");
      const broker = create();
      const headers = { big: "x".repeat(65_536 - 4 - 6 - 3) };
      expect(await broker.publish([outgoing("h", { topic, headers })], noDeadline())).toMatchObject([
        { status: "sent" },
      ]);
      expect((await queues.take(topic))?.properties.headers).toEqual(headers);
      const larger = { big: `${headers.big}x` };
      expect(await broker.publish([outgoing("h", { topic, headers: larger })], noDeadline())).toMatchObject([
        { code: "HEADERS_TOO_LARGE" },
      ]);
    });

    test("a body above the server's own limit fails; the limit is known from then on", async () => {
      const topic = await queues.create("limit");
      const broker = create();
      const large = outgoing("large", { topic, body: "x".repeat(SERVER_LIMIT + 1) });
      const good = Array.from({ length: 20 }, (_, index) => outgoing(`g-${index}`, { topic }));
      const batch = [...good.slice(0, 10), large, ...good.slice(10)];
      const results = await broker.publish(batch, noDeadline());
      expect(results[10]).toMatchObject({ scope: "message", retriable: false, code: "BODY_TOO_LARGE" });
      for (const result of results) {
        if (result !== results[10] && result.status === "failed") expect(result.scope).toBe("unknown");
      }
      const again = await broker.publish(batch, noDeadline());
      expect(again[10]).toMatchObject({ scope: "message", retriable: false, code: "BODY_TOO_LARGE" });
      expect(statuses(again)).toMatchObject({ sent: 20 });
    });
  });

  describe("a resource alarm", () => {
    test("is back-pressure: nothing is handed over or counted while it lasts, and the connection stays", async () => {
      const topic = await queues.create("alarm");
      const broker = create();
      const proxy = await createTcpProxy({ target: { port: server.port } });
      closers.push(() => proxy.close());
      const recovering = await connect(server.url.replace(String(server.port), String(proxy.port)), { recovery: true });
      recovering.on("error", () => undefined);
      closers.push(() => recovering.close());
      const onRecovering = create({ connection: recovering });
      for (const each of [broker, onRecovering]) {
        expect(await each.publish([outgoing("a-0", { topic })], noDeadline())).toMatchObject([{ status: "sent" }]);
      }
      await server.ctl("set_vm_memory_high_watermark", "absolute", "1000");
      try {
        let last: PublishResult | undefined;
        const seen: PublishResult[] = [];
        // The server tells of its alarm after the first message that comes in it, which may still
        // be stored.
        await expect
          .poll(
            async () => {
              [last] = await broker.publish([outgoing(`a-${seen.length + 1}`, { topic })], within(1_000));
              if (last !== undefined) seen.push(last);
              return last;
            },
            { timeout: 30_000, interval: 10 },
          )
          .toMatchObject({ status: "failed", scope: "connection", code: "CONNECTION_BLOCKED" });
        // Known by now, and told before the deadline.
        const deadline = within(20_000);
        expect(await broker.publish([outgoing("a-x", { topic })], deadline)).toMatchObject([
          { status: "failed", scope: "connection", code: "CONNECTION_BLOCKED" },
        ]);
        expect(deadline.signal.aborted).toBe(false);
        await expect(broker.check()).rejects.toMatchObject({ code: "CONNECTION_BLOCKED", retriable: true });
        const blocked = new Promise((resolve) => recovering.once("blocked", resolve));
        await onRecovering.publish([outgoing("b-1", { topic })], within(1_000));
        await blocked;
        const disconnected = new Promise((resolve) => recovering.once("disconnect", resolve));
        await proxy.cut();
        await disconnected;
      } finally {
        await server.ctl("set_vm_memory_high_watermark", "0.8");
      }
      await expect
        .poll(() => broker.publish([outgoing("a-y", { topic })], within(2_000)), { timeout: 30_000, interval: 50 })
        .toMatchObject([{ status: "sent" }]);
      // A connection that came anew during the alarm was never told that it ended.
      await expect
        .poll(() => onRecovering.publish([outgoing("b-y", { topic })], within(2_000)), {
          timeout: 30_000,
          interval: 50,
        })
        .toMatchObject([{ status: "sent" }]);
    }, 60_000);
  });

  describe("a server that goes away", () => {
    test("killed in the middle of a batch: what was confirmed is still there, the rest is unknown or not handed over", async () => {
      const topic = await queues.create("killed");
      const broker = create({ maxInFlight: 50 });
      await broker.publish([outgoing("k-0", { topic })], noDeadline());
      await server.saveQueues();
      const batch = Array.from({ length: 20_000 }, (_, index) => outgoing(`k-${index}`, { topic }));
      const publishing = broker.publish(batch, within(20_000));
      await server.kill();
      const results = await publishing;
      for (const result of results) {
        const honest = result.status !== "failed" || result.scope === "unknown" || result.scope === "connection";
        expect(honest, JSON.stringify(result)).toBe(true);
      }
      await server.start();
      queues = await openTestQueues(server.url);
      let left = batch.filter((_message, index) => results[index]?.status !== "sent");
      const confirmed = batch.length - left.length;
      expect(left.length).toBeGreaterThan(0);
      const arrived = new Set<string>();
      await queues.channel.consume(topic, (message) => void arrived.add(String(message?.properties.messageId)), {
        noAck: true,
      });
      await expect.poll(() => arrived.size, { timeout: 30_000 }).toBeGreaterThanOrEqual(confirmed);
      const stillThere = batch.filter((_message, index) => results[index]?.status === "sent");
      for (const { key } of stillThere) expect(arrived.has(`order.created:${key}`), `${key} was confirmed`).toBe(true);
      await expect
        .poll(
          async () => {
            const again = await broker.publish(left, within(20_000));
            left = left.filter((_message, index) => again[index]?.status !== "sent");
            return left.length;
          },
          { timeout: 30_000 },
        )
        .toBe(0);
      await expect.poll(() => arrived.size, { timeout: 30_000 }).toBe(batch.length);
    }, 120_000);

    test("frozen: a call ends at its deadline, the next finds the connection dead, and it comes back", async () => {
      const topic = await queues.create("frozen");
      const broker = create({ connectTimeoutMs: 500 });
      await broker.publish([outgoing("z-0", { topic })], noDeadline());
      await server.freeze();
      try {
        const orderingKey = "customer";
        const batch = ["z-1", "z-2", "z-3"].map((key, index) =>
          outgoing(key, { topic, ...(index > 0 && { orderingKey }) }),
        );
        const results = await broker.publish(batch, within(500));
        expect(results).toMatchObject([
          { status: "failed", scope: "unknown", code: "CONFIRM_TIMEOUT" },
          { status: "failed", scope: "unknown", code: "CONFIRM_TIMEOUT" },
          { status: "notStarted" },
        ]);
        // The channel with lost confirms is not used again; that no other can be opened shows that
        // the connection is dead.
        expect(await broker.publish(batch, within(5_000))).toMatchObject([
          { status: "failed", scope: "connection" },
          { status: "failed", scope: "connection" },
          { status: "notStarted" },
        ]);
      } finally {
        await server.thaw();
      }
      await expect
        .poll(() => broker.publish([outgoing("z-4", { topic })], within(2_000)), { timeout: 30_000, interval: 50 })
        .toMatchObject([{ status: "sent" }]);
    });

    test("the next node of the list is used, within the same call", async () => {
      const topic = await queues.create("nodes");
      const broker = create({ url: ["amqp://127.0.0.1:1", server.url] });
      await broker.check();
      expect(await broker.publish([outgoing("n", { topic })], noDeadline())).toMatchObject([{ status: "sent" }]);
    });
  });

  describe("deadlines and room", () => {
    test("more messages than may be on their way go out bit by bit, over several calls, to several exchanges", async () => {
      const topic = await queues.create("room");
      const exchange = await queues.createExchange("fanout");
      await queues.channel.bindQueue(topic, exchange, "");
      const broker = create({
        maxInFlight: 3,
        route: ({ key }) => ({ exchange: Number(key) % 2 === 0 ? "" : exchange, routingKey: topic }),
      });
      const calls = Array.from({ length: 4 }, (_, call) =>
        Array.from({ length: 250 }, (__, index) => outgoing(String(1_000 * call + index), { topic })),
      );
      const results = await Promise.all(calls.map((batch) => broker.publish(batch, noDeadline())));
      expect(statuses(results.flat())).toEqual({ sent: 1_000 });
    });

    test("at the deadline what waits for room was not started, and the room is free again", async () => {
      const topic = await queues.create("deadline");
      const proxy = await createTcpProxy({ target: { port: server.port } });
      closers.push(() => proxy.close());
      const broker = create({ url: server.url.replace(String(server.port), String(proxy.port)), maxInFlight: 3 });
      await broker.publish([outgoing("t-0", { topic })], noDeadline());
      proxy.mute("toClient");
      const batch = Array.from({ length: 10 }, (_, index) => outgoing(`t-${index}`, { topic }));
      const results = await broker.publish(batch, within(300));
      expect(results.map(({ status }) => status)).toEqual([...Array(3).fill("failed"), ...Array(7).fill("notStarted")]);
      proxy.unmute();
      expect(statuses(await broker.publish(batch, within(5_000)))).toEqual({ sent: 10 });
    });
  });

  describe("TLS", () => {
    test("with the server's certificate", async () => {
      const topic = await queues.create("tls");
      const broker = create({ url: `amqps://guest:guest@127.0.0.1:${server.tlsPort}`, tls: { ca: TEST_CERTIFICATE } });
      await broker.check();
      const batch = Array.from({ length: 50 }, (_, index) => outgoing(`tls-${index}`, { topic }));
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual({ sent: 50 });
      await broker.close();
    });

    test("an unknown certificate is refused, unless that is switched off", async () => {
      const url = `amqps://guest:guest@127.0.0.1:${server.tlsPort}`;
      await expect(create({ url }).check()).rejects.toMatchObject({
        name: "BrokerError",
        message: expect.stringContaining("tls.ca"),
      });
      await create({ url, tls: { rejectUnauthorized: false } }).check();
    });
  });

  describe("what is wrong is said, without the password", () => {
    test.each([
      ["the password", { password: "hunter2" }, "ACCESS_REFUSED", "check user (guest) and password"],
      ["the virtual host", { url: "" }, "VHOST_REFUSED", "refused the virtual host shop"],
    ] as const)("%s", async (_what, options, code, words) => {
      const url = code === "VHOST_REFUSED" ? `${server.url}/shop` : server.url;
      const broker = create({ ...options, url });
      const error: unknown = await broker.check().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(BrokerError);
      expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
      expect(String(error)).not.toContain("hunter2");
      const [result] = await broker.publish([outgoing("w")], noDeadline());
      expect(result).toMatchObject({ status: "failed", scope: "connection", code });
      expect(JSON.stringify(result)).not.toContain("hunter2");
    });
  });

  describe("a connection that was handed in", () => {
    async function open(): Promise<ChannelModel> {
      const connection = await connect(server.url);
      connection.on("error", () => undefined);
      closers.push(() => connection.close().catch(() => undefined));
      return connection;
    }

    test("is used, and left open with no listener of ours", async () => {
      const topic = await queues.create("handed");
      const connection = await open();
      const listeners = connection.listenerCount("close");
      const broker = rabbitmq(connection);
      await broker.check();
      expect(await broker.publish([outgoing("c", { topic })], noDeadline())).toMatchObject([{ status: "sent" }]);
      await broker.close();
      expect(connection.listenerCount("close")).toBe(listeners);
      const channel = await connection.createChannel();
      await channel.close();
    });

    test("gets the messages of a batch in few writes to its socket", async () => {
      const topic = await queues.create("writes");
      const connection = await open();
      const { stream } = (connection as unknown as { readonly connection: { readonly stream: Socket } }).connection;
      const broker = create({ connection });
      await broker.publish([outgoing("w", { topic })], noDeadline());
      const writes = [vi.spyOn(stream, "_write"), vi.spyOn(stream, "_writev" as "_write")];
      const batch = Array.from({ length: 500 }, (_, index) => outgoing(`w-${index}`, { topic }));
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual({ sent: 500 });
      const [single = 0, together = 0] = writes.map(({ mock }) => mock.calls.length);
      // 500 messages of some 230 bytes, a socket that takes 16 KiB at a time or more.
      expect(single + together).toBeLessThan(20);
      expect(stream.writableCorked).toBe(0);
    });

    test("whose end is the end of this broker", async () => {
      const connection = await open();
      const broker = create({ connection });
      await broker.check();
      await connection.close();
      expect(await broker.publish([outgoing("e")], noDeadline())).toMatchObject([
        { status: "failed", scope: "connection", code: "CONNECTION_CLOSED" },
      ]);
      await expect(broker.check()).rejects.toBeInstanceOf(BrokerError);
    });

    test("that recovers by itself goes on after a cut", async () => {
      const topic = await queues.create("recovering");
      const proxy = await createTcpProxy({ target: { port: server.port } });
      closers.push(() => proxy.close());
      const connection = await connect(server.url.replace(String(server.port), String(proxy.port)), { recovery: true });
      connection.on("error", () => undefined);
      closers.push(() => connection.close().catch(() => undefined));
      const broker = create({ connection });
      await broker.publish([outgoing("r-0", { topic })], noDeadline());
      const disconnected = new Promise((resolve) => connection.once("disconnect", resolve));
      await proxy.cut();
      await disconnected;
      await expect
        .poll(() => broker.publish([outgoing("r-1", { topic })], within(2_000)), { timeout: 30_000, interval: 50 })
        .toMatchObject([{ status: "sent" }]);
    });
  });
});

function routeOf(key: string, topic: string) {
  if (key === "long-key") return { routingKey: "k".repeat(256) };
  if (key === "long-exchange") return { exchange: "e".repeat(256), routingKey: topic };
  if (key === "no-text") return { routingKey: 7 as unknown as string };
  return { routingKey: topic };
}

function receiptOf(result: PublishResult | undefined): string {
  return result?.status === "sent" ? result.messageId : "";
}

function reasonOf(result: PublishResult | undefined): string {
  return result?.status === "sent" ? "" : (result?.reason ?? "");
}

function statuses(results: readonly PublishResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const result of results) {
    const name = result.status === "failed" ? `${result.scope} ${result.code}` : result.status;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
