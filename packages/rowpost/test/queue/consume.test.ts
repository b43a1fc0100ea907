/** Consumers: who gets what, in which order, and what is written of it. */
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { queueMonth } from "../../src/message/queue-id.ts";
import type { ConsumedMessage, Queue, QueueConsumeOptions } from "../../src/queue/index.ts";
import { until } from "../until.ts";
import { gate, type Members, numbers } from "./members.ts";
import { describeOnAll, type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

describeOnAll("consumers of the queue", (make) => {
  let opened: OpenQueue;
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;
  let members: Members;

  beforeEach(async () => {
    opened = await openQueue(make, { port: 8080 });
    ({ place, database, queue, members } = opened);
  });
  afterEach(() => opened.close());

  const recordsOf = async (id: string) => {
    const rows = await place.query(
      `SELECT consumer_group_id, message_key, attempt, result, messages, ip, error FROM orders_message_info_consumption_${queueMonth(id)} ORDER BY message_id, consumer_group_id, attempt`,
    );
    return rows.map((row) => ({
      ...row,
      attempt: Number(row["attempt"]),
      result: Number(row["result"]),
      messages: Number(row["messages"]),
    }));
  };
  const countOf = async (table: string) => Number((await place.query(`SELECT COUNT(*) AS n FROM ${table}`))[0]?.["n"]);

  it("gives every group every message, in order, with a record for each, and moves the progress", async () => {
    await queue.createTopic({ topic: "orders" });
    const first = await queue.append(numbers(300));
    const seen: Record<string, ConsumedMessage[]> = { a: [], b: [] };
    for (const group of ["a", "b"])
      await members.start({ group, handler: (message) => void seen[group]?.push(message) });
    const ids = [...first, ...(await queue.append(numbers(300)))];
    await until(() => seen["a"]?.length === 600 && seen["b"]?.length === 600);
    expect(await members.stopAll()).toEqual([{ drained: true }, { drained: true }]);
    for (const list of Object.values(seen)) expect(list.map(({ id }) => id)).toEqual(ids);
    expect(seen["a"]?.[7]).toMatchObject({ topic: "orders", key: "7", body: 7, attempt: 1, partition: 0 });
    const records = await recordsOf(ids[0] as string);
    expect(records).toHaveLength(1_200);
    expect(records[0]).toMatchObject({
      consumer_group_id: "a",
      message_key: "0",
      attempt: 1,
      result: 0,
      ip: "10.0.0.7",
    });
    const progress = await database.queue
      .store()
      .consumption({ topic: "orders", group: "a" }, { lockWaitTimeoutMs: 1_000 })
      .progress([0]);
    expect(progress[0]?.nextId).toBe(String(BigInt(ids.at(-1) as string) + 1n));
    // Who comes back goes on there.
    const again: string[] = [];
    await members.start({ group: "a", handler: ({ id }) => void again.push(id) });
    const [last] = await queue.append(numbers(1));
    await until(() => again.length > 0);
    expect(again).toEqual([last]);
  });

  it("runs handlers side by side, and those of one ordering key one after the other", async () => {
    await queue.createTopic({ topic: "orders", partitions: 2 });
    let running = 0;
    let most = 0;
    const busy = new Set<string>();
    const seen: number[] = [];
    await members.start({
      concurrency: 6,
      handler: async ({ orderingKey = "", body }) => {
        if (busy.has(orderingKey)) throw new Error(`${orderingKey} is busy`);
        busy.add(orderingKey);
        running += 1;
        most = Math.max(most, running);
        await delay(1);
        running -= 1;
        busy.delete(orderingKey);
        seen.push(body as number);
      },
    });
    await queue.append(
      Array.from({ length: 200 }, (_, index) => ({ topic: "orders", orderingKey: `k${index % 8}`, body: index })),
    );
    await until(() => seen.length === 200);
    expect(most).toBe(6);
    for (let key = 0; key < 8; key += 1) {
      const own = seen.filter((body) => body % 8 === key);
      expect(own).toEqual(own.toSorted((left, right) => left - right));
    }
  });

  it("tries a failing message again beside the others, and gives it up in the end", async () => {
    await queue.createTopic({ topic: "orders" });
    const seen: string[] = [];
    await members.start({
      retry: { maxAttempts: 3, baseMs: 1, maxMs: 1 },
      handler: ({ key, attempt }) => {
        seen.push(`${key} ${attempt}`);
        if (key === "2" || (key === "4" && attempt === 1)) throw new Error(`no ${key} 'quoted' \u{20BB7}`);
      },
    });
    const ids = await queue.append(numbers(6));
    await until(() => seen.length === 9);
    await members.stopAll();
    expect(seen.slice(0, 6)).toEqual(["0 1", "1 1", "2 1", "3 1", "4 1", "5 1"]);
    expect(seen.slice(6).toSorted()).toEqual(["2 2", "2 3", "4 2"]);
    const records = await recordsOf(ids[0] as string);
    expect(records.map(({ attempt, result }) => [attempt, result])).toEqual([
      [1, 0],
      [1, 0],
      [1, 1],
      [2, 1],
      [3, 2],
      [1, 0],
      [1, 1],
      [2, 0],
      [1, 0],
    ]);
    expect(records[2]).toMatchObject({ error: "no 2 'quoted' \u{20BB7}" });
    const left = await place.query("SELECT state, attempt, fail_reason FROM message_redelivery");
    expect(left.map((row) => [Number(row["state"]), Number(row["attempt"])])).toEqual([[1, 3]]);
  });

  it("delivers a delayed message when it is due, and those behind it before", async () => {
    await queue.createTopic({ topic: "orders" });
    const seen: string[] = [];
    await members.start({ handler: ({ key }) => void seen.push(key ?? "") });
    await queue.append([{ topic: "orders", key: "late", body: 1, delayMs: 3_600_000 }, ...numbers(3)]);
    await until(async () => seen.length === 3 && (await countOf("message_redelivery")) === 1);
    expect(seen).toEqual(["0", "1", "2"]);
    // The hour is over.
    await place.query("UPDATE message_redelivery SET next_attempt_at = '2020-01-01 00:00:00.000'");
    await until(() => seen.length === 4);
    expect(seen).toEqual(["0", "1", "2", "late"]);
  });

  it("writes one record for a batch when asked, and one for each that failed", async () => {
    await queue.createTopic({ topic: "orders" });
    const ids = await queue.append(numbers(50));
    let seen = 0;
    await members.start({
      records: "batch",
      retry: { maxAttempts: 1 },
      handler: ({ key }) => {
        seen += 1;
        if (key === "10") throw new Error("no");
      },
    });
    await until(() => seen === 50);
    await members.stopAll();
    const records = await recordsOf(ids[0] as string);
    expect(records.filter(({ result }) => result === 0).reduce((sum, { messages }) => sum + messages, 0)).toBe(49);
    expect(records.filter(({ result }) => result === 2)).toHaveLength(1);
    expect(records.length).toBeLessThan(10);
  });

  it("commits the handler's writes with record and progress, and takes back those of a failure", async () => {
    await queue.createTopic({ topic: "orders", partitions: 2 });
    await place.query("CREATE TABLE effects (id VARCHAR(30) NOT NULL, attempt INTEGER NOT NULL)");
    const ids = await queue.append(
      Array.from({ length: 60 }, (_, index) => ({ topic: "orders", orderingKey: `k${index}`, body: index })),
    );
    const placeholders = place.address.kind === "postgres" ? "$1, $2" : "?, ?";
    await members.start({
      transactional: true,
      retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 },
      handler: async ({ id, body, attempt }, { tx }) => {
        await tx.query(`INSERT INTO effects (id, attempt) VALUES (${placeholders})`, [id, attempt]);
        // The second one breaks the statement, and on PostgreSQL the transaction with it.
        if (body === 7 && attempt === 1) throw new Error("not yet");
        if (body === 9) await tx.query("SELECT no_such_column FROM effects");
      },
    });
    await until(async () => (await countOf("effects")) === 59 && (await countOf("message_redelivery")) === 1);
    await members.stopAll();
    const effects = await place.query("SELECT id, attempt FROM effects ORDER BY id");
    expect(new Set(effects.map(({ id }) => id))).toEqual(new Set(ids.filter((_, index) => index !== 9)));
    expect(effects).toHaveLength(59);
    expect(effects.filter(({ attempt }) => Number(attempt) === 2).map(({ id }) => id)).toEqual([ids[7]]);
    expect((await recordsOf(ids[0] as string)).filter(({ result }) => result === 0)).toHaveLength(59);
  });

  it("changes nothing for a member that has lost its partition", async () => {
    await queue.createTopic({ topic: "orders" });
    const ids = await queue.append(numbers(3));
    const seen: string[] = [];
    const held = gate();
    await members.start({
      handler: async ({ key, id }) => {
        seen.push(id);
        if (key === "0" && seen.length <= 3) await held.opened;
      },
    });
    await until(() => seen.length === 3);
    // As a takeover or a rewind does it.
    await place.query("UPDATE message_consumption SET epoch = epoch + 1, next_message_id = 0");
    held.open();
    await until(() => seen.length === 6);
    expect(seen).toEqual([...ids, ...ids]);
    await members.stopAll();
    expect(await recordsOf(ids[0] as string)).toHaveLength(3);
  });

  it("reads on over months without a table, and partitions that the topic gets", async () => {
    await queue.createTopic({ topic: "orders" });
    const seen: string[] = [];
    await members.start({ handler: ({ id }) => void seen.push(id) });
    const ids = await queue.append(numbers(2));
    await until(() => seen.length === 2);
    const ahead = BigInt(Date.now() + 100 * 86_400_000 - 1_577_836_800_000) << 16n;
    await place.query(`UPDATE message_topic_partition SET last_id = ${ahead}`);
    ids.push(...(await queue.append(numbers(2))));
    await until(() => seen.length === 4);
    await queue.alterTopic({ topic: "orders", partitions: 3 });
    for (let call = 0; call < 3; call += 1) ids.push(...(await queue.append(numbers(1))));
    await until(() => seen.length === 7);
    expect(seen.toSorted()).toEqual(ids.toSorted());
  });

  it("refuses what cannot be before it joins", async () => {
    await queue.createTopic({ topic: "orders" });
    const handler = (): void => undefined;
    await expect(queue.consume({ topic: "other", group: "g", handler })).rejects.toMatchObject({
      code: "UNKNOWN_TOPIC",
    });
    await expect(queue.consume({ topic: "Or", group: "g", handler })).rejects.toMatchObject({ code: "INVALID_NAME" });
    await expect(queue.consume({ topic: "orders", group: "a'b", handler })).rejects.toMatchObject({
      code: "INVALID_NAME",
    });
    for (const wrong of [{ batchSize: 0 }, { from: "middle" }, { records: "none" }, { leaseMs: 5 }, { handle: 1 }]) {
      const options = { topic: "orders", group: "g", handler, ...wrong } as QueueConsumeOptions;
      await expect(queue.consume(options)).rejects.toMatchObject({ code: "CONFIGURATION" });
    }
    expect(await countOf("message_consumption")).toBe(0);
  });
});
