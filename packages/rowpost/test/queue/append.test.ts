/** Topics and the append: ids, month tables, whose transaction it is. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { monthAfter, queueIdMs, queueMonth } from "../../src/message/queue-id.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { until } from "../until.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";

describeOnEach("the queue's topics and appends", (make, { isServer }) => {
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;

  beforeEach(async () => {
    place = await make();
    database = place.open();
    queue = createQueue({ database, producerGroup: "shop", ip: "10.0.0.7", port: 8080 });
    await queue.migrate();
  });
  afterEach(async () => {
    await queue.close();
    await place.drop();
  });

  const rowsOf = async (topic: string, month: number) =>
    await place.query(
      `SELECT partition_no, ${place.address.kind === "postgres" ? "message_id::text" : place.address.kind === "mysql" ? "CAST(message_id AS CHAR)" : "CAST(message_id AS TEXT)"} AS id, message_key, message_type, message_data, headers, ip, port, producer_group, ordering_key FROM ${topic}_message_info_${month} ORDER BY partition_no, message_id`,
    );

  it("makes a topic with the seed's tables for this month and the next, once", async () => {
    expect(await queue.createTopic({ topic: "orders", partitions: 2 })).toEqual({
      created: true,
      topic: { topic: "orders", partitions: 2, keyedPartitions: 2, retentionMonths: null },
    });
    expect(await queue.createTopic({ topic: "orders", partitions: 3 })).toMatchObject({
      created: false,
      topic: { partitions: 2 },
    });
    const { topics } = database.queue.store();
    const month = await topics.currentMonth();
    expect(await topics.months("orders")).toEqual([month, monthAfter(month)]);
    // A topic whose name begins with another's has tables of its own.
    await queue.createTopic({ topic: "order" });
    await queue.createTopic({ topic: "orders_message_info" });
    expect(await topics.months("order")).toEqual([month, monthAfter(month)]);
    expect(await topics.months("orders")).toEqual([month, monthAfter(month)]);
    expect((await queue.topics()).map(({ topic }) => topic)).toEqual(["order", "orders", "orders_message_info"]);
    expect(await queue.deleteTopic("orders")).toBe(true);
    expect(await queue.deleteTopic("orders")).toBe(false);
    expect(await topics.months("orders")).toEqual([]);
    expect((await queue.topics()).map(({ topic }) => topic)).toEqual(["order", "orders_message_info"]);
  });

  it("refuses names, options and messages that cannot be before any SQL", async () => {
    const untouched = createQueue({ database });
    const names = ["Orders", "a b", "a`; DROP TABLE x", 'a"', "a.b", "订单", "", "a".repeat(32), "a".repeat(41)];
    for (const topic of names) {
      await expect(untouched.createTopic({ topic })).rejects.toMatchObject({ code: "INVALID_NAME" });
      await expect(untouched.append({ topic, body: 1 })).rejects.toMatchObject({ code: "INVALID_NAME" });
      await expect(untouched.deleteTopic(topic)).rejects.toMatchObject({ code: "INVALID_NAME" });
    }
    for (const partitions of [0, 65, 1.5, Number.NaN]) {
      await expect(untouched.createTopic({ topic: "a", partitions })).rejects.toMatchObject({ code: "CONFIGURATION" });
    }
    for (const message of [
      { topic: "a", body: () => 1 },
      { topic: "a", body: "{", jsonText: true },
      { topic: "a", body: 1, key: "" },
      { topic: "a", body: 1, orderingKey: "k ".repeat(100) },
      { topic: "a", body: 1, dealyMs: 5 },
    ]) {
      await expect(untouched.append(message)).rejects.toMatchObject({ code: "INVALID_MESSAGE" });
    }
    await expect(queue.append({ topic: "unknown_topic", body: 1 })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    await untouched.close();
  });

  it("appends with ids that grow, in the rows of the seed", async () => {
    await queue.createTopic({ topic: "orders" });
    const before = Date.now();
    const ids = await queue.append([
      { topic: "orders", key: "4711", type: "order.created", body: { n: 1, zh: "订单 𠮷\\'" }, headers: { a: "b" } },
      { topic: "orders", body: "text", contentType: "text/plain", orderingKey: "c1" },
    ]);
    ids.push(...(await queue.append({ topic: "orders", body: 3 })));
    expect(ids.map(BigInt)).toEqual(ids.map(BigInt).toSorted((left, right) => (left < right ? -1 : 1)));
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(Math.abs(queueIdMs(id) - before)).toBeLessThan(60_000);
    const rows = await rowsOf("orders", queueMonth(ids[0] as string));
    expect(rows.map(({ id }) => String(id))).toEqual(ids);
    expect(rows[0]).toMatchObject({
      message_key: "4711",
      message_type: "order.created",
      message_data: '{"n":1,"zh":"订单 𠮷\\\\\'"}',
      headers: '{"a":"b"}',
      ip: "10.0.0.7",
      producer_group: "shop",
    });
    expect(rows[1]).toMatchObject({ message_data: "text", ordering_key: "c1", message_key: null });
  });

  it("spreads keys over partitions, and over new ones only when nobody has unread messages", async () => {
    await queue.createTopic({ topic: "orders", partitions: 2 });
    const keyed = Array.from({ length: 40 }, (_, index) => ({
      topic: "orders",
      orderingKey: `k${index}`,
      body: index,
    }));
    const partitionsOf = (ids: readonly string[]) => ids.map((id) => Number(BigInt(id) & 63n));
    const first = partitionsOf(await queue.append(keyed));
    expect(new Set(first)).toEqual(new Set([0, 1]));
    expect(partitionsOf(await queue.append(keyed))).toEqual(first);
    const group = database.queue.store().consumption({ topic: "orders", group: "g" }, { lockWaitTimeoutMs: 1_000 });
    await group.join("start");
    // Another process has seen the old number, and learns the new one under the counters' locks.
    const other = createQueue({ database });
    await other.append(keyed);
    expect(await queue.alterTopic({ topic: "orders", partitions: 5 })).toMatchObject({
      partitions: 5,
      keyedPartitions: 2,
    });
    expect(partitionsOf(await other.append(keyed))).toEqual(first);
    await place.query("UPDATE message_consumption SET next_message_id = 9000000000000000000");
    // One of a key comes again: later ones of the key must not come from another partition.
    await place.query(
      `INSERT INTO message_redelivery (topic_id, consumer_group_id, partition_no, message_id, state, attempt, ordering_key, next_attempt_at, gmt_create, gmt_modified)
       VALUES ('orders', 'g', 0, 64, 0, 1, 'k1', '2020-01-01 00:00:00', '2020-01-01 00:00:00', '2020-01-01 00:00:00')`,
    );
    expect(await queue.alterTopic({ topic: "orders" })).toMatchObject({ partitions: 5, keyedPartitions: 2 });
    await place.query("UPDATE message_redelivery SET state = 1");
    expect(await queue.alterTopic({ topic: "orders" })).toMatchObject({ partitions: 5, keyedPartitions: 5 });
    const spread = partitionsOf(await other.append(keyed));
    expect(new Set(spread).size).toBeGreaterThan(2);
    expect(partitionsOf(await queue.append(keyed))).toEqual(spread);
    await expect(queue.alterTopic({ topic: "orders", partitions: 4 })).rejects.toThrow("not shrink");
    await group.close();
    await other.close();
  });

  it("appends in a transaction of the user's: there if and only if it commits", async () => {
    await queue.createTopic({ topic: "orders" });
    const kept = await database.transaction((tx) => queue.append(tx, [{ topic: "orders", body: 1 }]));
    await expect(
      database.transaction(async (tx) => {
        await queue.append(tx, [{ topic: "orders", body: 2 }]);
        throw new Error("changed my mind");
      }),
    ).rejects.toThrow("changed my mind");
    const rows = await rowsOf("orders", queueMonth(kept[0] as string));
    expect(rows.map(({ id }) => String(id))).toEqual(kept);
    await expect(queue.append({} as never, [{ topic: "orders", body: 1 }])).rejects.toMatchObject({
      code: "TRANSACTION_REQUIRED",
    });
  });

  it("fails in a transaction of the user's for what has changed, which the next one knows", async () => {
    await queue.createTopic({ topic: "orders" });
    // Of another process: it does not hear of the change.
    const other = createQueue({ database });
    const append = (orderingKey: string) =>
      database.transaction((tx) => other.append(tx, [{ topic: "orders", orderingKey, body: 1 }]));
    await other.append({ topic: "orders", orderingKey: "a", body: 1 });
    await queue.alterTopic({ topic: "orders", partitions: 64 });
    await expect(append("a")).rejects.toMatchObject({ code: "NOT_APPENDED", retriable: true });
    await append("a");
    // A month that nobody has foreseen: its table is made while the transaction holds its locks.
    const month = queueMonth((await append("b"))[0] as string);
    const ahead = BigInt(Date.UTC(Math.floor(month / 100), (month % 100) + 3, 1) - 1_577_836_800_000) << 16n;
    await place.query(`UPDATE message_topic_partition SET last_id = ${ahead}`);
    const tried = await database
      .transaction(async (tx) => {
        const settled = await Promise.allSettled([other.append(tx, [{ topic: "orders", body: 2 }])]);
        throw settled[0].status === "rejected" ? settled[0].reason : new Error("there was a table");
      })
      .catch((error: unknown) => error);
    expect(tried).toMatchObject({ code: "NOT_APPENDED", retriable: true });
    const { topics } = database.queue.store();
    await until(async () => (await topics.months("orders")).length >= 4);
    const [later = ""] = await append("c");
    expect(await rowsOf("orders", queueMonth(later))).toHaveLength(1);
    await other.close();
  });

  it("makes tables beside a transaction of the user's that may hold what they wait for", async () => {
    await queue.createTopic({ topic: "orders" });
    const { topics } = database.queue.store();
    for (const month of await topics.months("orders")) {
      for (const table of ["message_info", "message_info_consumption"]) {
        await place.query(`DROP TABLE orders_${table}_${month}`);
      }
    }
    const other = createQueue({ database });
    const append = () => database.transaction((tx) => other.append(tx, [{ topic: "orders", body: 1 }]));
    const first = append();
    // The file's one lock is the transaction's; on a server the table may be there in time.
    if (isServer) await first.catch(() => undefined);
    else await expect(first).rejects.toMatchObject({ code: "NOT_APPENDED", retriable: true });
    await until(async () => (await topics.months("orders")).length === 2);
    await append();
    await other.close();
  });

  it("goes on from the last id when the clock was set back, and puts each id into its own month", async () => {
    await queue.createTopic({ topic: "orders" });
    const [first = ""] = await queue.append({ topic: "orders", body: 1 });
    // As after an hour's append with a clock that was 40 days ahead: the counter stays ahead of it.
    const month = queueMonth(first);
    const ahead = new Date(Date.UTC(Math.floor(month / 100), month % 100, 1));
    const lastOfMonth = BigInt(ahead.getTime() - 1 - 1_577_836_800_000) << 16n;
    await place.query(`UPDATE message_topic_partition SET last_id = ${lastOfMonth + 65_533n}`);
    const ids = await queue.append(Array.from({ length: 5 }, (_, index) => ({ topic: "orders", body: index })));
    expect(ids.map(queueMonth)).toEqual([month, month, ...[1, 2, 3].map(() => monthAfter(month))]);
    expect(await rowsOf("orders", monthAfter(month))).toHaveLength(3);
    // A month that nobody has made a table for, and an append of a process that knows of none.
    await place.query(
      `UPDATE message_topic_partition SET last_id = ${BigInt(ahead.getTime() + 70 * 86_400_000 - 1_577_836_800_000) << 16n}`,
    );
    const [later = ""] = await queue.append({ topic: "orders", body: 6 });
    expect(await rowsOf("orders", queueMonth(later))).toHaveLength(1);
  });
});
