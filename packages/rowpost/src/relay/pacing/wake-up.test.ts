import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createWakeUp, firstRing } from "./wake-up.ts";

it("ends at a ring, at its time, or at the abort, and leaves no timer behind", async () => {
  const clock = createManualClock();
  const bell = createWakeUp(clock);
  const stop = new AbortController();
  const ended: string[] = [];
  const wait = async (name: string, sinceCount = bell.count): Promise<void> => {
    await bell.wait({ sinceCount, ms: 100, signal: stop.signal });
    ended.push(name);
  };
  void wait("ring");
  bell.ring();
  await clock.advance(0);
  await wait("rung before", 0);
  void wait("time");
  await clock.advance(99);
  expect(ended).toEqual(["ring", "rung before"]);
  await clock.advance(1);
  void wait("abort");
  stop.abort();
  await clock.advance(0);
  await wait("aborted before");
  expect(ended).toEqual(["ring", "rung before", "time", "abort", "aborted before"]);
  expect(clock.pendingTimers()).toBe(0);
});

it("follows one signal once, however often it waits", async () => {
  const clock = createManualClock();
  const bell = createWakeUp(clock);
  const [one, two] = [new AbortController(), new AbortController()];
  for (const { signal } of [one, one, two, one]) {
    const waiting = bell.wait({ sinceCount: bell.count, ms: 1, signal });
    await clock.advance(1);
    await waiting;
  }
  expect(getEventListeners(one.signal, "abort")).toHaveLength(1);
  expect(getEventListeners(two.signal, "abort")).toHaveLength(0);
});

it("waits for the first of several bells, and for none of them after it", async () => {
  const clock = createManualClock();
  const [one, two] = [createWakeUp(clock), createWakeUp(clock)];
  const { signal } = new AbortController();
  let rang = false;
  void firstRing({ ms: 100, signal }, [one, 0], [two, 0]).then(() => {
    rang = true;
  });
  await clock.advance(50);
  expect(rang).toBe(false);
  two.ring();
  await clock.advance(0);
  expect(rang).toBe(true);
  expect(clock.pendingTimers()).toBe(0);
});
