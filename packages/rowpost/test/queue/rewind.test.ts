/** Rewinding a group: where to, what comes again, and who of before may still write. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { queueIdMs, queueMonth } from "../../src/message/queue-id.ts";
import {
  type Consumer,
  createQueue,
  type Queue,
  type QueueConsumeOptions,
  type RewindOptions,
  type RewindPosition,
  type RewindReport,
} from "../../src/queue/index.ts";
import { until } from "../until.ts";
import { gate, numbers } from "./members.ts";
import { writeOld } from "./months.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";

const WHO = { author: "ann", reason: "invoices were wrong" };

describeOnEach("rewinding a group", (make) => {
  let place: QueuePlace;
  let database: Database;
  let queue: Queue;
  let seen: string[];
  const consumers: Consumer[] = [];

  beforeEach(async () => {
    place = await make();
    database = place.open();
    queue = createQueue({ database });
    await queue.migrate();
    seen = [];
  });
  afterEach(async () => {
    for (const consumer of consumers.splice(0)) await consumer.stop();
    await queue.close();
    await place.drop();
  });

  async function consume(options: Partial<QueueConsumeOptions> = {}): Promise<Consumer> {
    const consumer = await queue.consume({
      topic: "orders",
      group: "billing",
      logger: "silent",
      handler: ({ id }) => void seen.push(id),
      ...options,
    });
    consumers.push(consumer);
    return consumer;
  }

  async function stop(): Promise<void> {
    for (const consumer of consumers.splice(0)) await consumer.stop();
  }

  /** A group that has read so many messages, and is down. */
  async function read(count: number, options: Partial<QueueConsumeOptions> = {}): Promise<string[]> {
    await queue.createTopic({ topic: "orders" });
    const ids = await queue.append(numbers(count));
    await consume(options);
    await until(() => seen.length >= count);
    await stop();
    seen = [];
    return ids;
  }

  const rewind = (to: RewindPosition, more: Partial<RewindOptions> = {}): Promise<RewindReport> =>
    queue.rewind({ topic: "orders", group: "billing", to, ...WHO, ...more });
  const undo = (): Promise<RewindReport> => queue.undoRewind({ topic: "orders", group: "billing", ...WHO });

  async function position(): Promise<{ next: string; round: number; epoch: number }> {
    const [row] = await place.query(
      `SELECT CAST(next_message_id AS CHAR(20)) AS next, round, epoch FROM message_consumption WHERE consumer_group_id = 'billing' AND partition_no = 0`,
    );
    return { next: String(row?.["next"]).trim(), round: Number(row?.["round"]), epoch: Number(row?.["epoch"]) };
  }

  const behind = (id: string | undefined): string => String(BigInt(id ?? "0") + 1n);

  it("goes to a time, an id, the start, the end, another group's place and back by a number", async () => {
    const ids = await read(30);
    await consume({
      group: "other",
      from: { id: ids[4] as string },
      handler: () => new Promise(() => {}),
      drainTimeoutMs: 0,
    });
    await stop();
    const at = (index: number): string => ids[index] as string;
    const time = { time: new Date(queueIdMs(at(0))) };
    const targets: [RewindPosition, number][] = [
      ["start", 30],
      [{ id: at(10) }, 20],
      [time, 30],
      [{ time: new Date(Date.now() + 86_400_000) }, 0],
      [{ back: 3 }, 3],
      [{ back: 1_000 }, 30],
      [{ group: "other" }, 26],
      ["end", 0],
    ];
    const before = await position();
    for (const [to, count] of targets) {
      const plan = await rewind(to, { dryRun: true });
      expect(plan, JSON.stringify(to)).toMatchObject({
        dryRun: true,
        messages: count,
        consumed: count,
        rewind: undefined,
      });
    }
    // Nothing of it was done.
    expect(await position()).toEqual(before);
    let rounds = 0;
    for (const [to, count] of targets) {
      const done = await rewind(to);
      if (count > 0) rounds += 1;
      expect(done.partitions).toHaveLength(count > 0 ? 1 : 0);
      await consume();
      await until(() => seen.length >= count);
      await stop();
      expect(seen, JSON.stringify(to)).toEqual(count === 0 ? [] : ids.slice(-count));
      seen = [];
      expect(await position()).toMatchObject({ next: behind(ids.at(-1)), round: rounds });
    }
    const detail = await queue.message("orders", at(29));
    expect(detail?.attempts.filter(({ group }) => group === "billing").map(({ round }) => round)).toEqual([
      0, 1, 2, 3, 4, 5, 6,
    ]);
    const log = await queue.rewinds("orders", "billing");
    expect(log.map(({ rewind: number }) => number)).toEqual([6, 5, 4, 3, 2, 1]);
    expect(log.at(-1)).toMatchObject({ ...WHO, partition: 0, round: 1, from: behind(at(29)), undoOf: null });
  });

  it("moves every partition by the order of the ids, and those alone that are named", async () => {
    await queue.createTopic({ topic: "orders", partitions: 3 });
    const ids: string[] = [];
    for (let call = 0; call < 12; call += 1) ids.push(...(await queue.append(numbers(1))));
    await consume();
    await until(() => seen.length === 12);
    await stop();
    seen = [];
    const sorted = ids.toSorted((left, right) => (BigInt(left) < BigInt(right) ? -1 : 1));
    const plan = await rewind({ id: sorted[5] as string }, { dryRun: true });
    expect(plan).toMatchObject({ messages: 7, consumed: 7 });
    await rewind({ id: sorted[5] as string }, { partitions: [1] });
    await consume();
    const own = sorted.slice(5).filter((id) => BigInt(id) % 64n === 1n);
    await until(() => seen.length >= own.length);
    await stop();
    expect(seen).toEqual(own);
  });

  it("takes a running member's late settle for nothing, and gives it the messages again", async () => {
    await queue.createTopic({ topic: "orders" });
    const ids = await queue.append(numbers(5));
    const held = gate();
    await consume({
      handler: async ({ id }) => {
        seen.push(id);
        if (id === ids[3] && seen.length <= 5) await held.opened;
      },
    });
    await until(async () => seen.length === 5 && (await position()).next === behind(ids[2]));
    const before = await position();
    const done = await rewind("start");
    expect(done.partitions).toMatchObject([{ partition: 0, from: behind(ids[2]) }]);
    held.open();
    await until(async () => (await position()).next === behind(ids[4]));
    await stop();
    expect(seen).toEqual([...ids, ...ids]);
    const after = await position();
    expect(after.round).toBe(1);
    expect(after.epoch).toBeGreaterThan(before.epoch);
    // 3 of the first round was handled, and never settled; nor was 4, unless 3 took a second.
    const rounds = await Promise.all(
      ids.map(async (id) => (await queue.message("orders", id))?.attempts.map(({ round }) => round)),
    );
    expect(rounds.slice(0, 4)).toEqual([[0, 1], [0, 1], [0, 1], [1]]);
    expect(rounds[4]).toContain(1);
  });

  it("gives a running member that is idle the messages again", async () => {
    await queue.createTopic({ topic: "orders" });
    const ids = await queue.append(numbers(4));
    await consume({ leaseMs: 1_000 });
    await until(async () => seen.length === 4 && (await position()).next === behind(ids[3]));
    await rewind({ id: ids[1] as string });
    await until(() => seen.length === 7);
    expect(seen.slice(4)).toEqual(ids.slice(1));
  });

  it("moves only a group that still is where the dry run saw it, when asked", async () => {
    const ids = await read(6);
    const plan = await rewind("start", { dryRun: true });
    const more = await queue.append(numbers(1));
    await consume();
    await until(() => seen.length === 1);
    await stop();
    await expect(rewind("start", { expected: plan.partitions })).rejects.toMatchObject({ code: "REWIND_REFUSED" });
    expect(await position()).toMatchObject({ next: behind(more[0]), round: 0 });
    const again = await rewind({ id: ids[2] as string }, { dryRun: true });
    await rewind({ id: ids[2] as string }, { expected: again.partitions });
    expect(await position()).toMatchObject({ next: ids[2], round: 1 });
  });

  it("sets dead letters aside whose messages come again, and has them back when it is undone", async () => {
    const ids = await read(6, {
      retry: { maxAttempts: 1 },
      handler: ({ id, key }) => {
        seen.push(id);
        if (key === "1" || key === "4") throw new Error("no");
      },
    });
    const dead = async (): Promise<string[]> =>
      (
        await place.query(
          "SELECT CAST(message_id AS CHAR(20)) AS id FROM message_redelivery WHERE state = 1 ORDER BY message_id",
        )
      ).map(({ id }) => String(id).trim());
    expect(await dead()).toEqual([ids[1], ids[4]]);
    expect(await rewind({ id: ids[2] as string })).toMatchObject({ setAside: 1, restored: 0 });
    expect(await dead()).toEqual([ids[1]]);
    expect((await queue.message("orders", ids[4] as string))?.groups[0]).toMatchObject({ state: "unread" });
    // Nobody has read since: it is as before, but for the round.
    expect(await undo()).toMatchObject({ restored: 1, setAside: 0, rewind: 2 });
    expect(await dead()).toEqual([ids[1], ids[4]]);
    expect(await position()).toMatchObject({ next: behind(ids[5]), round: 2 });
    await expect(undo()).rejects.toMatchObject({ code: "REWIND_REFUSED" });
    // Replayed: the old dead letter is no more, and the new one is.
    await rewind("start");
    await consume({
      retry: { maxAttempts: 1 },
      handler: ({ id, key }) => {
        seen.push(id);
        if (key === "5") throw new Error("no");
      },
    });
    await until(() => seen.length === 6);
    await stop();
    expect(await dead()).toEqual([ids[5]]);
    // What was replayed stays replayed: only what the group has not come to again is left out.
    expect(await undo()).toMatchObject({ partitions: [] });
    expect(await dead()).toEqual([ids[5]]);
    await rewind("end");
    await queue.append(numbers(2));
    await rewind("end");
    expect(await undo()).toMatchObject({ partitions: [{ to: behind(ids[5]) }] });
    seen = [];
    await consume();
    await until(() => seen.length === 2);
  });

  it("refuses a dropped month, or begins behind it, as asked", async () => {
    const ids = await read(3);
    const store = database.queue.store();
    await store.topics.makeMonths("orders", [202602, 202603]);
    await store.close();
    const old = await writeOld(place, "orders", 202603, [{}, {}]);
    const at = place.address.kind === "postgres" ? "now()" : "'2026-06-01 10:00:00.000'";
    await place.query(
      `INSERT INTO message_dropped_month (topic_id, message_date, author, reason, gmt_create, gmt_modified) VALUES ('orders', 202602, 'ann', 'old', ${at}, ${at})`,
    );
    const time = { time: new Date("2026-02-10T00:00:00Z") };
    const before = await position();
    for (const dryRun of [true, false]) {
      await expect(rewind(time, { dryRun })).rejects.toMatchObject({ code: "MONTH_DROPPED", months: [202602] });
    }
    expect(await position()).toEqual(before);
    const plan = await rewind(time, { dryRun: true, droppedMonths: "skip" });
    expect(plan).toMatchObject({ messages: 5, consumed: 3, droppedMonths: [202602] });
    await rewind(time, { droppedMonths: "skip" });
    await consume();
    await until(() => seen.length === 5);
    expect(seen).toEqual([...old, ...ids]);
    expect(queueMonth(seen[0] as string)).toBe(202603);
  });

  it("refuses what cannot be, with nothing changed", async () => {
    const ids = await read(2);
    const before = await position();
    const ahead = String(BigInt(ids[1] as string) + 1_000_000n);
    await expect(rewind({ id: ahead })).rejects.toMatchObject({ code: "REWIND_REFUSED" });
    await expect(rewind({ id: "x" })).rejects.toMatchObject({ code: "INVALID_ID" });
    await expect(rewind({ group: "nobody" })).rejects.toMatchObject({ code: "UNKNOWN_GROUP" });
    await expect(rewind("start", { group: "nobody" })).rejects.toMatchObject({ code: "UNKNOWN_GROUP" });
    await expect(undo()).rejects.toMatchObject({ code: "REWIND_REFUSED" });
    const wrong = [
      { to: { back: 0 } },
      { to: "middle" },
      { author: "" },
      { reason: " " },
      { who: "me" },
      { to: { time: "x" } },
    ];
    for (const each of wrong) {
      await expect(rewind("start", each as Partial<RewindOptions>)).rejects.toMatchObject({ code: "CONFIGURATION" });
    }
    expect(await position()).toEqual(before);
  });
});
