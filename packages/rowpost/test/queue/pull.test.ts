/** Pullers: what they hand out, when a settle holds, and what comes again. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueMonth } from "../../src/message/queue-id.ts";
import type { PulledMessage, Puller, PullOptions, Queue } from "../../src/queue/index.ts";
import { createManualClock } from "../../src/testing/index.ts";
import { until } from "../until.ts";
import { gate, numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

const PROGRAM = fileURLToPath(new URL("./puller.process.mjs", import.meta.url));

describeOnEach("pulling from the queue", (make) => {
  let opened: OpenQueue;
  let place: QueuePlace;
  let queue: Queue;
  const pullers: Puller[] = [];
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    ({ place, queue } = opened);
  });
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
    await Promise.all(pullers.splice(0).map((puller) => puller.stop()));
    await opened.close();
  });

  async function pull(options: Partial<PullOptions> = {}): Promise<Puller> {
    const usual = { topic: "orders", group: "billing", logger: "silent", drainTimeoutMs: 0 } as const;
    const puller = await queue.pull({ ...usual, ...options });
    pullers.push(puller);
    return puller;
  }
  /** So many, however many calls that takes. */
  async function receive(puller: Puller, count: number): Promise<PulledMessage[]> {
    const got: PulledMessage[] = [];
    await until(async () => {
      if (got.length < count) got.push(...(await puller.receive({ max: count - got.length, waitMs: 1_000 })));
      return got.length === count;
    });
    return got;
  }
  async function receiveOne(puller: Puller): Promise<PulledMessage> {
    return (await receive(puller, 1))[0] as PulledMessage;
  }
  async function records(id: string): Promise<(readonly [key: string, attempt: number, result: number])[]> {
    const rows = await place.query(
      `SELECT message_key, attempt, result FROM orders_message_info_consumption_${queueMonth(id)} ORDER BY message_id, attempt`,
    );
    return rows.map((row) => [String(row["message_key"]), Number(row["attempt"]), Number(row["result"])] as const);
  }
  const keys = (messages: readonly PulledMessage[]): (string | undefined)[] => messages.map(({ key }) => key);

  it("gives each message once to one of two members, and records it", async () => {
    await queue.alterTopic({ topic: "orders", partitions: 4 });
    const ids: string[] = [];
    for (let call = 0; call < 8; call += 1) ids.push(...(await queue.append(numbers(25))));
    const seen: string[] = [];
    const members = [await pull(), await pull()];
    await Promise.all(
      members.map(async (member) => {
        while (seen.length < ids.length) {
          for (const message of await member.receive({ max: 7, waitMs: 50 })) {
            await message.settle();
            seen.push(message.id);
          }
        }
      }),
    );
    expect(seen.toSorted()).toEqual(ids.toSorted());
    expect(await records(ids[0] as string)).toHaveLength(ids.length);
    expect(await queue.verify({ topic: "orders" })).toMatchObject({ complete: true, problems: [] });
  });

  it("gives messages of one ordering key one after the other, and lets none of later ones past", async () => {
    const puller = await pull();
    await queue.append(
      ["a", "a", "b", "a"].map((orderingKey, index) => ({ topic: "orders", orderingKey, key: `${index}`, body: 0 })),
    );
    const seen: (string | undefined)[][] = [];
    await until(async () => {
      const got = await puller.receive();
      // All that were received are settled before the next is asked for: that must never hang.
      for (const message of got) await message.settle();
      seen.push(keys(got));
      return seen.flat().length === 4;
    });
    expect(seen).toEqual([["0"], ["1", "2"], ["3"]]);
  });

  it("holds the later ones of a key back with block, until the failed one is settled", async () => {
    const puller = await pull({ onFailed: "block", retry: { baseMs: 1, maxMs: 1 } });
    await queue.append(numbers(2, { orderingKey: "a" }));
    const first = await receiveOne(puller);
    await first.fail(new Error("not yet"));
    const again = await receiveOne(puller);
    expect([again.key, again.attempt]).toEqual(["0", 2]);
    expect(await puller.receive({ waitMs: 50 })).toEqual([]);
    await again.settle();
    expect((await receiveOne(puller)).key).toBe("1");
  });

  it("resolves a settle once its record and the progress are written, and those before it", async () => {
    const [written, reached] = [gate(), gate()];
    const puller = await pull({
      onFaultPoint: async (point) => {
        if (point !== "before settle") return;
        reached.open();
        await written.opened;
      },
    });
    const [id] = await queue.append(numbers(2));
    const [first, second] = await receive(puller, 2);
    const done: string[] = [];
    const later = second?.settle().then(() => done.push("second"));
    await new Promise(setImmediate);
    const earlier = first?.settle().then(() => done.push("first"));
    await reached.opened;
    expect(done).toEqual([]);
    expect(await records(id as string)).toEqual([]);
    written.open();
    await earlier;
    await later;
    expect(await records(id as string)).toEqual([
      ["0", 1, 0],
      ["1", 1, 0],
    ]);
    const [status] = await queue.groups({ topic: "orders", group: "billing" });
    expect(status?.lag.count).toBe(0);
  });

  it("makes a failed attempt of a message that is not settled in time, and of none that nobody asked for", async () => {
    const puller = await pull({ settleWithinMs: 50, retry: { maxAttempts: 1 } });
    const ids = await queue.append(numbers(2));
    const first = await receiveOne(puller);
    await until(async () => (await records(ids[0] as string)).length > 0);
    await expect(first.settle()).rejects.toMatchObject({ code: "SETTLE_TOO_LATE" });
    await expect(first.fail("no")).rejects.toMatchObject({ code: "SETTLE_TOO_LATE" });
    expect(() => first.extend(1_000)).toThrow(/not settled within 50 ms/);
    // The second one, which was read with it, is in no hurry before it is received.
    expect(await records(ids[0] as string)).toEqual([["0", 1, 2]]);
    expect((await receiveOne(puller)).attempt).toBe(1);
    const { letters } = await queue.deadLetters({ topic: "orders", group: "billing" });
    expect(letters[0]).toMatchObject({ id: ids[0], error: expect.stringMatching(/^SETTLE_TOO_LATE: /) as string });
  });

  it("gives a message the time that it is extended by", async () => {
    const clock = createManualClock();
    const ids = await queue.append(numbers(2));
    const puller = await pull({ clock, retry: { maxAttempts: 1 } });
    const [first, second] = await receiveWithoutTime(puller, 2);
    second?.extend(60_000);
    await clock.advance(30_000);
    await expect(first?.settle()).rejects.toMatchObject({ code: "SETTLE_TOO_LATE" });
    await second?.settle();
    expect(await records(ids[0] as string)).toEqual([
      ["0", 1, 2],
      ["1", 1, 0],
    ]);
  });

  it("fails as a handler does: again after a while, then a dead letter with the error", async () => {
    const puller = await pull({ retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 } });
    await queue.append(numbers(1));
    for (const attempt of [1, 2]) {
      const message = await receiveOne(puller);
      expect(message.attempt).toBe(attempt);
      await message.fail(new Error("no stock"));
    }
    const { letters } = await queue.deadLetters({ topic: "orders", group: "billing" });
    expect(letters).toMatchObject([{ error: "no stock", attempt: 2 }]);
  });

  it("is told once of each message", async () => {
    const puller = await pull();
    await queue.append(numbers(2));
    const [first, second] = await receive(puller, 2);
    await first?.settle();
    await expect(first?.settle()).rejects.toMatchObject({ code: "ALREADY_SETTLED" });
    await second?.fail("no");
    await expect(second?.settle()).rejects.toMatchObject({ code: "ALREADY_SETTLED" });
    await expect(second?.fail("no")).rejects.toThrow(/failed already/);
  });

  it("writes nothing of a message that was rewound under its feet, and gives it again", async () => {
    const puller = await pull();
    const ids = await queue.append(numbers(3));
    const [first, second] = await receive(puller, 3);
    await first?.settle();
    await queue.rewind({ topic: "orders", group: "billing", to: "start", author: "ann", reason: "test" });
    await expect(second?.settle()).rejects.toMatchObject({ code: "PARTITION_LOST" });
    expect(second?.signal.aborted).toBe(true);
    await expect(second?.settle()).rejects.toMatchObject({ code: "ALREADY_SETTLED" });
    expect(await records(ids[0] as string)).toEqual([["0", 1, 0]]);
    expect((await receive(puller, 3)).map(({ id, attempt }) => [id, attempt])).toEqual(ids.map((id) => [id, 1]));
  });

  it("writes nothing for a member that was frozen past its lease", async () => {
    const clock = createManualClock();
    const ids = await queue.append(numbers(2));
    // Its clock stands still, so that it renews nothing and knows of nothing.
    const frozen = await pull({ clock, leaseMs: 1_000 });
    const [old, other] = await receiveWithoutTime(frozen, 2);
    // Longer: a busy machine must not take it from this one as well.
    const taker = await pull({ leaseMs: 5_000 });
    const first = await receiveOne(taker);
    expect([first.id, first.attempt]).toEqual([ids[0], 1]);
    await expect(old?.settle()).rejects.toMatchObject({ code: "PARTITION_LOST", retriable: false });
    // The mark of the taker's attempt.
    expect(await records(ids[0] as string)).toEqual([["0", 1, 1]]);
    await expect(other?.fail("no")).rejects.toMatchObject({ code: "PARTITION_LOST" });
    await first.settle();
    const second = await receiveOne(taker);
    expect([second.id, second.attempt]).toEqual([ids[1], 1]);
    await second.settle();
    expect(await records(ids[0] as string)).toEqual([
      ["0", 1, 0],
      ["1", 1, 0],
    ]);
  });

  /** Where a manual clock ends no wait. */
  async function receiveWithoutTime(puller: Puller, count: number): Promise<PulledMessage[]> {
    const got: PulledMessage[] = [];
    while (got.length < count) got.push(...(await puller.receive({ max: count - got.length })));
    return got;
  }

  it("gives what is not settled to the next member when it is stopped, as the same attempt", async () => {
    const puller = await pull({ drainTimeoutMs: 100, leaseMs: 1_000 });
    const ids = await queue.append(numbers(4, { orderingKey: "a" }));
    const first = await receiveOne(puller);
    await first.settle();
    const second = await receiveOne(puller);
    const waiting = puller.receive();
    expect(await puller.stop()).toEqual({ drained: false });
    expect(await waiting).toEqual([]);
    expect(second.signal.aborted).toBe(true);
    await expect(second.settle()).rejects.toMatchObject({ code: "PULLER_STOPPED" });
    await expect(puller.receive()).rejects.toMatchObject({ code: "PULLER_STOPPED" });
    const next = await pull();
    const again = await receiveOne(next);
    expect([again.id, again.attempt]).toEqual([ids[1], 1]);
    expect(await records(ids[0] as string)).toEqual([["0", 1, 0]]);
  });

  it("resolves a settle that was written when the partition was given up meanwhile", async () => {
    const [written, told] = [gate(), gate()];
    const puller = await pull({
      onFaultPoint: async (point) => {
        if (point !== "after settle") return;
        written.open();
        await told.opened;
      },
    });
    const [id] = await queue.append(numbers(1));
    const message = await receiveOne(puller);
    const settling = message.settle();
    await written.opened;
    await puller.stop();
    expect(message.signal.aborted).toBe(true);
    told.open();
    await settling;
    expect(await records(id as string)).toEqual([["0", 1, 0]]);
  });

  it("waits with its stop for what is settled meanwhile, and for nothing that nobody received", async () => {
    const puller = await pull({ drainTimeoutMs: 60_000 });
    // The third one is delayed: it has an outcome, though what is before it was not received.
    const third = { topic: "orders", key: "2", body: 2, delayMs: 3_600_000 };
    const ids = await queue.append([...numbers(2, { orderingKey: "a" }), third]);
    const first = await receiveOne(puller);
    const stopped = puller.stop();
    await first.settle();
    expect(await stopped).toEqual({ drained: true });
    expect(await records(ids[0] as string)).toEqual([["0", 1, 0]]);
  });

  it("hands out no more than maxUnsettled", async () => {
    const puller = await pull({ maxUnsettled: 3 });
    await queue.append(numbers(5));
    const got = await receive(puller, 3);
    expect(await puller.receive({ waitMs: 50 })).toEqual([]);
    await got[0]?.settle();
    expect(keys(await puller.receive({ waitMs: 1_000 }))).toEqual(["3"]);
  });

  it("waits for the first message, as long as it is told, or until its signal", async () => {
    const puller = await pull();
    expect(await puller.receive({ waitMs: 0 })).toEqual([]);
    const stop = new AbortController();
    const aborted = puller.receive({ signal: stop.signal });
    const waiting = puller.receive();
    stop.abort();
    expect(await aborted).toEqual([]);
    expect(await puller.receive({ signal: stop.signal })).toEqual([]);
    await queue.append(numbers(3));
    // What was appended together is received together.
    expect(keys(await waiting)).toEqual(["0", "1", "2"]);
  });

  it("refuses what cannot be before it joins", async () => {
    const wrongs = [
      [{ transactional: true }, /transactional belongs to queue.consume/],
      [{ handler: () => undefined }, /handler belongs to queue.consume/],
      [{ maxUnsettled: 0 }, /maxUnsettled/],
      [{ settleWithinMs: 0.5 }, /settleWithinMs/],
      [{ settleWithin: 5 }, /did you mean "settleWithinMs"/],
    ] as const;
    for (const [wrong, message] of wrongs) {
      const pulling = queue.pull({ topic: "orders", group: "g", ...(wrong as object) });
      await expect(pulling).rejects.toMatchObject({
        code: "CONFIGURATION",
        message: expect.stringMatching(message) as string,
      });
    }
    await expect(queue.pull({ topic: "other", group: "g" })).rejects.toMatchObject({ code: "UNKNOWN_TOPIC" });
    expect(await place.query("SELECT partition_no FROM message_consumption")).toEqual([]);
    const puller = await pull();
    for (const wrong of [{ max: 0 }, { waitMs: -1 }, { waitms: 1 }, { signal: {} }]) {
      await expect(puller.receive(wrong as object)).rejects.toMatchObject({ code: "CONFIGURATION" });
    }
  });

  it("loses nothing when its process is killed, and repeats only what was not settled", {
    timeout: 60_000,
  }, async () => {
    const ids = await queue.append(numbers(60));
    const child = fork(PROGRAM, [JSON.stringify({ ...place.address, settled: 25 })], { execArgv: [] });
    children.push(child);
    const [settled] = (await once(child, "message")) as [string[]];
    child.kill("SIGKILL");
    await once(child, "exit");
    const puller = await pull();
    // The first ones come one by one: the process may have died of one of them.
    const rest: PulledMessage[] = [];
    while (rest.length < 35) {
      const message = await receiveOne(puller);
      await message.settle();
      rest.push(message);
    }
    expect(settled).toEqual(ids.slice(0, 25));
    expect(rest.map(({ id, attempt }) => [id, attempt])).toEqual(ids.slice(25).map((id) => [id, 1]));
    expect(await puller.receive({ waitMs: 50 })).toEqual([]);
    expect(await records(ids[0] as string)).toEqual(ids.map((_, index) => [String(index), 1, 0]));
  });
});
