/** Dropping months: which, when not, what of them is kept, and who waits for whom. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Database, Session } from "../../src/databases/database.ts";
import { type Consumer, createQueue, type DropMonthOptions, type Queue } from "../../src/queue/index.ts";
import { archiveMonth } from "../../src/queue/retention/archive.ts";
import { createRetention } from "../../src/queue/retention/dropping.ts";
import { applyRetention } from "../../src/queue/retention/retention.ts";
import { gate } from "./members.ts";
import { oldId, writeOld } from "./months.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";

const MONTHS = [202601, 202602, 202603];
const WHO = { author: "ann", reason: "no room" };

describeOnEach("dropping months", (make, { isServer }) => {
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;
  let folder: string;
  const consumers: Consumer[] = [];

  beforeEach(async () => {
    place = await make();
    database = place.open();
    queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 2, retentionMonths: 2 });
    const store = database.queue.store();
    await store.topics.makeMonths("orders", MONTHS);
    await store.close();
    folder = await mkdtemp(join(tmpdir(), "rowpost-archive-"));
  });
  afterEach(async () => {
    for (const consumer of consumers.splice(0)) await consumer.stop();
    await queue.close();
    await place.drop();
    await rm(folder, { recursive: true, force: true });
  });

  const drop = (month: number, more: Partial<DropMonthOptions> = {}) =>
    queue.dropMonth({ topic: "orders", month, ...WHO, ...more });

  /** A group whose progress is this id in both partitions. */
  async function group(name: string, nextId: string): Promise<void> {
    for (const partition of [0, 1]) {
      await place.query(
        `INSERT INTO message_consumption (topic_id, consumer_group_id, partition_no, next_message_id, message_date) VALUES ('orders', '${name}', ${partition}, ${nextId}, 0)`,
      );
    }
  }

  async function redelivery(name: string, id: string, state: number): Promise<void> {
    const at = place.address.kind === "postgres" ? "now()" : "'2026-01-01 10:00:00.000'";
    await place.query(
      `INSERT INTO message_redelivery (topic_id, consumer_group_id, partition_no, message_id, state, attempt, next_attempt_at, gmt_create, gmt_modified) VALUES ('orders', '${name}', 0, ${id}, ${state}, 1, ${at}, ${at}, ${at})`,
    );
  }

  async function months(): Promise<number[]> {
    const store = database.queue.store();
    const found = await store.topics.months("orders");
    await store.close();
    return found.filter((month) => month < 202610);
  }

  const messages = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ key: `k'${n}`.replace("'", "-"), partition: n % 2 }));

  it("archives a month whole, and then drops it and what would come again of it", async () => {
    const ids = await writeOld(place, "orders", 202601, messages(1_203));
    const later = await writeOld(place, "orders", 202602, messages(3));
    await place.query(
      `INSERT INTO orders_message_info_consumption_202601 (message_id, consumer_group_id, round, attempt, instance, consumption_time, result, duration_ms, error) VALUES ${ids
        .flatMap((id) =>
          [1, 2].map((attempt) => `(${id}, 'billing', 0, ${attempt}, 'me', '2026-01-05 10:00:00.123', 0, 4, NULL)`),
        )
        .join(", ")}`,
    );
    await group("billing", later[2] as string);
    await redelivery("billing", ids[5] as string, 1);
    await redelivery("billing", later[0] as string, 1);
    const progress: number[] = [];
    const done = await drop(202601, {
      archiveTo: folder,
      onProgress: ({ archivedRows }) => progress.push(archivedRows),
    });
    expect(done).toMatchObject({ messages: 1_203, records: 2_406, redeliveries: 1, month: 202601 });
    expect(progress.at(-1)).toBe(3_609);
    expect(await months()).toEqual([202602, 202603]);
    expect((await readdir(folder)).sort()).toEqual([
      "orders_202601.messages.ndjson.gz",
      "orders_202601.records.ndjson.gz",
    ]);
    const [first = "", second = ""] = done.archive;
    const lines = async (file: string): Promise<Record<string, unknown>[]> =>
      gunzipSync(await readFile(file))
        .toString()
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    const archived = await lines(first);
    expect(new Set(archived.map(({ id }) => id))).toEqual(new Set(ids));
    expect(archived[0]).toMatchObject({ id: ids[0], key: "k-0", data: "0", partition: 0, headers: null });
    expect((await lines(second))[1]).toMatchObject({
      id: ids[0],
      attempt: 2,
      group: "billing",
      consumedAt: "2026-01-05T10:00:00.123Z",
    });
    const left = await place.query("SELECT CAST(message_id AS CHAR(20)) AS id FROM message_redelivery");
    expect(left.map(({ id }) => String(id).trim())).toEqual([later[0]]);
    const answer = await queue.search({ topic: "orders", key: "k-0" });
    expect(answer).toMatchObject({
      complete: false,
      droppedMonths: [{ month: 202601, messages: 1_203, records: 2_406, redeliveries: 1, ...WHO }],
    });
    expect(answer.droppedMonths[0]?.archive).toContain("orders_202601.messages.ndjson.gz");
    await expect(drop(202601)).rejects.toMatchObject({ code: "MONTH_NOT_DROPPED", reason: "GONE" });
    await expect(drop(202512)).rejects.toMatchObject({ reason: "NO_SUCH_MONTH" });
    await expect(drop(209901)).rejects.toMatchObject({ code: "CONFIGURATION" });
    const now = new Date();
    await expect(drop(now.getUTCFullYear() * 100 + now.getUTCMonth() + 1)).rejects.toMatchObject({
      reason: "NOT_OVER",
    });
  });

  it("refuses while a group needs it, names the group and its place, and drops it when forced", async () => {
    const ids = await writeOld(place, "orders", 202601, messages(4));
    await group("done", String(BigInt(ids[3] as string) + 1n));
    await group("slow", ids[3] as string);
    const refused = await drop(202601).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "MONTH_NOT_DROPPED", reason: "NEEDED", retriable: true });
    // Partition 0 is read; the group that is done is two months idle, and needs nothing.
    expect(String(refused)).toContain(`group slow has unread messages (partition 1 from id ${ids[3]} on)`);
    expect(String(refused)).not.toContain("done");
    expect(await queue.search({ topic: "orders" })).toMatchObject({ complete: true });
    await place.query(`UPDATE message_consumption SET next_message_id = ${oldId(202602, 0)}`);
    await redelivery("slow", ids[0] as string, 0);
    await expect(drop(202601)).rejects.toThrow("group slow gets 1 messages of it again");
    expect(await drop(202601, { force: true })).toMatchObject({ messages: 4, redeliveries: 1 });
    // A rewind had set it aside, and the group has read it again since.
    const [again = ""] = await writeOld(place, "orders", 202602, messages(1));
    await place.query(`UPDATE message_consumption SET next_message_id = ${oldId(202603, 0)}`);
    await redelivery("slow", again, 2);
    expect(await drop(202602)).toMatchObject({ messages: 1, redeliveries: 1 });
    expect(await months()).toEqual([202603]);
  });

  it("leaves everything as it was when the archive fails", async () => {
    await writeOld(place, "orders", 202601, messages(4));
    const file = join(folder, "a-file");
    await writeFile(file, "");
    await expect(drop(202601, { archiveTo: file })).rejects.toMatchObject({ code: "ARCHIVE" });
    expect(await months()).toEqual(MONTHS);
    expect(await queue.search({ topic: "orders" })).toMatchObject({ complete: true, rows: 4 });
    const retention = createRetention(database.queue.sql);
    /** Somebody writes into this partition while the month is archived; both have been read. */
    const archived = (partition: number, n: number) => {
      let written = false;
      return archiveMonth(retention, {
        topic: "orders",
        month: 202601,
        folder,
        owner: "x",
        onRows: async () => {
          if (written) return;
          written = true;
          await place.query(
            `INSERT INTO orders_message_info_202601 (partition_no, message_id, message_data) VALUES (${partition}, ${oldId(202601, n, partition)}, '1')`,
          );
        },
      });
    };
    // Partition 0 is behind what was read, and 1 goes on: archived whole, or not at all.
    await expect(archived(0, 99)).rejects.toMatchObject({ code: "ARCHIVE" });
    expect(await archived(1, 99)).toMatchObject({ counts: { messages: 6 } });
    await retention.close();
  });

  it("goes on where a call was killed, and not while another one is at it", async () => {
    await writeOld(place, "orders", 202601, messages(4));
    const ago = {
      mysql: "UTC_TIMESTAMP(3) - INTERVAL 2 MINUTE",
      postgres: "now() - interval '2 minutes'",
      sqlite: "strftime('%Y-%m-%d %H:%M:%f', 'now', '-120 seconds')",
    };
    const now = { mysql: "UTC_TIMESTAMP(3)", postgres: "now()", sqlite: "strftime('%Y-%m-%d %H:%M:%f', 'now')" };
    const { kind } = place.address;
    await place.query(
      `INSERT INTO message_dropped_month (topic_id, message_date, owner, author, reason, gmt_create, gmt_modified) VALUES ('orders', 202601, 'them', 'bob', 'old', ${now[kind]}, ${now[kind]})`,
    );
    await expect(drop(202601)).rejects.toMatchObject({ reason: "BUSY" });
    expect(await queue.search({ topic: "orders" })).toMatchObject({ complete: false, messages: [] });
    await place.query(`UPDATE message_dropped_month SET gmt_modified = ${ago[kind]}`);
    expect(await drop(202601)).toMatchObject({ messages: 4 });
    expect(await months()).toEqual([202602, 202603]);
    // Killed between the two tables.
    await place.query("DROP TABLE orders_message_info_202602");
    await place.query(
      `INSERT INTO message_dropped_month (topic_id, message_date, owner, author, reason, gmt_create, gmt_modified) VALUES ('orders', 202602, 'them', 'bob', 'old', ${ago[kind]}, ${ago[kind]})`,
    );
    expect(await drop(202602)).toMatchObject({ redeliveries: 0 });
    expect((await queue.search({ topic: "orders" })).droppedMonths).toHaveLength(2);
    await expect(place.query("SELECT 1 FROM orders_message_info_consumption_202602")).rejects.toThrow("202602");
  });

  it("drops by retention, by the earlier one of the two clocks", async () => {
    for (const month of MONTHS) await writeOld(place, "orders", month, messages(2));
    await group("slow", oldId(202602, 0));
    const store = database.queue.store();
    const retention = createRetention(database.queue.sql);
    const run = (now: string) =>
      applyRetention({ store: retention, topics: store.topics, nowMs: () => Date.parse(now) });
    // The database's clock says at least November 2026; this process lives in March.
    expect(await run("2026-03-31T23:59:59Z")).toEqual([]);
    expect(await run("2026-04-01T00:00:00Z")).toMatchObject([
      { month: 202601, dropped: { messages: 2 }, problem: undefined },
    ]);
    await queue.createTopic({ topic: "kept" });
    const outcomes = await queue.applyRetention();
    expect(outcomes).toMatchObject([
      { month: 202602, dropped: undefined },
      { month: 202603, dropped: undefined },
    ]);
    expect(outcomes[0]?.problem).toContain("group slow");
    expect(await months()).toEqual([202602, 202603]);
    await retention.close();
    await store.close();
  });

  it("is done by a running consumer, once an hour by one of them", async () => {
    for (const month of MONTHS) await writeOld(place, "orders", month, messages(2));
    // The end of a partition is behind its last message.
    for (let call = 0; call < 2; call += 1) await queue.append({ topic: "orders", body: 1 });
    for (let index = 0; index < 2; index += 1) {
      consumers.push(
        await queue.consume({ topic: "orders", group: "billing", from: "end", logger: "silent", handler: () => {} }),
      );
    }
    await vi.waitUntil(async () => (await months()).length === 0, { timeout: 60_000, interval: 20 });
    const retention = createRetention(database.queue.sql);
    expect(await retention.elect("orders", 3_600_000)).toBe(false);
    await retention.close();
  });

  if (isServer) {
    it("waits for no long reader: the month stays, and goes when he is gone", { timeout: 120_000 }, async () => {
      await writeOld(place, "orders", 202601, messages(2));
      const reader: Session = await database.connect({ purpose: "tool" });
      const [reading, end] = [gate(), gate()];
      const whole = reader.transaction(async (tx) => {
        await tx.run({ name: "read", text: "SELECT COUNT(*) FROM orders_message_info_202601", params: [] });
        reading.open();
        await end.opened;
      });
      await reading.opened;
      await expect(drop(202601)).rejects.toMatchObject({ reason: "IN_USE", retriable: true });
      // Nobody else stands behind it, and the month is as before.
      await queue.append({ topic: "orders", body: 1 });
      expect(await queue.search({ topic: "orders" })).toMatchObject({ complete: true, rows: 3 });
      expect(await queue.message("orders", oldId(202601, 0))).toMatchObject({ key: "k-0" });
      end.open();
      await whole;
      await reader.close();
      expect(await drop(202601)).toMatchObject({ messages: 2 });
      expect(await months()).toEqual([202602, 202603]);
    });

    it("leaves a month whose tables the database does not drop as it was, or goes on later", async () => {
      /** Something that needs the table. */
      const guard = async (table: string, key: string): Promise<string> => {
        if (place.address.kind === "postgres") {
          await place.query(`CREATE VIEW guard AS SELECT * FROM ${table}`);
          return "DROP VIEW guard";
        }
        await place.query(`CREATE TABLE guard LIKE ${table}`);
        await place.query(`ALTER TABLE guard ADD FOREIGN KEY (${key}) REFERENCES ${table} (${key})`);
        return "DROP TABLE guard";
      };
      await writeOld(place, "orders", 202601, messages(2));
      const first = await guard("orders_message_info_202601", "partition_no, message_id");
      await expect(drop(202601)).rejects.toMatchObject({ reason: "REFUSED", retriable: false });
      expect(await place.query("SELECT 1 AS one FROM message_dropped_month")).toEqual([]);
      expect(await queue.search({ topic: "orders" })).toMatchObject({ complete: true, rows: 2, droppedMonths: [] });
      await place.query(first);
      const second = await guard(
        "orders_message_info_consumption_202601",
        "message_id, consumer_group_id, round, attempt",
      );
      await expect(drop(202601)).rejects.toMatchObject({ reason: "REFUSED" });
      expect(await queue.search({ topic: "orders" })).toMatchObject({ complete: false, rows: 0 });
      await place.query(second);
      await drop(202601);
      expect((await queue.search({ topic: "orders" })).droppedMonths).toMatchObject([{ month: 202601, messages: 2 }]);
      await expect(place.query("SELECT 1 FROM orders_message_info_consumption_202601")).rejects.toThrow("202601");
    });
  }
});
