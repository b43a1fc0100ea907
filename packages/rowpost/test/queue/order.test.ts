/**
 * Ids have the order of the commits: producers whose transactions take as long as they like, and
 * readers that remember a position. The same load with ids given at the INSERT must lose messages,
 * or this test would prove nothing.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { describeOnAll, type QueuePlace } from "./places.ts";

const PRODUCERS = 6;
const TRANSACTIONS = 400;
const ROWS = 3;

describeOnAll("the order of commits", (make, { isServer }) => {
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;

  beforeEach(async () => {
    place = await make();
    database = place.open();
    queue = createQueue({ database });
    await queue.migrate();
  });
  afterEach(async () => {
    await queue.close();
    await place.drop();
  });

  /** `PRODUCERS` at once, each with its transactions one after the other. */
  async function produce(transaction: (name: string) => Promise<void>): Promise<void> {
    await Promise.all(
      Array.from({ length: PRODUCERS }, async (_, producer) => {
        for (let turn = 0; turn < TRANSACTIONS; turn += 1) await transaction(`${producer}.${turn}`);
      }),
    );
  }

  it("shows every group every message once, and in order of the ids", { timeout: 300_000 }, async () => {
    await queue.createTopic({ topic: "orders", partitions: 2 });
    const seen = new Map<string, string[]>();
    const consumers = await Promise.all(
      ["a", "b", "c"].map(async (group) => {
        const ids: string[] = [];
        seen.set(group, ids);
        return await queue.consume({
          topic: "orders",
          group,
          concurrency: 1,
          logger: "silent",
          handler: ({ id }) => void ids.push(id),
        });
      }),
    );
    const appended: string[] = [];
    await produce(async (name) => {
      await database.transaction(async (tx) => {
        // Mostly before the append, as is advised; sometimes it keeps the counter locked.
        await delay(Math.random() * 4);
        const messages = Array.from({ length: ROWS }, (_, row) => ({
          topic: "orders",
          key: `${name}.${row}`,
          body: row,
        }));
        appended.push(...(await queue.append(tx, messages)));
        if (Math.random() < 0.1) await delay(Math.random() * 4);
      });
      queue.wake();
    });
    await vi.waitUntil(() => [...seen.values()].every((ids) => ids.length >= appended.length), { timeout: 30_000 });
    for (const consumer of consumers) await consumer.stop();
    expect(appended).toHaveLength(PRODUCERS * TRANSACTIONS * ROWS);
    for (const ids of seen.values()) {
      expect(ids.toSorted()).toEqual(appended.toSorted());
      for (const partition of [0n, 1n]) {
        const own = ids.map(BigInt).filter((id) => (id & 63n) === partition);
        expect(own).toEqual(own.toSorted((left, right) => (left < right ? -1 : 1)));
      }
    }
  });

  // SQLite has one writer: whoever gets an id there commits before the next one gets his.
  if (!isServer) return;

  it("loses messages with AUTO_INCREMENT and a cursor, where more than one writes at once", {
    timeout: 120_000,
  }, async () => {
    const { kind } = place.address;
    const idColumn =
      kind === "postgres" ? "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY" : "BIGINT AUTO_INCREMENT PRIMARY KEY";
    await place.query(`CREATE TABLE plain_log (id ${idColumn}, name VARCHAR(30) NOT NULL)`);
    const session = await database.connect({ purpose: "tool" });
    let isOver = false;
    let next = 0;
    let read = 0;
    const reading = (async () => {
      for (let last = false; !last; ) {
        last = isOver;
        const { rows } = await session.run({
          name: "read",
          text: `SELECT id FROM plain_log WHERE id >= ${next} ORDER BY id`,
          params: [],
        });
        read += rows.length;
        if (rows.length > 0) next = Number(rows.at(-1)?.["id"]) + 1;
        await delay(1);
      }
    })();
    await produce(async (name) => {
      await database.transaction(async (tx) => {
        for (let row = 0; row < ROWS; row += 1) await tx.query(`INSERT INTO plain_log (name) VALUES ('${name}')`);
        await delay(Math.random() * 4);
      });
    });
    isOver = true;
    await reading;
    await session.close();
    expect(read).toBeLessThan(PRODUCERS * TRANSACTIONS * ROWS);
  });
});
