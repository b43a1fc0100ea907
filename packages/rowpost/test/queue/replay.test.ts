/** A shadow group reads a range once, and no other group moves. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueIdMs } from "../../src/message/queue-id.ts";
import type { Queue, ReplayOptions } from "../../src/queue/index.ts";
import { until } from "../until.ts";
import { gate, type Members, numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

const TOPIC = "orders";
const BILLING = { topic: TOPIC, group: "billing" } as const;

describeOnEach("a replay of the queue", (make) => {
  let members: Members;
  let queue: Queue;
  let opened: OpenQueue;

  afterEach(() => opened.close());
  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 3 });
    ({ members, queue } = opened);
  });

  const progress = async () =>
    (await queue.groups({ topic: TOPIC })).map(({ group, partitions }) => [
      group,
      partitions.map((each) => each.nextId),
    ]);

  it("hands its range over once, with both ends, and leaves every other group where it is", async () => {
    const ids = await queue.append(numbers(30));
    let consumed = 0;
    await members.start({
      handler() {
        consumed += 1;
      },
    });
    await until(() => consumed === 30);
    await members.stopAll();
    const before = await progress();
    const inOrder = [...ids].sort((left, right) => (BigInt(left) < BigInt(right) ? -1 : 1));
    const range = inOrder.slice(5, 20);
    const seen: string[] = [];
    const report = await queue.replay({
      ...BILLING,
      logger: "silent",
      handler: ({ id }) => void seen.push(id),
      from: { id: range[0] as string },
      until: { id: range.at(-1) as string },
    });
    expect(report).toEqual({ group: "billing@replay", complete: true, handled: 15, dead: 0 });
    expect([...seen].sort()).toEqual([...range].sort());
    expect(await progress()).toEqual(before);
  });

  it("ends with what is there when it begins, although messages go on coming", async () => {
    const ids = await queue.append(numbers(4));
    const seen: string[] = [];
    const later: Promise<string[]>[] = [];
    const report = await queue.replay({
      ...BILLING,
      logger: "silent",
      from: { time: new Date(queueIdMs(ids[0] as string)) },
      handler({ id }) {
        seen.push(id);
        later.push(queue.append(numbers(5)));
      },
    });
    await Promise.all(later);
    expect([...seen].sort()).toEqual([...ids].sort());
    expect(report).toMatchObject({ complete: true, handled: 4 });
  });

  it("goes on where its signal stopped it, and refuses a shadow group that is there unless told so", async () => {
    const ids = await queue.append(numbers(6));
    const stop = new AbortController();
    const seen: string[] = [];
    const first = await queue.replay({
      ...BILLING,
      logger: "silent",
      from: "start",
      until: { id: ids.at(-1) as string },
      name: "check",
      concurrency: 1,
      batchSize: 1,
      leaseMs: 1_000,
      signal: stop.signal,
      async handler({ id }, { signal }) {
        if (seen.length === 2) {
          stop.abort();
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          throw new Error("cut off");
        }
        seen.push(id);
      },
      drainTimeoutMs: 100,
    });
    expect(first).toMatchObject({ complete: false, handled: 2 });
    const again: ReplayOptions = {
      ...BILLING,
      logger: "silent",
      from: "start",
      name: "check",
      handler: ({ id }) => void seen.push(id),
    };
    await expect(queue.replay(again)).rejects.toMatchObject({ code: "GROUP_EXISTS" });
    const second = await queue.replay({ ...again, resume: true });
    expect(second).toMatchObject({ group: "billing@check", complete: true, handled: 4, dead: 0 });
    expect([...seen].sort()).toEqual([...ids].sort());
    expect(await queue.groups({ topic: TOPIC })).toEqual([]);
  });

  it("waits for redeliveries, and keeps its group where there are dead letters", async () => {
    await queue.append(numbers(3));
    const tries = new Map<string, number>();
    const report = await queue.replay({
      ...BILLING,
      logger: "silent",
      from: "start",
      retry: { maxAttempts: 2, baseMs: 1 },
      handler({ key = "" }) {
        const attempt = (tries.get(key) ?? 0) + 1;
        tries.set(key, attempt);
        if (key === "0" || (key === "1" && attempt === 1)) throw new Error(`no ${key}`);
      },
    });
    expect(report).toEqual({ group: "billing@replay", complete: true, handled: 2, dead: 1 });
    expect([...tries].toSorted(([left], [right]) => left.localeCompare(right))).toEqual([
      ["0", 2],
      ["1", 2],
      ["2", 1],
    ]);
    const { letters } = await queue.deadLetters({ topic: TOPIC, group: "billing@replay" });
    expect(letters.map(({ error }) => error)).toEqual([expect.stringContaining("no 0")]);
  });

  it("is shared by processes, of which the last one deletes the group", async () => {
    await queue.append(numbers(40));
    const bothAreThere = gate();
    let handled = 0;
    const given: ReplayOptions = {
      ...BILLING,
      logger: "silent",
      from: "start",
      async handler() {
        handled += 1;
        await bothAreThere.opened;
      },
    };
    const one = queue.replay(given);
    await until(() => handled > 0);
    const two = queue.replay({ ...given, resume: true });
    const members = "SELECT owner FROM message_consumer WHERE consumer_group_id = 'billing@replay'";
    await until(async () => (await opened.place.query(members)).length === 2);
    bothAreThere.open();
    const reports = await Promise.all([one, two]);
    expect(reports.map(({ complete }) => complete)).toEqual([true, true]);
    expect(handled).toBe(40);
    expect(await queue.groups({ topic: TOPIC })).toEqual([]);
  });

  it("says what is wrong with its options before anything is begun", async () => {
    const handler = (): void => undefined;
    const wrong = (more: object): Promise<unknown> =>
      queue.replay({ ...BILLING, from: "start", handler, ...more } as never);
    await expect(wrong({ from: "end" })).rejects.toThrow(/from is "start"/);
    await expect(wrong({ until: 7 })).rejects.toThrow(/until is "end"/);
    await expect(wrong({ until: { id: "x" } })).rejects.toMatchObject({ code: "INVALID_ID" });
    await expect(wrong({ broadcast: { instance: "a" } })).rejects.toThrow(/broadcast/);
    await expect(wrong({ handler: undefined })).rejects.toThrow(/handler/);
    await expect(wrong({ topic: "nobody" })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    expect(await queue.groups({ topic: TOPIC })).toEqual([]);
  });
});
