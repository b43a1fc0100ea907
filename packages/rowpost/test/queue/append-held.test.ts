/** An append ends, whoever holds a counter or has gone away; other partitions go on meanwhile. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { describeWithService } from "../services.ts";
import { gate } from "./members.ts";
import { type Proxied, proxiedDatabase } from "./proxied.ts";

const PARTITIONS = 4;

describeWithService(["mariadb", "mysql9", "postgres"], "an append that has to wait", ({ name }) => {
  const connect = name === "postgres" ? postgres : mysql;
  let place: Proxied;
  let queue: Queue;
  let database: Database;
  const closing: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    place = await proxiedDatabase(name);
    database = connect({ url: place.made.url });
    queue = createQueue({ database });
    closing.push(
      () => queue.close(),
      () => database.close(),
      () => place.proxy.close(),
      () => place.made.drop(),
    );
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: PARTITIONS });
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const keyed = (orderingKey: string) => ({ topic: "orders", key: orderingKey, body: 1, orderingKey });
  const partitionOf = (id: string): number => Number(BigInt(id) % 64n);

  /** A key of each partition. */
  async function keys(): Promise<string[]> {
    const found: string[] = [];
    for (let number = 0; found.filter(Boolean).length < PARTITIONS; number += 1) {
      const [id = ""] = await queue.append(keyed(`k${number}`));
      found[partitionOf(id)] ??= `k${number}`;
    }
    return found;
  }

  /** A transaction that has appended with this key, and stays open until `end`. */
  async function hold(orderingKey: string): Promise<{ end: () => Promise<void> }> {
    const [appended, mayEnd] = [gate(), gate()];
    const held = database.transaction(async (tx) => {
      await queue.append(tx, [keyed(orderingKey)]);
      appended.open();
      await mayEnd.opened;
    });
    await appended.opened;
    return {
      async end() {
        mayEnd.open();
        await held;
      },
    };
  }

  it("for a transaction of somebody's keeps other partitions going, and goes on behind it", async () => {
    const [held = "", ...free] = await keys();
    const holder = await hold(held);
    const waiting = queue.append(keyed(held));
    let isDone = false;
    void waiting.then(() => (isDone = true));
    await Promise.all(free.map((each) => queue.append(keyed(each))));
    for (let round = 0; round < 2 * PARTITIONS; round += 1) {
      const [id = ""] = await queue.append({ topic: "orders", body: 1 });
      expect(partitionOf(id)).not.toBe(0);
    }
    expect(isDone).toBe(false);
    await holder.end();
    expect((await waiting).map(partitionOf)).toEqual([0]);
  });

  it("for a transaction of somebody's ends by itself, and what was given up does not come later", async () => {
    const impatient = createQueue({ database, appendTimeoutMs: 1_500 });
    const [held = ""] = await keys();
    const holder = await hold(held);
    const before = (await queue.search({ topic: "orders", limit: 1_000 })).messages.length;
    await expect(impatient.append(keyed(held))).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
      message: expect.stringContaining("holds a counter"),
    });
    await holder.end();
    await queue.append(keyed(held));
    await impatient.close();
    const after = await queue.search({ topic: "orders", limit: 1_000 });
    expect(after.messages).toHaveLength(before + 2);
  });

  it("for a database that is frozen ends by itself", async () => {
    const far = connect({ url: place.farUrl });
    const impatient = createQueue({ database: far, appendTimeoutMs: 1_500 });
    await impatient.append(keyed("a"));
    place.proxy.mute();
    await expect(impatient.append(keyed("a"))).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    place.proxy.unmute();
    await impatient.append(keyed("b"));
    await impatient.close();
    await far.close();
  });

  it("longer than its connection waits for locks says who is in the way", async () => {
    const [held = ""] = await keys();
    const holder = await hold(held);
    const mine = database.transaction(async (tx) => {
      await tx.query(name === "postgres" ? "SET LOCAL lock_timeout = 200" : "SET innodb_lock_wait_timeout = 1");
      await queue.append(tx, [keyed(held)]);
    });
    await expect(mine).rejects.toMatchObject({
      code: "DATABASE_CONFLICT",
      message: expect.stringContaining("holds the counters of its partitions"),
    });
    await holder.end();
  });
});
