import { expect, test, vi } from "vitest";
import { untilAborted } from "../runtime/abort.ts";
import { createUnderway } from "./underway.ts";

const TURNS = 1_000;

test("one that is stuck is waited for once, however many pass by", async () => {
  const underway = createUnderway(10);
  const stuck = new Promise(() => undefined);
  const reactions = vi.spyOn(stuck, "then");
  underway.add(stuck, 1);
  for (let turn = 0; turn < TURNS; turn += 1) {
    underway.add(Promise.resolve(), 1);
    expect(underway.size).toBe(2);
    await untilAborted(underway.change());
    expect(underway.size).toBe(1);
  }
  expect(reactions).toHaveBeenCalledTimes(1);
});

test("all who wait are woken by the next that settles, or by a word", async () => {
  const underway = createUnderway(10);
  let settle = (): void => undefined;
  underway.add(new Promise<void>((resolve) => (settle = resolve)), 1);
  expect(underway.change()).toBe(underway.change());
  const waiting = Promise.all([untilAborted(underway.change()), untilAborted(underway.change())]);
  underway.wake();
  await waiting;
  const none = underway.none();
  underway.wake();
  settle();
  await none;
  expect(underway.size).toBe(0);
});

test("there is room for as many as the largest of late leave of 32 MiB, and for one at least", async () => {
  const underway = createUnderway(10);
  expect(underway.room).toBe(10);
  const ends: (() => void)[] = [];
  const add = (bytes: number): void => underway.add(new Promise<void>((resolve) => ends.push(resolve)), bytes);
  add(1_000);
  expect(underway.room).toBe(9);
  add(10 * 1_048_576);
  expect(underway.room).toBe(2);
  add(22 * 1_048_576);
  expect(underway.room).toBe(0);
  for (const end of ends) end();
  await underway.none();
  expect(underway.room).toBe(1);
  for (let small = 0; small < 400; small += 1) underway.add(Promise.resolve(), 100);
  await underway.none();
  expect(underway.room).toBe(10);
});
