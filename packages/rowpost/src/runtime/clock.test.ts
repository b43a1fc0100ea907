import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { createSystemClock, systemClock } from "./clock.ts";

describe("system clock", () => {
  test("sleep lasts at least its time by the monotonic clock", async () => {
    const startedAt = systemClock.monotonicMs();
    await systemClock.sleep(20);
    // setTimeout may be up to a millisecond early against performance.now().
    expect(systemClock.monotonicMs() - startedAt).toBeGreaterThanOrEqual(19);
  });

  test("an aborted sleep ends at once, without an error and without a listener", async () => {
    const stop = new AbortController();
    const asleep = systemClock.sleep(60_000, stop.signal);
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(1);
    stop.abort();
    await asleep;
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
    await systemClock.sleep(60_000, stop.signal);
  });

  test("a sleep that ended by itself leaves no listener", async () => {
    const stop = new AbortController();
    await systemClock.sleep(1, stop.signal);
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
  });

  test("a canceled timer does not run", async () => {
    let runs = 0;
    const timer = systemClock.setTimer(() => {
      runs += 1;
    }, 1);
    timer.cancel();
    timer.cancel();
    await systemClock.sleep(10);
    expect(runs).toBe(0);
  });

  test("a timer beyond setTimeout's 24.8 days does not run at once", async () => {
    let runs = 0;
    const timer = systemClock.setTimer(() => {
      runs += 1;
    }, 2 ** 40);
    await systemClock.sleep(10);
    timer.cancel();
    expect(runs).toBe(0);
  });

  test("with unref a timer keeps no process alive", () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const quiet = createSystemClock({ unref: true }).setTimer(() => undefined, 60_000);
    expect(timers()).toBe(before);
    const loud = createSystemClock().setTimer(() => undefined, 60_000);
    expect(timers()).toBe(before + 1);
    quiet.cancel();
    loud.cancel();
  });
});

describe("manual clock", () => {
  test("timers run at their instants, in order, also those that are set on the way", async () => {
    const clock = createManualClock();
    const ran: string[] = [];
    const note = (what: string) => () => void ran.push(`${what}@${clock.monotonicMs()}`);
    clock.setTimer(note("late"), 30);
    clock.setTimer(note("equal 1"), 10);
    clock.setTimer(note("equal 2"), 10);
    clock.setTimer(() => void clock.setTimer(note("nested"), 5), 10);
    await clock.advance(29);
    expect(ran).toEqual(["equal 1@10", "equal 2@10", "nested@15"]);
    await clock.advance(1);
    expect(ran.at(-1)).toBe("late@30");
    expect(clock.pendingTimers()).toBe(0);
  });

  test("a loop that sleeps gets all of its rounds", async () => {
    const clock = createManualClock();
    const stop = new AbortController();
    let rounds = 0;
    const loop = (async () => {
      while (!stop.signal.aborted) {
        await clock.sleep(100, stop.signal);
        rounds += 1;
      }
    })();
    await clock.advance(1_000);
    expect(rounds).toBe(10);
    stop.abort();
    await loop;
    expect(clock.pendingTimers()).toBe(0);
  });

  test("the wall clock can be set without the monotonic one noticing", async () => {
    const clock = createManualClock({ startWallMs: 1_000_000 });
    await clock.advance(500);
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([500, 1_000_500]);
    clock.setWallMs(5);
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([500, 5]);
    expect(await clock.advanceToNextTimer()).toBe(false);
    clock.setTimer(() => undefined, 40);
    expect(await clock.advanceToNextTimer()).toBe(true);
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([540, 45]);
  });
});
