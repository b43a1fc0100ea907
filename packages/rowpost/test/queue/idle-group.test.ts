/** A group that nobody has run for months. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { monthAfter, monthOf } from "../../src/message/queue-id.ts";
import { until } from "../until.ts";
import { numbers } from "./members.ts";
import { writeOld } from "./months.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

const WHO = { author: "ann", reason: "no room" };

describeOnEach("a group that was idle for months", (make) => {
  let opened: OpenQueue;
  let months: readonly [number, number, number];

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    const { members, database } = opened;
    const first = monthOf(Date.now() - 90 * 86_400_000);
    months = [first, monthAfter(first), monthAfter(monthAfter(first))];
    const store = database.queue.store();
    await store.topics.makeMonths("orders", months);
    await store.close();
    // It has joined before any of the messages, and is gone.
    await members.start({ handler: () => undefined });
    await members.stopAll();
  });
  afterEach(() => opened.close());

  /** Messages of each month, and three of now. */
  async function missed(): Promise<string[][]> {
    const { place, queue } = opened;
    const all: string[][] = [];
    for (const month of months) all.push(await writeOld(place, "orders", month, [{}, {}, {}, {}]));
    all.push(await queue.append(numbers(3)));
    return all;
  }

  it("gets all that it has missed, in order, and is at the end then", async () => {
    const { members, queue } = opened;
    const ids = (await missed()).flat();
    const seen: string[] = [];
    await members.start({ handler: ({ id }) => void seen.push(id), concurrency: 1 });
    await until(() => seen.length >= ids.length);
    await until(async () => (await queue.groups({ topic: "orders", group: "billing" }))[0]?.lag.count === 0);
    await members.stopAll();
    expect(seen).toEqual(ids);
  });

  it("keeps its months from being dropped; of one that was dropped anyway it misses that month alone, and it is told", async () => {
    const { members, queue } = opened;
    const ids = await missed();
    const [first] = months;
    const drop = { topic: "orders", month: first, ...WHO };
    await expect(queue.dropMonth(drop)).rejects.toThrow(/billing/);
    await queue.dropMonth({ ...drop, force: true });
    const seen: string[] = [];
    await members.start({ handler: ({ id }) => void seen.push(id), concurrency: 1 });
    const left = ids.slice(1).flat();
    await until(() => seen.length >= left.length);
    await members.stopAll();
    expect(seen).toEqual(left);
    const { droppedMonths } = await queue.search({ topic: "orders", from: new Date(0), to: new Date() });
    expect(droppedMonths).toMatchObject([{ month: first, messages: 4, ...WHO }]);
  });
});
