/** Handlers that take many messages at once: one outcome for each message. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { ConfigurationError } from "../../src/index.ts";
import {
  type BatchHandler,
  type ConsumeBatchesOptions,
  type ConsumedMessage,
  type Consumer,
  type Queue,
  type QueueMessage,
  UnavailableError,
} from "../../src/queue/index.ts";
import { sleepWith, systemClock, type Timer } from "../../src/runtime/clock.ts";
import { until } from "../until.ts";
import { gate, isDone, numbers, recordsOf } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

const LONG_MS = 59_999;
const SHORT_RETRY = { maxAttempts: 3, baseMs: 1, maxMs: 1 };
const WAYS = [
  ["side by side", {}],
  ["transactional", { transactional: true }],
] as const;

/** A clock, and the waits of {@link LONG_MS} that have neither ended nor been cancelled. */
function watchedClock() {
  const waits = new Set<unknown>();
  const setTimer = (run: () => void, ms: number): Timer => {
    const timer = systemClock.setTimer(run, ms);
    if (ms === LONG_MS) waits.add(timer);
    return {
      cancel() {
        waits.delete(timer);
        timer.cancel();
      },
    };
  };
  return { waits, clock: { ...systemClock, setTimer, sleep: sleepWith.bind(undefined, setTimer) } };
}

describeOnEach("a handler of batches", (make) => {
  let opened: OpenQueue;
  let queue: Queue;
  let running: Consumer[];

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    ({ queue } = opened);
    running = [];
    await opened.place.query("CREATE TABLE effects (message_key VARCHAR(20) NOT NULL)");
  });
  afterEach(async () => {
    await stopAll();
    await opened.close();
  });

  async function start(options: Partial<ConsumeBatchesOptions> & { readonly handler: BatchHandler }): Promise<void> {
    const names = { topic: "orders", group: "billing", logger: "silent", retry: SHORT_RETRY } as const;
    running.push(await queue.consumeBatches({ ...names, ...options }));
  }

  async function stopAll(): Promise<void> {
    for (const member of running.splice(0)) expect(await member.stop()).toEqual({ drained: true });
  }

  const done = (): Promise<boolean> => isDone(queue);

  /** `number attempt result error` of each record. */
  const records = (ids: readonly string[]): Promise<string[]> =>
    recordsOf(queue, ids, ({ attempt, result, error }) => `${attempt} ${result} ${error ?? "-"}`);

  const keysOf = (messages: readonly ConsumedMessage[]): string => messages.map(({ key }) => key).join(" ");

  async function effects(): Promise<string[]> {
    const rows = await opened.place.query("SELECT message_key FROM effects ORDER BY message_key");
    return rows.map((row) => String(row["message_key"]));
  }

  it.each(WAYS)("%s: gets every message once, so many at a time as there are", async (_how, how) => {
    const got: string[][] = [];
    const ids = await queue.append(numbers(250));
    await start({
      ...how,
      size: 40,
      concurrency: 1,
      handler: (messages) => void got.push(messages.map(({ id }) => id)),
    });
    await until(done);
    await stopAll();
    expect(got.flat()).toEqual(ids);
    // The first read of a member is a small one.
    expect(Math.max(...got.map(({ length }) => length))).toBe(40);
    expect(got.length).toBeLessThan(12);
    expect((await records(ids)).every((each) => each.endsWith(" 1 consumed -"))).toBe(true);
    expect((await queue.verify({ topic: "orders", group: "billing" })).problems).toEqual([]);
  });

  it("is given messages in the order of their ids, also one whose key was busy", async () => {
    const first = gate();
    const got: string[] = [];
    const { clock, waits } = watchedClock();
    const named = (keys: string): QueueMessage[] =>
      keys.split(" ").map((key) => ({ topic: "orders", key, body: 0, orderingKey: key[0] as string }));
    await queue.append(named("a1 x y"));
    await start({
      clock,
      size: 3,
      waitMs: LONG_MS,
      async handler(messages) {
        got.push(keysOf(messages));
        if (got.length === 1) await first.opened;
      },
    });
    await until(() => got.length === 1);
    await queue.append(named("a2 b c"));
    // The others have come to the next batch.
    await until(() => waits.size === 1);
    first.open();
    await until(done);
    expect(got).toEqual(["a1 x y", "a2 b c"]);
  });

  it("transactional: what waits for its batch is not put off by redeliveries", async () => {
    const good: string[] = [];
    await queue.append(numbers(3));
    await start({
      transactional: true,
      size: 100,
      waitMs: 200,
      retry: { maxAttempts: 1_000, baseMs: 100, maxMs: 100 },
      handler(messages) {
        if (good.length > 0) return;
        if (messages.some(({ key }) => key !== "good")) throw new Error("not yet");
        good.push(keysOf(messages));
      },
    });
    await until(async () => (await queue.groups({ topic: "orders" }))[0]?.waiting.count === 3);
    await queue.append({ topic: "orders", key: "good", body: 0 });
    await until(() => good.length === 1);
    await until(done);
  });

  it("transactional: a redelivery does not wait for the batch behind it", async () => {
    const got: string[] = [];
    const { clock, waits } = watchedClock();
    const [id = ""] = await queue.append(numbers(2));
    await start({
      clock,
      transactional: true,
      size: 2,
      waitMs: LONG_MS,
      retry: { baseMs: 1_000_000_000, maxMs: 1_000_000_000 },
      handler(messages) {
        got.push(messages.map(({ key, attempt }) => `${key}/${attempt}`).join(" "));
        // Together, and then the first one alone.
        if (got.length < 3) throw new Error("not yet");
      },
    });
    await until(() => got.length === 3);
    await queue.append({ topic: "orders", key: "2", body: 0 });
    await until(() => waits.size === 1);
    const by = { topic: "orders", group: "billing", author: "ann", reason: "test" };
    await queue.redeliver({ ...by, state: "waiting", ids: [id] });
    await until(() => got.length === 4);
    expect(got).toEqual(["0/1 1/1", "0/1", "1/1", "0/2"]);
  });

  it.each(WAYS)("%s: after a member fell silent nothing waits for a batch", async (_how, how) => {
    const got: string[] = [];
    const { clock, waits } = watchedClock();
    await queue.append(numbers(3));
    await start({ ...how, handler: () => undefined });
    await until(done);
    await stopAll();
    // A member that is gone has the partition, and was last heard of long ago.
    await opened.place.query(
      "UPDATE message_consumption SET owner = 'gone', lease_ms = 1, next_message_id = 0, begin_message_id = 0, round = 1",
    );
    await opened.place.query("UPDATE message_group SET round = 1");
    const now = new Date().toISOString().replace("T", " ").slice(0, 23);
    await opened.place.query(
      `INSERT INTO message_consumer (topic_id, consumer_group_id, owner, label, seen_at) VALUES ('orders', 'billing', 'gone', 'gone', '${now}')`,
    );
    await start({
      ...how,
      clock,
      leaseMs: 2_000,
      size: 3,
      waitMs: LONG_MS,
      handler: (messages) => void got.push(keysOf(messages)),
    });
    await until(() => got.length === 3);
    expect([got, waits.size]).toEqual([["0", "1", "2"], 0]);
    await until(done);
  });

  it.each(WAYS)("%s: those that it names have failed, and come again; the others are consumed", async (_how, how) => {
    const ids = await queue.append(numbers(5));
    await start({
      ...how,
      handler(messages) {
        const bad = messages.filter(({ key, attempt }) => key === "4" || (key === "2" && attempt < 2));
        return { failed: bad.map(({ id, key }) => ({ id, error: new Error(`no stock for ${key}`) })) };
      },
    });
    await until(async () => (await records(ids)).length === 8 && (await done()));
    expect(await records(ids)).toEqual([
      ...["0 1 consumed -", "1 1 consumed -", "2 1 failed no stock for 2", "2 2 consumed -", "3 1 consumed -"],
      ...["4 1 failed no stock for 4", "4 2 failed no stock for 4", "4 3 dead no stock for 4"],
    ]);
  });

  it("a throw is a failed attempt of each, and so is an answer that says nothing clear", async () => {
    const answers: unknown[] = [
      new Error("all of it"),
      { batchItemFailures: [] },
      { failed: [{ id: "1", error: "not of this batch" }] },
    ];
    const ids = await queue.append(numbers(2));
    await start({
      retry: { maxAttempts: 3, baseMs: 0, maxMs: 0 },
      waitMs: 100,
      handler(messages) {
        const answer = answers[(messages[0] as ConsumedMessage).attempt - 1];
        if (answer instanceof Error) throw answer;
        return answer;
      },
    });
    await until(async () => (await records(ids)).length === 6);
    const said = await records(ids);
    for (const [index, each] of said.entries()) {
      const reason = ["all of it", "returns nothing when all of it is consumed", "names 1 as failed"][index % 3];
      expect(each).toContain(reason);
    }
  });

  it("transactional: the effect of each message is there once, beside one that always fails", async () => {
    const calls: string[] = [];
    const ids = await queue.append(numbers(6));
    await start({
      transactional: true,
      async handler(messages, { tx }) {
        calls.push(keysOf(messages));
        for (const { key } of messages) {
          await tx.query(`INSERT INTO effects (message_key) VALUES ('${key}')`);
          if (key === "3") throw new Error("half of it is written");
        }
      },
    });
    await until(async () => (await records(ids)).length === 8 && (await done()));
    expect(await effects()).toEqual(["0", "1", "2", "4", "5"]);
    // The batch has failed as a whole: each of it goes alone, and that is its first attempt.
    expect(calls.slice(0, 4)).toEqual(["0 1 2 3 4 5", "0", "1", "2"]);
    expect((await records(ids)).filter((each) => each.startsWith("3"))).toEqual([
      ...["3 1 failed half of it is written", "3 2 failed half of it is written", "3 3 dead half of it is written"],
    ]);
  });

  it("transactional: what it writes for those that it does not name is not lost, and not there twice", async () => {
    const ids = await queue.append(numbers(3));
    await start({
      transactional: true,
      async handler(messages, { tx }) {
        for (const { key } of messages) await tx.query(`INSERT INTO effects (message_key) VALUES ('${key}')`);
        return { failed: messages.filter(({ key }) => key === "1").map(({ id }) => ({ id, error: "no stock" })) };
      },
    });
    await until(async () => (await records(ids)).length === 5 && (await done()));
    expect(await effects()).toEqual(["0", "2"]);
  });

  it.each([
    ["side by side", {}],
    ["transactional", { transactional: true }],
  ] as const)("%s: a message that fails holds up those of its key with block", async (_how, how) => {
    const keys = ["a", "b", "a", "c", "a", "b"];
    const seen: string[] = [];
    const calls: string[][] = [];
    await queue.append(numbers(6).map((message, index) => ({ ...message, orderingKey: keys[index] as string })));
    await start({
      ...how,
      onFailed: "block",
      retry: { maxAttempts: 9, baseMs: 1, maxMs: 1 },
      handler(messages) {
        const failed = messages.filter(({ key, attempt }) => key === "0" && attempt < 4);
        const went = messages.filter((message) => !failed.includes(message));
        calls.push(messages.map(({ orderingKey = "" }) => orderingKey));
        if (!("transactional" in how) || failed.length === 0) seen.push(...went.map(({ key = "" }) => key));
        return { failed: failed.map(({ id }) => ({ id, error: "not yet" })) };
      },
    });
    await until(async () => seen.length === 6 && (await done()));
    const orderOf = (key: string): string[] => seen.filter((each) => keys[Number(each)] === key);
    expect([orderOf("a"), orderOf("b"), orderOf("c")]).toEqual([["0", "2", "4"], ["1", "5"], ["3"]]);
    // Side by side the outcome of a message has to be known before the next one of its key goes.
    if (!("transactional" in how)) for (const call of calls) expect(new Set(call).size).toBe(call.length);
  });

  it.each(WAYS)("%s: what it calls is away, and no attempt is counted", { timeout: 30_000 }, async (_how, how) => {
    let calls = 0;
    const ids = await queue.append(numbers(3));
    await start({
      ...how,
      handler({ length }) {
        calls += 1;
        // Of a transaction each goes alone, where it waits for its own turn.
        if (calls < 3 || ("transactional" in how && length > 1)) throw new UnavailableError("the bank is away");
      },
    });
    await until(done);
    expect(calls).toBeGreaterThanOrEqual(3);
    expect(await records(ids)).toEqual(["0 1 consumed -", "1 1 consumed -", "2 1 consumed -"]);
  });

  it.each(WAYS)("%s: what has expired, or is of another type, is in no batch", async (_how, how) => {
    const got: string[] = [];
    const gone = new Date(Date.now() - 1_000);
    const messages = numbers(4, { type: "paid" }).map((message, index) => ({
      ...message,
      ...(index === 1 ? { expiresAt: gone } : {}),
      ...(index === 2 ? { type: "shipped" } : {}),
    }));
    const ids = await queue.append(messages);
    await start({ ...how, types: ["paid"], handler: (batch) => void got.push(keysOf(batch)) });
    await until(done);
    expect(got).toEqual(["0 3"]);
    expect((await records(ids)).map((each) => each.slice(0, 13))).toEqual([
      ...["0 1 consumed ", "1 1 skipped e", "2 1 skipped n", "3 1 consumed "],
    ]);
  });

  it.each(WAYS)("%s: a batch that takes too long has failed, and how it ends counts for nothing", async (_how, how) => {
    const hung = gate();
    const said: string[] = [];
    const signals: AbortSignal[] = [];
    const warn = (line: string): void => void said.push(line);
    const ids = await queue.append(numbers(2));
    await start({
      ...how,
      handlerTimeoutMs: 300,
      logger: { debug: () => undefined, info: () => undefined, warn, error: warn },
      async handler(messages, { signal }) {
        if (messages.length === 1) return;
        signals.push(signal);
        if (signals.length === 1) await hung.opened;
      },
    });
    await until(async () => signals[0]?.aborted === true && (await done()));
    hung.open();
    await until(() => said.some((line) => line.startsWith("a handler ended after its time was over")));
    const found = (await records(ids)).map((each) => each.slice(0, 30));
    // In a transaction nobody knows which of them took so long: each goes alone, uncounted.
    if ("transactional" in how) expect(found).toEqual(["0 1 consumed -", "1 1 consumed -"]);
    else
      expect(found.map((each) => each.slice(0, 12))).toEqual([
        "0 1 failed H",
        "0 2 consumed",
        "1 1 failed H",
        "1 2 consumed",
      ]);
  });

  it.each(WAYS)("%s: waits for a batch to fill, not longer than it may, and not at a stop", async (_how, how) => {
    const got: string[] = [];
    const { clock, waits } = watchedClock();
    await start({ ...how, clock, size: 3, waitMs: LONG_MS, handler: (messages) => void got.push(keysOf(messages)) });
    const [first, ...more] = numbers(4) as [QueueMessage, ...QueueMessage[]];
    await queue.append([first]);
    await until(() => waits.size === 1);
    for (const message of more) await queue.append([message]);
    await until(() => got.length === 1);
    expect(got).toEqual(["0 1 2"]);
    await until(() => waits.size === 1);
    await stopAll();
    // A timer would keep the process alive.
    expect(waits.size).toBe(0);
    const handled = got.splice(0).join(" ").split(" ");
    await start({ ...how, size: 3, waitMs: 50, handler: (messages) => void got.push(keysOf(messages)) });
    await queue.append([{ topic: "orders", key: "4", body: 0 }]);
    await until(done);
    expect([...handled, ...got.join(" ").split(" ")]).toEqual(["0", "1", "2", "3", "4"]);
  });

  it("has at most as many batches under way as it is told, and gives up its place when one ends", async () => {
    const held = gate();
    let [now, most, total] = [0, 0, 0];
    await queue.append(numbers(100));
    await start({
      size: 10,
      concurrency: 2,
      async handler({ length }) {
        now += 1;
        most = Math.max(most, now);
        total += length;
        await held.opened;
        now -= 1;
      },
    });
    await until(() => now === 2);
    held.open();
    await until(done);
    expect([most, total]).toEqual([2, 100]);
  });

  it("refuses options that make no sense", async () => {
    const handler = (): undefined => undefined;
    for (const wrong of [{ size: 0 }, { waitMs: -1 }, { waitMs: 60_001 }, { handler: 5 as never }, { sizes: 5 }])
      await expect(start({ handler, ...wrong })).rejects.toThrow(ConfigurationError);
  });
});
