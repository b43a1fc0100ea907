import { expect, test, vi } from "vitest";
import { untilAborted } from "../runtime/abort.ts";
import { createUnderway } from "./underway.ts";

const TURNS = 1_000;

test("one that is stuck is waited for once, however many pass by", async () => {
  const underway = createUnderway();
  const stuck = new Promise(() => undefined);
  const reactions = vi.spyOn(stuck, "then");
  underway.add(stuck);
  for (let turn = 0; turn < TURNS; turn += 1) {
    underway.add(Promise.resolve());
    expect(underway.size).toBe(2);
    await untilAborted(underway.change());
    expect(underway.size).toBe(1);
  }
  expect(reactions).toHaveBeenCalledTimes(1);
});

test("all who wait are woken by the next that settles, or by a word", async () => {
  const underway = createUnderway();
  let settle = (): void => undefined;
  underway.add(new Promise<void>((resolve) => (settle = resolve)));
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
