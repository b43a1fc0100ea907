import { expect, test } from "vitest";
import { createManualClock } from "../../testing/index.ts";
import { createGather } from "./gather.ts";

/** Transactions that end when they are told to. */
function transactions() {
  const begun: { readonly calls: readonly string[]; sent(): void; end(error?: Error): void }[] = [];
  const commit = (calls: readonly string[], sent: () => void): Promise<void> =>
    new Promise((resolve, reject) => {
      begun.push({ calls, sent, end: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  return { begun, commit, calls: () => begun.map(({ calls }) => calls) };
}

const usual = { clock: createManualClock(), leftNothing: () => true, sizeOf: () => 1, most: 10, besideServer: false };

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
  begun[1]?.sent();
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
