/**
 * Routes to two real brokers of different kinds: one is killed, the other's messages go out
 * meanwhile, and the killed one's when it is back.
 */
import { expect, it } from "vitest";
import { nats } from "../../src/brokers/nats/index.ts";
import { redis } from "../../src/brokers/redis/index.ts";
import { routes } from "../../src/brokers/routes.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createAdmin as createNatsAdmin, startPrivateServer } from "../brokers/nats-server.ts";
import { createAdmin as createRedisAdmin, startPrivateRedis } from "../brokers/redis-server.ts";
import { describeWithService } from "../services.ts";
import { createRelayDatabase } from "./bench-database.ts";

const SENT = 2;
const MESSAGES = 300;
const SOON = { timeout: 30_000, interval: 20 };

describeWithService("mariadb", "routes to Redis and NATS", () => {
  it("each topic goes to its broker, and a killed Redis holds up its own topics only", async () => {
    const [redisServer, natsServer, database] = await Promise.all([
      startPrivateRedis(),
      startPrivateServer(),
      createRelayDatabase("mariadb"),
    ]);
    const streams = await createNatsAdmin({ servers: natsServer.address });
    await streams.createStream({ name: "STOCK", subjects: ["stock.*"] });
    const broker = routes({
      "orders.*": redis({ url: `redis://127.0.0.1:${redisServer.port}` }),
      "stock.*": nats({ servers: natsServer.address }),
    });
    const relay = createRelay({ database: database.connect(), broker, publishTimeoutMs: 3_000 });
    const entries = createRedisAdmin(redisServer.port);
    const sent = async (topic: string): Promise<number> => {
      const [row] = await database.sql(
        `SELECT COUNT(*) AS n FROM local_message WHERE topic = '${topic}' AND state = ${SENT}`,
      );
      return Number(row?.["n"]);
    };
    const insert = (part: string): Promise<void> =>
      database.insert(
        Array.from({ length: 2 * MESSAGES }, (_, index) => ({
          key: `${part}-${index}`,
          topic: index % 2 === 0 ? "orders.new" : "stock.less",
          // Of one topic each: a key that is on both would wait for Redis with all of its messages,
          // in their order.
          ...(index % 3 === 0 ? { orderingKey: `k${index % 2}-${index % 5}` } : {}),
        })),
      );
    try {
      await insert("before");
      await relay.start();
      await expect.poll(() => sent("orders.new"), SOON).toBe(MESSAGES);
      await expect.poll(() => sent("stock.less"), SOON).toBe(MESSAGES);
      await redisServer.kill();
      await insert("meanwhile");
      await expect.poll(() => sent("stock.less"), SOON).toBe(2 * MESSAGES);
      expect(await sent("orders.new")).toBe(MESSAGES);
      await redisServer.start();
      await expect.poll(() => sent("orders.new"), SOON).toBe(2 * MESSAGES);
      expect(await streams.stored("STOCK")).toHaveLength(2 * MESSAGES);
      expect(await entries.xlen("orders.new")).toBeGreaterThanOrEqual(2 * MESSAGES);
    } finally {
      await relay.stop();
      await broker.close();
      entries.disconnect();
      await streams.close();
      await Promise.all([redisServer.remove(), natsServer.remove(), database.drop()]);
    }
  }, 120_000);
});
