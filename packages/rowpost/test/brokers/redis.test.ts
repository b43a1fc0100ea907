/**
 * The Redis broker beyond the contract: what stands in an entry, what each refusal of the server
 * means, and whose connection is used.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import {
  decodeRedisEntry,
  type RedisClient,
  type RedisOptions,
  redis,
  redisFromUrl,
} from "../../src/brokers/redis/index.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./certificate.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { countsWithCode } from "./outcomes.ts";
import {
  createAdmin,
  createStallingRelay,
  freePort,
  type PrivateRedis,
  startPrivateRedis,
  uniqueName,
} from "./redis-server.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function create(options: RedisOptions): Broker {
  const broker = redis(options);
  closers.push(() => broker.close());
  return broker;
}

const within = (ms: number): { readonly signal: AbortSignal } => ({ signal: AbortSignal.timeout(ms) });
const statuses = (results: readonly PublishResult[]): string[] =>
  results.map((result) => (result.status === "failed" ? `${result.scope} ${result.code}` : result.status));

describeWithService("redis", "the Redis broker", () => {
  let server: PrivateRedis;
  let admin: Redis;
  let url: string;

  beforeAll(async () => {
    server = await startPrivateRedis();
    admin = createAdmin(server.port);
    url = `redis://127.0.0.1:${server.port}`;
  }, 60_000);

  afterAll(async () => {
    admin?.disconnect();
    await server?.remove();
  });

  const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
    outgoing(key, { topic: "orders", ...changes });

  /** Changes the server's settings until the end of the test. */
  async function configure(settings: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, value] of Object.entries(settings)) {
      const [, before = ""] = await admin.config("GET", name);
      await admin.config("SET", name, value);
      closers.push(() => admin.config("SET", name, before));
    }
  }

  async function proxied() {
    const proxy = await createTcpProxy({ target: { port: server.port } });
    closers.push(() => proxy.close());
    return { proxy, url: `redis://127.0.0.1:${proxy.port}` };
  }

  describe("an entry", () => {
    test("has the documented fields in their order, and its id is the receipt", async () => {
      const topic = uniqueName("entry");
      const sent = message("1", {
        topic,
        body: "{}",
        orderingKey: "o-1",
        headers: { "rowpost-id": "t:1", city: "上海" },
      });
      const [result] = await create({ url }).publish([sent], noDeadline());
      const fields = [
        "body",
        "{}",
        "contentType",
        "application/json",
        "orderingKey",
        "o-1",
        "rowpost-id",
        "t:1",
        "city",
        "上海",
      ];
      const [[id]] = (await admin.xrange(topic, "-", "+")) as [[string, string[]]];
      expect(await admin.xrange(topic, "-", "+")).toEqual([[id, fields]]);
      expect(result).toEqual({ status: "sent", messageId: id });
    });

    test("keeps headers that are called like a field apart from it", async () => {
      const topic = uniqueName("entry");
      const headers = {
        body: "a header",
        contentType: "another",
        orderingKey: "third",
        "header:body": "fourth",
        "": "nameless",
      };
      await create({ url }).publish([message("1", { topic, body: "{}", headers })], noDeadline());
      const [[, fields]] = (await admin.xrange(topic, "-", "+")) as [[string, string[]]];
      const json = "application/json";
      expect(decodeRedisEntry(fields)).toEqual({ body: "{}", contentType: json, orderingKey: undefined, headers });
    });

    test("is in the database of the url, and in the stream that the topic is mapped to", async () => {
      const topic = uniqueName("mapped");
      const broker = create({ url: `${url}/3`, streamOf: (name) => `shop:{${name}}` });
      expect(statuses(await broker.publish([message("1", { topic })], noDeadline()))).toEqual(["sent"]);
      const third = createAdmin(server.port, { db: 3 });
      closers.push(() => third.disconnect());
      expect(await third.xlen(`shop:{${topic}}`)).toBe(1);
      const broken = create({ url, streamOf: (name) => (name === topic ? name : missing(name)) });
      const results = await broken.publish([message("1"), message("2", { topic })], noDeadline());
      expect(statuses(results)).toEqual(["message TOPIC_INVALID", "sent"]);
    });

    test("drops old ones only when asked to", async () => {
      const batch = (topic: string) => Array.from({ length: 1_000 }, (_, index) => message(String(index), { topic }));
      const [whole, trimmed] = [uniqueName("whole"), uniqueName("trimmed")];
      await create({ url }).publish(batch(whole), noDeadline());
      await create({ url, maxLength: 100 }).publish(batch(trimmed), noDeadline());
      expect(await admin.xlen(whole)).toBe(1_000);
      // About: Redis drops whole nodes, of 100 entries by default.
      expect(await admin.xlen(trimmed)).toBeLessThanOrEqual(300);
    });
  });

  describe("what the server refuses", () => {
    test("a missing stream, where it is not to be made", async () => {
      const topic = uniqueName("missing");
      const broker = create({ url, missingStream: "fail" });
      const [result] = await broker.publish([message("1", { topic })], noDeadline());
      expect(result).toMatchObject({ scope: "message", retriable: true, code: "TOPIC_NOT_FOUND" });
      expect(result).toHaveProperty("reason", expect.stringContaining("XGROUP CREATE"));
      expect(await admin.exists(topic)).toBe(0);
    });

    test("a key that holds something else fails its own topic's messages", async () => {
      const topic = uniqueName("text");
      await admin.set(topic, "a text");
      const batch = [
        message("1", { topic }),
        message("2"),
        message("3", { topic, orderingKey: "k" }),
        message("4", { topic, orderingKey: "k" }),
      ];
      const results = await create({ url }).publish(batch, noDeadline());
      expect(statuses(results)).toEqual(["message WRONGTYPE", "sent", "message WRONGTYPE", "notStarted"]);
      expect(results[0]).toMatchObject({ retriable: true, reason: expect.stringContaining("streamOf") });
    });

    test("full memory is the destination's trouble, nothing is stored, and it passes", async () => {
      const topic = uniqueName("full");
      const broker = create({ url });
      const keyed = (key: string, orderingKey: string) => message(key, { topic, orderingKey });
      const batch = [message("1", { topic }), keyed("2", "a"), keyed("3", "a"), keyed("4", "b")];
      await configure({ maxmemory: "1" });
      const results = await broker.publish(batch, noDeadline());
      expect(statuses(results)).toEqual(["destination OOM", "destination OOM", "notStarted", "destination OOM"]);
      expect(await admin.exists(topic)).toBe(0);
      await admin.config("SET", "maxmemory", "0");
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual(["sent", "sent", "sent", "sent"]);
    });

    test("memory that is full for a message and free for the next: nothing overtakes it in its key", async () => {
      const topic = uniqueName("overtake");
      const relay = await createStallingRelay(server.port);
      closers.push(() => relay.close());
      const broker = create({ url: `redis://127.0.0.1:${relay.port}` });
      await broker.check();
      await configure({ maxmemory: "1" });
      await admin.config("RESETSTAT");
      // One write: the first message arrives, the middle of the second does not yet.
      relay.stallAfter(400_000);
      const filler = "f".repeat(800_000);
      const batch = [
        message("1", { topic, orderingKey: "k" }),
        message("2", { topic, orderingKey: "other", body: filler }),
        message("3", { topic, orderingKey: "k" }),
      ];
      const publishing = broker.publish(batch, noDeadline());
      await expect.poll(() => admin.info("errorstats")).toContain("errorstat_OOM");
      await admin.config("SET", "maxmemory", "0");
      relay.goOn();
      expect(statuses(await publishing)).toEqual(["destination OOM", "destination OOM", "notStarted"]);
      expect(await admin.exists(topic)).toBe(0);
    });

    test("too few replicas behind the server, or a server that became a replica", async () => {
      const broker = create({ url });
      await configure({ "min-replicas-to-write": "1" });
      expect(statuses(await broker.publish([message("1")], noDeadline()))).toEqual(["destination NOREPLICAS"]);
      await admin.config("SET", "min-replicas-to-write", "0");
      await admin.replicaof("127.0.0.1", 1);
      closers.push(() => admin.replicaof("NO", "ONE"));
      const batch = [message("1", { orderingKey: "k" }), message("2", { orderingKey: "k" })];
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual(["connection READONLY", "notStarted"]);
      await expect(create({ url }).check()).rejects.toMatchObject({ code: "READONLY", retriable: true });
      await admin.replicaof("NO", "ONE");
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual(["sent", "sent"]);
    });

    test("a server that drops streams when its memory is full, unless that was asked for", async () => {
      await configure({ maxmemory: "1gb", "maxmemory-policy": "allkeys-lru" });
      const broker = create({ url });
      await expect(broker.check()).rejects.toMatchObject({
        name: "BrokerError",
        code: "EVICTION_POLICY",
        retriable: false,
        message: expect.stringContaining("allowEviction"),
      });
      expect(statuses(await broker.publish([message("1")], noDeadline()))).toEqual(["connection EVICTION_POLICY"]);
      await create({ url, allowEviction: true }).check();
      await admin.config("SET", "maxmemory-policy", "volatile-lru");
      await broker.check();
      // Asked anew, although the connection is the same.
      await admin.config("SET", "maxmemory-policy", "allkeys-lfu");
      await expect(broker.check()).rejects.toMatchObject({ code: "EVICTION_POLICY" });
    });
  });

  describe("users", () => {
    const user = async (name: string, ...rules: string[]): Promise<RedisOptions> => {
      const username = uniqueName(name);
      await admin.acl("SETUSER", username, "on", ">s3cret", "~*", "+@all", ...rules);
      closers.push(() => admin.acl("DELUSER", username));
      return { url, username, password: "s3cret" };
    };

    test("who may not write to a stream, or use a command", async () => {
      const stream = create(await user("stream", "resetkeys", "~orders"));
      const batch = [message("1"), message("2", { topic: "billing" })];
      expect(statuses(await stream.publish(batch, noDeadline()))).toEqual(["sent", "destination NOPERM"]);
      const command = create(await user("command", "-xadd"));
      expect(statuses(await command.publish([message("1")], noDeadline()))).toEqual(["connection NOPERM"]);
    });

    test("who may neither ask INFO nor CONFIG can publish", async () => {
      const broker = create(await user("plain", "-@all", "+xadd", "+multi", "+exec", "+hello", "+client"));
      await broker.check();
      const batch = [message("1"), message("2", { orderingKey: "k" }), message("3", { orderingKey: "k" })];
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual(["sent", "sent", "sent"]);
    });

    test("a wrong password concerns everything; neither it nor a part of a message is in any text", async () => {
      const broker = create({ ...(await user("wrong")), password: "of-bad-news" });
      const error = (await broker.check().catch((reason: unknown) => reason)) as Error;
      expect(error).toMatchObject({ code: "WRONGPASS", retriable: false });
      expect(error.message).toContain("ROWPOST_REDIS_PASSWORD");
      expect(error.message).not.toContain("of-bad-news");
      expect(statuses(await broker.publish([message("1")], noDeadline()))).toEqual(["connection WRONGPASS"]);
    });
  });

  describe("a field that is larger than the server takes", () => {
    const big = (key: string, changes: Partial<OutgoingMessage> = {}) =>
      message(key, { body: "b".repeat(1_048_577), ...changes });

    test("fails alone, because the server tells its limit", async () => {
      await configure({ "proto-max-bulk-len": "1048576" });
      const results = await create({ url }).publish([message("1"), big("2"), message("3")], noDeadline());
      expect(statuses(results)).toEqual(["sent", "message BODY_TOO_LARGE", "sent"]);
      expect(results[1]).toMatchObject({ retriable: false, reason: expect.stringContaining("proto-max-bulk-len") });
    });

    test("ends the connection of a server that keeps its limit to itself, and its neighbors go out", async () => {
      await configure({ "proto-max-bulk-len": "1048576" });
      const username = uniqueName("no-config");
      await admin.acl("SETUSER", username, "on", ">s3cret", "~*", "+@all", "-config");
      closers.push(() => admin.acl("DELUSER", username));
      const topic = uniqueName("unknown-limit");
      const broker = create({ url, username, password: "s3cret" });
      const of = { topic, orderingKey: "k" };
      const keyed = await broker.publish([message("1", of), big("2", of), message("3", of)], noDeadline());
      expect(keyed.map(({ status }) => status)).toEqual(["sent", "failed", "notStarted"]);
      // The reset may overtake Redis' own words.
      expect(["message BODY_TOO_LARGE", "unknown CONNECTION_LOST"]).toContain(statuses(keyed)[1]);
      expect(statuses(await broker.publish([message("3", of)], noDeadline()))).toEqual(["sent"]);
      expect(await admin.xlen(topic)).toBe(2);
    });
  });

  test("a frozen server: unknown once, then certainly not handed over, then all of it", async () => {
    const broker = create({ url });
    expect(statuses(await broker.publish([message("0")], noDeadline()))).toEqual(["sent"]);
    await server.freeze();
    try {
      const checked = create({ url, connectTimeoutMs: 400 });
      await expect(checked.check()).rejects.toMatchObject({ name: "BrokerError", retriable: true });
      const pair = [message("1", { orderingKey: "k" }), message("2", { orderingKey: "k" })];
      expect(statuses(await broker.publish(pair, within(300)))).toEqual(["unknown NO_ANSWER", "unknown NO_ANSWER"]);
      expect(statuses(await broker.publish(pair, within(300)))).toEqual(["connection CONNECT_TIMEOUT", "notStarted"]);
    } finally {
      await server.thaw();
    }
    expect(statuses(await broker.publish([message("3")], within(5_000)))).toEqual(["sent"]);
  });

  test("a connection that breaks between two writes: unknown is what was written, and nothing else", async () => {
    const { proxy, url: address } = await proxied();
    const topic = uniqueName("broken");
    const broker = create({ url: address });
    await broker.check();
    proxy.mute("toClient");
    const batch = Array.from({ length: 600 }, (_, index) =>
      message(String(index), { topic, orderingKey: `k${index}` }),
    );
    const publishing = broker.publish(batch, noDeadline());
    // The second write of keyed messages waits for the answer to the first, of 512.
    await expect.poll(() => admin.xlen(topic), { timeout: 30_000, interval: 10 }).toBe(512);
    await proxy.cut();
    expect(countsWithCode(await publishing)).toEqual({
      "unknown CONNECTION_LOST": 512,
      "connection CONNECTION_LOST": 88,
    });
    expect(await admin.xlen(topic)).toBe(512);
  });

  describe("a client that the user has", () => {
    test("is asked where to go, and not used: its key prefix holds, and it is left as it was", async () => {
      const client = new Redis({ port: server.port, keyPrefix: "shop:", lazyConnect: true });
      const topic = uniqueName("prefixed");
      const broker = create({ client });
      expect(statuses(await broker.publish([message("1", { topic })], noDeadline()))).toEqual(["sent"]);
      await broker.close();
      expect(client.status).toBe("wait");
      expect(await admin.xlen(`shop:${topic}`)).toBe(1);
      await client.connect();
      closers.push(() => client.disconnect());
      expect(await client.ping()).toBe("PONG");
    });

    test("may be blocked", async () => {
      const client = new Redis({ port: server.port });
      closers.push(() => client.disconnect());
      const reading = client.xread("BLOCK", 0, "STREAMS", uniqueName("empty"), "$").catch(() => undefined);
      const broker = create({ client });
      expect(statuses(await broker.publish([message("1")], within(2_000)))).toEqual(["sent"]);
      client.disconnect();
      await reading;
    });

    // At ioredis' defaults this message would be sent again as soon as the connection is back, long
    // after its deadline.
    test("sends nothing behind our back", async () => {
      const { proxy } = await proxied();
      const client = new Redis({ port: proxy.port, lazyConnect: true });
      const topic = uniqueName("late");
      const broker = create({ client });
      await broker.check();
      proxy.mute("toTarget");
      expect(statuses(await broker.publish([message("1", { topic })], within(200)))).toEqual(["unknown NO_ANSWER"]);
      await proxy.cut();
      proxy.unmute();
      expect(statuses(await broker.publish([message("2", { topic })], within(5_000)))).toEqual(["sent"]);
      const entries = await admin.xrange(topic, "-", "+");
      expect(entries.map(([, fields]) => decodeRedisEntry(fields).headers["rowpost-key"])).toEqual(["2"]);
    });

    test("of another package is refused, with what would be right", () => {
      const other = { duplicate: () => undefined, xAdd: () => undefined, isCluster: false } as unknown as RedisClient;
      expect(() => redis({ client: other })).toThrow(/package redis.*ioredis|ioredis.*package redis/);
    });
  });

  describe("TLS", () => {
    let secured: PrivateRedis;
    let address: string;
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(path.join(tmpdir(), "rowpost-test-redis-tls-"));
      const [cert, key, port] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem"), await freePort()];
      await Promise.all([writeFile(cert, TEST_CERTIFICATE), writeFile(key, TEST_KEY)]);
      const words = `--tls-port ${port} --tls-cert-file ${cert} --tls-key-file ${key} --tls-ca-cert-file ${cert} --tls-auth-clients no`;
      secured = await startPrivateRedis(words.split(" "));
      address = `rediss://127.0.0.1:${port}`;
    }, 60_000);
    afterAll(async () => {
      await secured?.remove();
      await rm(folder, { recursive: true, force: true });
    });

    test("with the server's certificate, from options and from a URL", async () => {
      const fromUrl = redisFromUrl(`${address}?ca=${path.join(folder, "cert.pem")}`, {});
      closers.push(() => fromUrl.close());
      for (const broker of [create({ url: address, tls: { ca: TEST_CERTIFICATE } }), fromUrl]) {
        await broker.check();
        expect(statuses(await broker.publish([message("t-1")], noDeadline()))).toEqual(["sent"]);
      }
    });

    test("an unknown certificate is refused, unless that is switched off", async () => {
      const refused = create({ url: address });
      await expect(refused.check()).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
      expect(await refused.publish([message("t-2")], within(5_000))).toMatchObject([
        { status: "failed", scope: "connection" },
      ]);
      const careless = create({ url: address, tls: { rejectUnauthorized: false } });
      expect(statuses(await careless.publish([message("t-3")], noDeadline()))).toEqual(["sent"]);
    });
  });

  describe("replicas", () => {
    test("a message is sent when as many as asked for have it", async () => {
      await configure({ "repl-diskless-sync-delay": "0" });
      const replica = await startPrivateRedis(["--replicaof", "127.0.0.1", String(server.port)]);
      closers.push(() => replica.remove());
      const broker = create({ url, minReplicas: 1, replicaTimeoutMs: 400 });
      const batch = [message("1"), message("2", { orderingKey: "k" }), message("3", { orderingKey: "k" })];
      await expect
        .poll(async () => statuses(await broker.publish(batch, within(5_000))), { timeout: 30_000 })
        .toEqual(["sent", "sent", "sent"]);
      await replica.freeze();
      try {
        const results = await broker.publish(batch, within(5_000));
        const unproven = "destination NOT_REPLICATED";
        expect(statuses(results)).toEqual([unproven, unproven, "notStarted"]);
        expect(results[0]).toHaveProperty("reason", expect.stringContaining("0 of the 1 replicas"));
      } finally {
        await replica.thaw();
      }
      await expect
        .poll(async () => statuses(await broker.publish(batch, within(5_000))), { timeout: 30_000 })
        .toEqual(["sent", "sent", "sent"]);
    }, 60_000);
  });
});

function missing(name: string): never {
  throw new Error(`there is no stream for ${name}`);
}
