import { expect, test } from "vitest";
import { createManualClock } from "../../testing/index.ts";
import { createGather, type Round } from "./gather.ts";

/** Transactions that the test ends. */
function transactions() {
  const begun: { readonly calls: readonly string[]; readonly round: Round; end(error?: Error): void }[] = [];
  const commit = (calls: readonly string[], round: Round): Promise<void> =>
    new Promise((resolve, reject) => {
      for (const call of calls) for (const partition of partitionsOf(call)) round.holds.add(partition);
      begun.push({ calls, round, end: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  return { begun, commit, calls: () => begun.map(({ calls }) => calls) };
}

/** The digits of its name. */
const partitionsOf = (call: string): number[] => (call.match(/\d/g) ?? []).map(Number);

const usual = {
  clock: createManualClock(),
  leftNothing: () => true,
  sizeOf: () => 1,
  most: 10,
  besideServer: false,
  partitionsOf,
  withinMs: 30_000,
};

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("the first goes at once; what comes meanwhile goes together behind it, in its order", async () => {
  const { begun, commit, calls } = transactions();
  const gather = createGather({ ...usual, commit, leftNothing: () => true });
  const all = ["a", "b", "c"].map((call) => gather.run(call));
  expect(calls()).toEqual([["a"]]);
  begun[0]?.end();
  await settled();
  expect(calls()).toEqual([["a"], ["b", "c"]]);
  begun[1]?.end();
  await Promise.all(all);
  const later = gather.run("d");
  expect(calls().at(-1)).toEqual(["d"]);
  begun[2]?.end();
  await later;
});

test("a transaction takes no more than `most`, but for one call that is larger", async () => {
  const { begun, commit, calls } = transactions();
  const gather = createGather({ ...usual, commit, sizeOf: (call: string) => call.length, most: 4 });
  const all = ["a", "bb", "cc", "d", "eeeee", "f"].map((call) => gather.run(call));
  for (let index = 0; index < 5; index += 1) {
    begun[index]?.end();
    await settled();
  }
  await Promise.all(all);
  expect(calls()).toEqual([["a"], ["bb", "cc"], ["d"], ["eeeee"], ["f"]]);
});

test("of a transaction that failed each is tried alone, and hears of its own fault only", async () => {
  const { begun, commit, calls } = transactions();
  const gather = createGather({ ...usual, commit, leftNothing: () => true });
  const first = gather.run("first");
  const good = gather.run("good");
  const bad = gather.run("bad");
  begun[0]?.end();
  await settled();
  begun[1]?.end(new Error("together"));
  await settled();
  begun[2]?.end();
  await settled();
  begun[3]?.end(new Error("alone"));
  await Promise.all([first, good]);
  await expect(bad).rejects.toThrow("alone");
  expect(calls()).toEqual([["first"], ["good", "bad"], ["good"], ["bad"]]);
});

test("where nobody knows whether it was committed, nothing is tried again, and all hear of it", async () => {
  const { begun, commit, calls } = transactions();
  const gather = createGather({ ...usual, commit, leftNothing: () => false });
  const first = gather.run("first");
  const others = Promise.allSettled([gather.run("b"), gather.run("c")]);
  begun[0]?.end();
  await first;
  await settled();
  begun[1]?.end(new Error("no answer"));
  expect((await others).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(calls()).toEqual([["first"], ["b", "c"]]);
});

test("beside a server a call hears of its commit when the next one has sent its rows, or has ended", async () => {
  const { begun, commit } = transactions();
  const gather = createGather({ ...usual, commit, leftNothing: () => false, besideServer: true });
  const heard: string[] = [];
  const run = (call: string): Promise<void> => gather.run(call).finally(() => void heard.push(call));
  const all = [run("a"), run("b")];
  begun[0]?.end();
  await settled();
  expect(begun).toHaveLength(2);
  expect(heard).toEqual([]);
  begun[1]?.round.onSent();
  await settled();
  expect(heard).toEqual(["a"]);
  all.push(run("c"));
  begun[1]?.end();
  await settled();
  expect(heard).toEqual(["a"]);
  begun[2]?.end(new Error("no answer"));
  const ends = await Promise.allSettled(all);
  expect(heard.toSorted()).toEqual(["a", "b", "c"]);
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
});

test("and soon, where something holds up the next one", async () => {
  const { begun, commit } = transactions();
  const clock = createManualClock();
  const gather = createGather({ ...usual, clock, commit, besideServer: true });
  const [first, second] = [gather.run("a"), gather.run("b")];
  begun[0]?.end();
  await settled();
  await clock.advance(2);
  await first;
  begun[1]?.end();
  await second;
});

test("a slow round keeps only its own partitions waiting, and what stands behind a call that waits", async () => {
  const { begun, commit, calls } = transactions();
  const clock = createManualClock();
  const gather = createGather({ ...usual, clock, commit });
  const all = ["a1", "b1,2", "c2", "d3", "e"].map((call) => gather.run(call));
  await clock.advance(1_000);
  expect(calls()).toEqual([["a1"], ["d3", "e"]]);
  expect([...(begun[1]?.round.avoid ?? [])]).toEqual([1]);
  begun[1]?.end();
  await Promise.all(all.slice(3));
  await settled();
  // While it waits for the slow one.
  all.push(gather.run("f3"));
  await settled();
  expect(calls().at(-1)).toEqual(["f3"]);
  begun[2]?.end();
  begun[0]?.end();
  await all[0];
  await settled();
  expect(calls().at(-1)).toEqual(["b1,2", "c2"]);
  begun[3]?.end();
  await Promise.all(all);
});

test("a call is rejected when its time is over, in a slow round and behind one, and others go on", async () => {
  const { begun, commit, calls } = transactions();
  const clock = createManualClock();
  const gather = createGather({ ...usual, clock, commit });
  const slow = gather.run("a1");
  await clock.advance(2_000);
  const behind = gather.run("b1");
  void Promise.allSettled([slow, behind]);
  for (let second = 2; second < 33; second += 1) await clock.advance(1_000);
  await expect(slow).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  const notBegun = { code: "DATABASE_CONFLICT", message: expect.stringContaining("nothing was written") };
  await expect(behind).rejects.toMatchObject(notBegun);
  expect(begun[0]?.round.isOver).toBe(true);
  const other = gather.run("c2");
  const next = gather.run("d1");
  await settled();
  // Its transaction may still hold the partition's counter.
  expect(calls()).toEqual([["a1"], ["c2"]]);
  begun[1]?.end();
  begun[0]?.end(new Error("it was given up"));
  await other;
  await settled();
  expect(calls().at(-1)).toEqual(["d1"]);
  begun[2]?.end();
  await next;
});

test("what a slow round was to write waits behind it, also before it has locked anything", async () => {
  const { begun, calls, commit } = transactions();
  const clock = createManualClock();
  const gather = createGather({
    ...usual,
    clock,
    async commit(list, round) {
      await commit(list, { ...round, holds: new Set() });
    },
  });
  const all = ["a1"].map((call) => gather.run(call));
  await clock.advance(1_500);
  all.push(gather.run("b1"));
  await settled();
  expect(calls()).toEqual([["a1"]]);
  begun[0]?.end();
  await settled();
  begun[1]?.end();
  await Promise.all(all);
  expect(calls()).toEqual([["a1"], ["b1"]]);
});

test("at most four slow rounds at once", async () => {
  const { begun, commit, calls } = transactions();
  const clock = createManualClock();
  const gather = createGather({ ...usual, clock, commit, most: 1 });
  const all = ["a1", "b2", "c3", "d4", "e5"].map((call) => gather.run(call));
  for (let second = 0; second < 6; second += 1) await clock.advance(1_000);
  expect(calls()).toHaveLength(4);
  begun[2]?.end();
  await settled();
  expect(calls().at(-1)).toEqual(["e5"]);
  for (const each of begun) each.end();
  await Promise.all(all);
});
