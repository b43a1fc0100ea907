/** Instances that are groups of their own; groups that are deleted when nobody reads with them. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueMonth } from "../../src/message/queue-id.ts";
import type { Queue, QueueConsumeOptions } from "../../src/queue/index.ts";
import { createManualClock } from "../../src/testing/index.ts";
import { until } from "../until.ts";
import { gate, type Members, numbers } from "./members.ts";
import { writeOld } from "./months.ts";
import { describeOnEach, type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

const TOPIC = "orders";
const GROUP = { topic: TOPIC, group: "billing" } as const;
const handler = (): void => undefined;

describeOnEach("broadcasts and deleted groups of the queue", (make) => {
  let members: Members;
  let queue: Queue;
  let place: QueuePlace;
  let opened: OpenQueue;

  afterEach(() => opened.close());
  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    ({ members, queue, place } = opened);
  });

  const rowsOf = async (table: string, group = "billing"): Promise<number> => {
    const rows = await place.query(`SELECT topic_id FROM ${table} WHERE consumer_group_id = '${group}'`);
    return rows.length;
  };
  /** `key round attempt result`, in order. */
  const recordsOf = async (id: string) => {
    const rows = await place.query(
      `SELECT message_key, round, attempt, result FROM orders_message_info_consumption_${queueMonth(id)} ORDER BY round, message_id`,
    );
    return rows.map((row) => [row["message_key"], row["round"], row["attempt"], row["result"]].map(String).join(" "));
  };

  it("gives every instance every message, from when it is there, and lets it go on where it was", async () => {
    await queue.append(numbers(1));
    const seen: Record<string, string[]> = { a: [], b: [] };
    const start = (instance: string) =>
      members.start({ broadcast: { instance }, handler: ({ id }) => void seen[instance]?.push(id) });
    await start("a");
    await start("b");
    const ids = await queue.append(numbers(3));
    await until(() => seen["a"]?.length === 3 && seen["b"]?.length === 3);
    expect(await members.stopAll()).toEqual([{ drained: true }, { drained: true }]);
    ids.push(...(await queue.append(numbers(2))));
    await start("b");
    await until(() => seen["b"]?.length === 5);
    await members.stopAll();
    expect(seen).toEqual({ a: ids.slice(0, 3), b: ids });
    const groups = await queue.groups({ topic: TOPIC });
    expect(groups.map(({ group, lag }) => [group, lag.count])).toEqual([
      ["billing@a", 2],
      ["billing@b", 0],
    ]);
  });

  it("does the same for one that pulls, and begins where it is told", async () => {
    const ids = await queue.append(numbers(2));
    const puller = await queue.pull({ ...GROUP, broadcast: { instance: "c" }, from: "start", logger: "silent" });
    const got = await puller.receive();
    for (const message of got) await message.settle();
    await puller.stop();
    expect(got.map(({ id }) => id)).toEqual(ids);
    expect(await queue.groups({ topic: TOPIC, group: "billing@c" })).toMatchObject([{ lag: { count: 0 } }]);
  });

  it("refuses names that cannot be", async () => {
    const long = "x".repeat(64);
    for (const wrong of [
      { broadcast: { instance: "" } },
      { broadcast: { instance: "a@b" } },
      { broadcast: { instance: long } },
      { broadcast: {} },
      { group: "a@b@c" },
      { group: "@b" },
      { group: "a@b", broadcast: { instance: "c" } },
    ]) {
      const options = { ...GROUP, handler, ...wrong } as QueueConsumeOptions;
      await expect(queue.consume(options)).rejects.toMatchObject({ code: "INVALID_NAME" });
    }
    for (const broadcast of [true, { name: "a" }, null]) {
      const options = { ...GROUP, handler, broadcast } as unknown as QueueConsumeOptions;
      await expect(queue.consume(options)).rejects.toMatchObject({ code: "CONFIGURATION" });
    }
    expect(await place.query("SELECT partition_no FROM message_consumption")).toEqual([]);
  });

  it("deletes all of a group but its records, not while a member lives, and no other group", async () => {
    const fail = { retry: { maxAttempts: 1 }, handler: () => Promise.reject(new Error("no")) };
    await members.start({ ...fail, label: "the last one" });
    await members.start({ ...fail, group: "billing@a" });
    const [id] = await queue.append(numbers(2));
    await until(async () => (await place.query("SELECT state FROM message_redelivery")).length === 4);
    for (const group of ["billing", "billing@a"]) {
      await queue.rewind({ topic: TOPIC, group, to: "start", author: "ann", reason: "test" });
    }
    // Both groups had both messages again.
    await until(async () => (await recordsOf(id as string)).length === 8);
    await expect(queue.deleteGroup(GROUP)).rejects.toMatchObject({
      code: "GROUP_IN_USE",
      retriable: true,
      message: expect.stringContaining("the last one") as string,
    });
    await members.stopAll();
    await queue.pause({ ...GROUP, author: "ann", reason: "test" });
    expect(await queue.deleteGroup(GROUP)).toBe(true);
    expect(await queue.deleteGroup(GROUP)).toBe(false);
    for (const table of ["message_consumption", "message_redelivery", "message_rewind", "message_consumer"]) {
      expect([table, await rowsOf(table)]).toEqual([table, 0]);
      if (table !== "message_consumer") expect(await rowsOf(table, "billing@a")).toBeGreaterThan(0);
    }
    expect(await recordsOf(id as string)).toHaveLength(8);
    expect((await queue.groups({ topic: TOPIC })).map(({ group }) => group)).toEqual(["billing@a"]);
    await expect(queue.groups(GROUP)).rejects.toMatchObject({ code: "UNKNOWN_GROUP" });
    await expect(queue.deleteGroup({ topic: "other", group: "g" })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    await expect(queue.deleteGroup({ topic: TOPIC, group: "a'b" })).rejects.toMatchObject({ code: "INVALID_NAME" });
  });

  it("begins a group of the same name anew, unpaused, with records of its own", async () => {
    const [id] = await queue.append(numbers(1));
    const seen: string[] = [];
    const start = () => members.start({ handler: (message) => void seen.push(message.id) });
    await start();
    await until(() => seen.length === 1);
    await members.stopAll();
    await queue.pause({ ...GROUP, author: "ann", reason: "test" });
    await queue.deleteGroup(GROUP);
    await start();
    await until(() => seen.length === 2);
    await members.stopAll();
    expect(seen).toEqual([id, id]);
    expect(await recordsOf(id as string)).toEqual(["0 0 1 0", "0 1 1 0"]);
    expect(await queue.verify(GROUP)).toMatchObject({ complete: true, problems: [] });
  });

  it("lets a month go that only a deleted instance had not read", async () => {
    const store = opened.database.queue.store();
    await store.topics.makeMonths(TOPIC, [202601]);
    await store.close();
    await members.start({
      broadcast: { instance: "web-7" },
      from: "start",
      handler: () => new Promise(() => undefined),
      drainTimeoutMs: 0,
    });
    await members.stopAll();
    await writeOld(place, TOPIC, 202601, [{ key: "old" }]);
    const dropping = { topic: TOPIC, month: 202601, author: "ann", reason: "test" };
    await expect(queue.dropMonth(dropping)).rejects.toMatchObject({
      reason: "NEEDED",
      message: expect.stringMatching(/group billing@web-7 .*queue\.deleteGroup/) as string,
    });
    await queue.deleteGroup({ topic: TOPIC, group: "billing@web-7" });
    expect(await queue.dropMonth(dropping)).toMatchObject({ messages: 1 });
  });

  it("writes nothing for a member that was silent when its group was deleted", async () => {
    const clock = createManualClock();
    const [started, held] = [gate(), gate()];
    const [id] = await queue.append(numbers(1));
    // Its clock stands still, so that it says nothing any more.
    await members.start({
      clock,
      handler: async () => {
        started.open();
        await held.opened;
      },
    });
    await started.opened;
    await place.query("UPDATE message_consumer SET seen_at = '2020-01-01 00:00:00.000'");
    expect(await queue.deleteGroup(GROUP)).toBe(true);
    held.open();
    let isStopped = false;
    const stopped = members.stopAll().then(() => {
      isStopped = true;
    });
    // Its stop looks every 50 ms of its own clock.
    await until(async () => {
      await clock.advance(50);
      return isStopped;
    });
    await stopped;
    expect(await recordsOf(id as string)).toEqual([]);
    expect(await rowsOf("message_consumption")).toBe(0);
  });
});
