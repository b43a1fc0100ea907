/**
 * Redis: a server of the test's own with every write on disk before it is answered, killed with
 * SIGKILL; and the shared one, cut off by a proxy.
 */
import type { Redis } from "ioredis";
import { decodeRedisEntry, redis } from "../../src/brokers/redis/index.ts";
import { createAdmin, startPrivateRedis } from "../brokers/redis-server.ts";
import { describeWithService } from "../services.ts";
import type { BrokerUnderTest } from "./broker-under-test.ts";
import { cutOff } from "./cut-by-proxy.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

const PAGE = 2_000;

function streams(admin: Redis, url: string): Omit<BrokerUnderTest, "takeAway" | "bringBack" | "close"> {
  return {
    keepsCopies: true,
    createBroker: () => redis({ url, missingStream: "fail" }),
    async makeTopic(name) {
      await admin.xgroup("CREATE", name, "readers", "0", "MKSTREAM");
    },
    async removeTopic(name) {
      await admin.del(name);
    },
    async readAll(topic) {
      const keys: string[] = [];
      for (;;) {
        const answer = await admin.xreadgroup("GROUP", "readers", "r1", "COUNT", PAGE, "STREAMS", topic, ">");
        const [stream] = (answer ?? []) as [name: string, entries: [id: string, fields: string[]][]][];
        if (stream === undefined) return keys;
        for (const [, fields] of stream[1]) keys.push(decodeRedisEntry(fields).headers["rowpost-key"] ?? "");
      }
    },
  };
}

async function killed(): Promise<BrokerUnderTest> {
  const server = await startPrivateRedis();
  const admin = createAdmin(server.port);
  return {
    ...streams(admin, `redis://127.0.0.1:${server.port}`),
    takeAway: () => server.kill(),
    bringBack: () => server.start(),
    async close() {
      admin.disconnect();
      await server.remove();
    },
  };
}

async function cut(address: string): Promise<BrokerUnderTest> {
  const place = await cutOff(address, 6379);
  const admin = createAdmin(Number(new URL(address).port || 6379));
  return {
    ...streams(admin, place.url),
    takeAway: place.takeAway,
    bringBack: place.bringBack,
    async close() {
      admin.disconnect();
      await place.close();
    },
  };
}

describeWithService("redis", "Redis", ({ address }) => {
  defineKillRounds("redis, killed", killed);
  defineKillRounds("redis, cut", () => cut(address));
});
