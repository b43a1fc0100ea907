/** Searching a topic over its months, and what is known of one message. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { queueIdMs, queueMonth } from "../../src/message/queue-id.ts";
import type { Queue, QueueSearch } from "../../src/queue/index.ts";
import { oldId, writeOld } from "./months.ts";
import { describeOnEach, type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

const MONTHS = [202601, 202602, 202603, 202604];

describeOnEach("searching the queue", (make) => {
  let opened: OpenQueue;
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 3, port: 8080, producerGroup: "shop" });
    ({ place, database, queue } = opened);
  });
  afterEach(() => opened.close());

  async function makeMonths(months: readonly number[]): Promise<void> {
    const store = database.queue.store();
    await store.topics.makeMonths("orders", months);
    await store.close();
  }

  /** Every page. */
  async function all(search: Omit<QueueSearch, "topic">): Promise<{ ids: string[]; pages: number }> {
    const ids: string[] = [];
    for (let pages = 1, before: string | undefined; ; pages += 1) {
      const answer = await queue.search({ topic: "orders", ...search, before });
      ids.push(...answer.messages.map(({ id }) => id));
      if (answer.next === undefined) return { ids, pages };
      before = answer.next;
    }
  }

  const newestFirst = (ids: readonly string[]): string[] =>
    ids.toSorted((left, right) => (BigInt(left) < BigInt(right) ? 1 : -1));

  it("finds a key in every month of the range, newest first, in pages that miss and repeat nothing", async () => {
    await makeMonths(MONTHS);
    const wanted: string[] = [];
    for (const month of MONTHS) {
      // Keys that differ in case or a blank only are other keys.
      const keys = Array.from({ length: 40 }, (_, index) => ["4711", "4711 ", "k", "K", "47110"][index % 5] ?? "");
      const ids = await writeOld(
        place,
        "orders",
        month,
        keys.map((key, index) => ({ key, partition: index % 3 })),
      );
      wanted.push(...ids.filter((_, index) => keys[index] === "4711"));
    }
    const found = await all({ key: "4711", limit: 7 });
    expect(found.ids).toEqual(newestFirst(wanted));
    expect(found.pages).toBe(5);
    const answer = await queue.search({ topic: "orders", key: "4711" });
    expect(answer).toMatchObject({ stopped: "end", complete: true, next: undefined, rows: 32, droppedMonths: [] });
    expect(answer.months.slice(-4)).toEqual(MONTHS.toReversed());
    expect(answer.messages[0]).toMatchObject({ topic: "orders", key: "4711", headers: {}, orderingKey: undefined });
    const two = await queue.search({
      topic: "orders",
      key: "4711",
      from: new Date("2026-02-01T00:00:00Z"),
      to: new Date("2026-04-01T00:00:00Z"),
    });
    expect(two.messages.map(({ id }) => queueMonth(id))).toEqual([...Array(8).fill(202603), ...Array(8).fill(202602)]);
    expect(two.months).toEqual([202603, 202602]);
    // To the millisecond: `from` is within, `to` is not.
    const [first = ""] = newestFirst(wanted).slice(-1);
    const at = queueIdMs(first);
    const exact = { topic: "orders", key: "4711", from: new Date(at), to: new Date(at + 1) };
    expect((await queue.search(exact)).messages.map(({ id }) => id)).toEqual([first]);
    expect((await queue.search({ ...exact, from: new Date(at - 1), to: new Date(at) })).messages).toEqual([]);
  });

  it("walks by header, type or nothing, over partitions of any size, and counts what it looked at", async () => {
    await makeMonths(MONTHS.slice(0, 2));
    const ids: string[] = [];
    const traced: string[] = [];
    for (const month of MONTHS.slice(0, 2)) {
      // Nearly all in one partition, and the others' in between.
      const messages = Array.from({ length: 1_500 }, (_, index) => ({
        partition: index % 100 === 0 ? 1 : 0,
        type: index % 2 === 0 ? "order.created" : "order.paid",
        headers: { trace: `t${index % 500}` },
      }));
      const own = await writeOld(place, "orders", month, messages);
      ids.push(...own);
      traced.push(...own.filter((_, index) => index % 500 === 7));
    }
    expect((await all({ limit: 400 })).ids).toEqual(newestFirst(ids));
    const found = await queue.search({ topic: "orders", header: { name: "trace", value: "t7" } });
    expect(found.messages.map(({ id }) => id)).toEqual(newestFirst(traced));
    expect(found).toMatchObject({ complete: true, rows: 3_000, stopped: "end" });
    expect((await all({ type: "order.paid", limit: 1_000 })).ids).toHaveLength(1_500);
    expect((await queue.search({ topic: "orders", id: traced[0], type: "order.paid" })).messages).toHaveLength(1);
    expect((await queue.search({ topic: "orders", header: { name: "trace", value: "none" } })).complete).toBe(true);
  });

  it("says where to go on when the time is over, and misses nothing behind it", async () => {
    await makeMonths(MONTHS);
    const ids: string[] = [];
    for (const month of MONTHS) {
      ids.push(
        ...(await writeOld(
          place,
          "orders",
          month,
          Array.from({ length: 600 }, (_, n) => ({ partition: n % 3 })),
        )),
      );
    }
    let now = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 10));
    try {
      const partial = await queue.search({ topic: "orders", header: { name: "x", value: "y" }, timeLimitMs: 1 });
      expect(partial).toMatchObject({ stopped: "time", complete: false, messages: [] });
      expect(partial.next).toBeDefined();
      const found = await all({ limit: 1_000, timeLimitMs: 1 });
      expect(found.ids).toEqual(newestFirst(ids));
      expect(found.pages).toBeGreaterThan(4);
    } finally {
      clock.mockRestore();
    }
  });

  it("tells a dropped month, a month without a table, no such topic and an empty range apart", async () => {
    await makeMonths([202601, 202602, 202604]);
    const [kept] = await writeOld(place, "orders", 202604, [{ key: "4711" }]);
    const [gone = ""] = await writeOld(place, "orders", 202602, [{ key: "4711" }]);
    const at = place.address.kind === "postgres" ? "now()" : "'2026-06-01 10:00:00.000'";
    await place.query(
      `INSERT INTO message_dropped_month (topic_id, message_date, messages, records, author, reason, archive, gmt_create, gmt_modified) VALUES ('orders', 202602, 1, 3, 'ann', 'retention', '/archive/x', ${at}, ${at})`,
    );
    // Its table is to go yet: it counts as gone already.
    const answer = await queue.search({ topic: "orders", key: "4711", to: new Date("2026-05-01T00:00:00Z") });
    expect(answer.messages.map(({ id }) => id)).toEqual([kept]);
    expect(answer).toMatchObject({ complete: false, stopped: "end", months: [202604, 202601], absentMonths: [202603] });
    expect(answer.droppedMonths).toMatchObject([
      { month: 202602, messages: 1, records: 3, author: "ann", reason: "retention", archive: "/archive/x" },
    ]);
    await expect(queue.message("orders", gone)).rejects.toMatchObject({ code: "MONTH_DROPPED", months: [202602] });
    expect(await queue.message("orders", oldId(202603, 5))).toBeUndefined();
    expect(await queue.message("orders", oldId(202604, 5))).toBeUndefined();
    // By hand, behind the back of everybody.
    await place.query("DROP TABLE orders_message_info_202604");
    expect(await queue.search({ topic: "orders", key: "4711", to: new Date("2026-05-01T00:00:00Z") })).toMatchObject({
      messages: [],
      months: [202601],
    });
    await expect(queue.search({ topic: "others", key: "1" })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    await expect(queue.message("others", "1")).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
  });

  it("refuses what cannot be, before any SQL", async () => {
    for (const id of ["", "1x", "-1", "01", "1.5", "9223372036854775808", "1 OR 1=1", 5, null]) {
      await expect(queue.search({ topic: "orders", id: id as string })).rejects.toMatchObject({ code: "INVALID_ID" });
      await expect(queue.message("orders", id as string)).rejects.toMatchObject({ code: "INVALID_ID" });
    }
    await expect(queue.search({ topic: "orders", before: "x" })).rejects.toMatchObject({ code: "INVALID_ID" });
    await expect(queue.search({ topic: "a'b" })).rejects.toMatchObject({ code: "INVALID_NAME" });
    for (const wrong of [
      { limit: 0 },
      { limit: 1_001 },
      { timeLimitMs: 0 },
      { from: "x" },
      { to: new Date("x") },
      { k: 1 },
    ]) {
      await expect(queue.search({ topic: "orders", ...wrong } as QueueSearch)).rejects.toMatchObject({
        code: "CONFIGURATION",
      });
    }
  });

  it.each(["each", "batch"] as const)(
    "shows who consumed a message, when and how, with records of %s",
    async (records) => {
      const ids = await queue.append(
        Array.from({ length: 20 }, (_, index) => ({
          topic: "orders",
          key: `k${index}`,
          type: "order.created",
          body: { index },
          headers: { trace: "1" },
          orderingKey: "one",
          ...(index === 9 ? { delayMs: 3_600_000 } : {}),
        })),
      );
      let seen = 0;
      const consumer = await queue.consume({
        topic: "orders",
        group: "billing",
        logger: "silent",
        records,
        retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 },
        handler: ({ key, attempt }) => {
          seen += 1;
          if (key === "k5" || (key === "k7" && attempt === 1)) throw new Error("out of paper");
        },
      });
      await vi.waitUntil(() => seen === 21, { timeout: 30_000, interval: 5 });
      await consumer.stop();
      await (
        await queue.consume({ topic: "orders", group: "late", from: "end", logger: "silent", handler: () => {} })
      ).stop();
      const show = async (index: number) => await queue.message("orders", ids[index] as string);
      expect(await show(3)).toMatchObject({
        id: ids[3],
        key: "k3",
        type: "order.created",
        body: { index: 3 },
        headers: { trace: "1" },
        orderingKey: "one",
        producer: { group: "shop", ip: "10.0.0.7", port: 8080 },
        problem: undefined,
        attempts: [
          {
            group: "billing",
            round: 0,
            attempt: 1,
            result: "consumed",
            ip: "10.0.0.7",
            port: 8080,
            instance: consumer.owner,
          },
        ],
        groups: [
          { group: "billing", state: "consumed" },
          { group: "late", state: "passed" },
        ],
      });
      const dead = await show(5);
      expect(dead?.attempts.map(({ attempt, result, error }) => [attempt, result, error])).toEqual([
        [1, "failed", "out of paper"],
        [2, "dead", "out of paper"],
      ]);
      expect(dead?.groups[0]).toMatchObject({ state: "dead", attempts: 2, failReason: "out of paper" });
      const again = await show(7);
      expect(again?.attempts.map(({ attempt, result }) => [attempt, result])).toEqual([
        [1, "failed"],
        [2, "consumed"],
      ]);
      expect(again?.groups[0]).toMatchObject({ state: "consumed" });
      const delayed = await show(9);
      expect(delayed).toMatchObject({ attempts: [], groups: [{ state: "waiting", attempts: 0 }, {}] });
      const [fresh = ""] = await queue.append({ topic: "orders", body: 1 });
      expect((await queue.message("orders", fresh))?.groups.map(({ state }) => state)).toEqual(["unread", "unread"]);
    },
  );
});
