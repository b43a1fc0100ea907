/** rowpost/consume on Redis Streams, with ioredis. */
import { hostname } from "node:os";
import { Redis } from "ioredis";
import { afterEach, describe, expect, test } from "vitest";
import { redis } from "../../src/brokers/redis/index.ts";
import { consumeRedis, type RedisConsumeOptions } from "../../src/consume/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { noDeadline, outgoing } from "../brokers/messages.ts";
import { startPrivateRedis, uniqueName } from "../brokers/redis-server.ts";
import { gate } from "../queue/members.ts";
import { describeWithService } from "../services.ts";
import { type ConsumerPlace, describeConsumer } from "./cases.ts";

const GROUP = "points";
const CLAIM_AFTER_MS = 1_000;

interface RedisPlace extends ConsumerPlace {
  readonly admin: Redis;
}

async function makePlace(url: string): Promise<RedisPlace> {
  const topic = uniqueName("consume");
  const admin = new Redis(url);
  // A server that is killed is part of some tests.
  admin.on("error", () => undefined);
  const broker = redis({ url });
  return {
    topic,
    admin,
    broker,
    async publishForeign(body) {
      await admin.xadd(topic, "*", "body", body);
    },
    consume: (options) =>
      consumeRedis({
        client: admin,
        streams: [topic],
        group: GROUP,
        claimAfterMs: CLAIM_AFTER_MS,
        ...options,
      } as never),
    async left() {
      const [group] = (await admin.xinfo("GROUPS", topic)) as string[][];
      const last = group?.[group.indexOf("last-delivered-id") + 1];
      const [pending] = (await admin.xpending(topic, GROUP)) as [number];
      return (await admin.xrange(topic, `(${last}`, "+")).length + pending;
    },
    address: { kind: "redis", url, stream: topic, group: GROUP, claimAfterMs: CLAIM_AFTER_MS },
    async drop() {
      await broker.close();
      await admin.del(topic);
      admin.disconnect();
    },
  };
}

describeWithService("redis", "consume", ({ address }) => {
  describeConsumer("with ioredis", () => makePlace(address), { keepsOrder: false, kills: 4 });

  describe("what only Redis does", () => {
    const ends: (() => unknown)[] = [];
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    async function place(url = address): Promise<RedisPlace> {
      const made = await makePlace(url);
      ends.push(() => made.drop());
      return made;
    }

    async function publish({ broker, topic }: ConsumerPlace, keys: readonly string[]): Promise<void> {
      const results = await broker.publish(
        keys.map((key) => outgoing(key, { topic })),
        noDeadline(),
      );
      expect(results.map(({ status }) => status)).toEqual(keys.map(() => "sent"));
    }

    async function consume(
      { admin, topic }: RedisPlace,
      options: Partial<RedisConsumeOptions> & Pick<RedisConsumeOptions, "handler">,
    ) {
      const database = sqlite({ file: ":memory:" });
      ends.push(() => database.close());
      const inbox = createInbox({ database, consumer: "points" });
      await inbox.migrate();
      const consumption = await consumeRedis({
        inbox,
        client: admin,
        streams: [topic],
        group: GROUP,
        claimAfterMs: CLAIM_AFTER_MS,
        logger: "silent",
        retry: { baseMs: 1, maxMs: 5 },
        ...options,
      });
      ends.push(() => consumption.close());
      return consumption;
    }

    test("a handler that takes longer than others wait has its entry to itself", async () => {
      const at = await place();
      await publish(at, ["slow"]);
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const handled: string[] = [];
      const handler = async ({ key }: { readonly key: string }): Promise<void> => {
        await held;
        handled.push(key);
      };
      const [longer, shorter] = [3 * CLAIM_AFTER_MS, 2 * CLAIM_AFTER_MS];
      await consume(at, { handler, claimAfterMs: longer });
      await expect.poll(async () => ((await at.admin.xpending(at.topic, GROUP)) as [number])[0]).toBe(1);
      // With an inbox of its own: it would handle what it claims.
      await consume(at, { handler, claimAfterMs: shorter });
      setTimeout(release, longer + shorter);
      await expect.poll(() => at.left()).toBe(0);
      expect(handled).toEqual(["slow"]);
    });

    test("a member that closes leaves no name behind, and its entries to the next at once", async () => {
      const at = await place();
      await publish(at, ["a", "b", "c"]);
      const hour = 3_600_000;
      const first = await consume(at, {
        concurrency: 1,
        claimAfterMs: hour,
        retry: { maxAttempts: Number.POSITIVE_INFINITY, maxMs: hour },
        handler: () => {
          throw new Error("not yet");
        },
      });
      await expect.poll(async () => ((await at.admin.xpending(at.topic, GROUP)) as [number])[0]).toBe(3);
      expect(await first.close()).toEqual({ drained: true });
      const names = (await at.admin.xinfo("CONSUMERS", at.topic, GROUP)) as string[][];
      expect(names.map(([, name]) => name)).toEqual(["rowpost-given-back"]);
      const handled: string[] = [];
      await consume(at, { claimAfterMs: hour, concurrency: 1, handler: ({ key }) => handled.push(key) });
      await expect.poll(() => handled).toEqual(["a", "b", "c"]);
    });

    test("names of members that were killed go; those that have entries, or are of others, stay", async () => {
      const at = await place();
      await at.admin.xgroup("CREATE", at.topic, GROUP, "0", "MKSTREAM");
      await publish(at, ["taken"]);
      for (const name of ["rowpost-killed", "somebody", "rowpost-given-back"])
        await at.admin.xgroup("CREATECONSUMER", at.topic, GROUP, name);
      await at.admin.xreadgroup("GROUP", GROUP, "rowpost-busy", "COUNT", 1, "STREAMS", at.topic, ">");
      type Facts = readonly [string, string, string, number, string, number];
      const members = async (): Promise<readonly Facts[]> => {
        const all = await at.admin.xinfo("CONSUMERS", at.topic, GROUP);
        return all as Facts[];
      };
      await expect
        .poll(async () => Math.min(...(await members()).map(([, , , , , idleMs]) => idleMs)))
        .toBeGreaterThan(3_000);
      await consume(at, { claimAfterMs: 3_600_000, handler: () => undefined });
      await expect
        .poll(async () =>
          (await members()).map(([, name]) => name).filter((name) => !name.startsWith(`rowpost-${hostname()}`)),
        )
        .toEqual(["rowpost-busy", "rowpost-given-back", "somebody"]);
    });

    test("entries that a member has left behind come before a backlog that has no end", async () => {
      const at = await place();
      await publish(at, ["left"]);
      await at.admin.xgroup("CREATE", at.topic, GROUP, "0");
      await at.admin.xreadgroup("GROUP", GROUP, "dead", "COUNT", 1, "STREAMS", at.topic, ">");
      await publish(at, ["b1", "b2", "b3"]);
      const began: string[] = [];
      const held = gate();
      await consume(at, {
        concurrency: 1,
        prefetch: 1,
        handler: async ({ key }) => {
          began.push(key);
          if (key === "b1") await held.opened;
        },
      });
      await expect.poll(() => began).toEqual(["b1"]);
      // Idle for long enough, and the next look is due.
      await expect
        .poll(async () => {
          const rows = await at.admin.xpending(at.topic, GROUP, "-", "+", 1, "dead");
          return Number((rows as string[][])[0]?.[2]);
        })
        .toBeGreaterThan(3 * CLAIM_AFTER_MS);
      held.open();
      await expect.poll(() => began).toEqual(["b1", "left", "b2", "b3"]);
    });

    test("a group that was deleted leaves nothing out, and is told, also where it had begun at the end", async () => {
      const at = await place();
      await publish(at, ["before"]);
      const told: unknown[] = [];
      const handled: string[] = [];
      await consume(at, {
        fromBeginning: false,
        logger: { ...silentLogger, error: (line, fields) => void told.push([line, fields]) },
        handler: ({ key }) => handled.push(key),
      });
      await publish(at, ["a"]);
      await expect.poll(() => handled).toEqual(["a"]);
      await at.admin.xgroup("DESTROY", at.topic, GROUP);
      await publish(at, ["b"]);
      await expect.poll(() => handled).toEqual(["a", "before", "b"]);
      const line = "the group of a consumer was gone and is made again, from the first entry on";
      expect(told).toEqual([[line, { stream: at.topic, group: GROUP }]]);
    });

    test("entries that are trimmed before they were handled are told", async () => {
      const at = await place();
      await publish(at, ["a"]);
      await at.admin.xgroup("CREATE", at.topic, GROUP, "0");
      await at.admin.xreadgroup("GROUP", GROUP, "dead", "COUNT", 1, "STREAMS", at.topic, ">");
      await at.admin.xtrim(at.topic, "MAXLEN", 0);
      const told: string[] = [];
      await consume(at, {
        logger: { ...silentLogger, error: (line) => void told.push(line) },
        handler: () => expect.unreachable("handled without fields"),
      });
      await expect.poll(() => told).toEqual(["entries were trimmed before they were handled: they are lost"]);
    });

    test("what was handled is deleted where that is asked for", async () => {
      const at = await place();
      await publish(at, ["a", "b"]);
      await consume(at, { deleteHandled: true, handler: () => undefined });
      await expect.poll(() => at.admin.xlen(at.topic)).toBe(0);
    });

    test("connections that are cut are opened again, and what is under way is acknowledged on the new ones", async () => {
      const target = { host: new URL(address).hostname, port: Number(new URL(address).port) };
      const proxy = await createTcpProxy({ target });
      ends.push(() => proxy.close());
      const at = await place();
      const client = new Redis(proxy.port, proxy.host, { lazyConnect: true });
      await publish(at, ["a", "b", "c"]);
      const lines: string[] = [];
      const handled: string[] = [];
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      await consume(at, {
        client,
        claimAfterMs: 60_000,
        logger: { ...silentLogger, warn: (line) => void lines.push(line) },
        handler: async ({ key }) => {
          await held;
          handled.push(key);
        },
      });
      await expect.poll(async () => ((await at.admin.xpending(at.topic, GROUP)) as [number])[0]).toBe(3);
      await proxy.cut();
      release();
      await publish(at, ["d"]);
      await expect.poll(() => at.left()).toBe(0);
      expect(handled.toSorted()).toEqual(["a", "b", "c", "d"]);
      expect(lines).toEqual(["a consumer lost its connection and opens another one"]);
    });

    test("a server that is killed and comes back empty of the group is read from its first entry", async () => {
      const server = await startPrivateRedis();
      ends.push(() => server.remove());
      const at = await place(`redis://127.0.0.1:${server.port}`);
      await publish(at, ["a"]);
      const handled: string[] = [];
      await consume(at, { handler: ({ key }) => handled.push(key) });
      await expect.poll(() => handled).toEqual(["a"]);
      await server.kill();
      await server.start();
      await at.admin.xgroup("DESTROY", at.topic, GROUP);
      await publish(at, ["b"]);
      await expect.poll(() => handled).toEqual(["a", "b"]);
    });

    test("a client of the package redis, or no server, is said at once", async () => {
      const at = await place();
      const other = { xAdd: () => undefined } as never;
      await expect(consume(at, { client: other, handler: () => undefined })).rejects.toThrow(
        /one of the package redis/,
      );
      const client = new Redis(1, "127.0.0.1", { lazyConnect: true });
      await expect(consume(at, { client, handler: () => undefined })).rejects.toThrow(/ECONNREFUSED/);
    });
  });
});
