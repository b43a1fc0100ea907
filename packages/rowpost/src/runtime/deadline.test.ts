import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { DeadlineError, withDeadline } from "./deadline.ts";

describe("withDeadline", () => {
  test("gives the result, and leaves neither a timer nor a listener", async () => {
    const clock = createManualClock();
    const stop = new AbortController();
    const result = await withDeadline(async () => 42, { what: "work", ms: 100, clock, signal: stop.signal });
    expect(result).toBe(42);
    expect(clock.pendingTimers()).toBe(0);
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
  });

  test("gives the error of the work as it is, also one that is thrown at once", async () => {
    const clock = createManualClock();
    const broken = new Error("broken");
    const options = { what: "work", ms: 100, clock };
    await expect(withDeadline(() => Promise.reject(broken), options)).rejects.toBe(broken);
    const throwing = (): Promise<never> => {
      throw broken;
    };
    await expect(withDeadline(throwing, options)).rejects.toBe(broken);
    expect(clock.pendingTimers()).toBe(0);
  });

  test("leaves work that hangs at the deadline, and tells it to end", async () => {
    const clock = createManualClock();
    let told: AbortSignal | undefined;
    const hanging = withDeadline(
      (signal) => {
        told = signal;
        return new Promise<never>(() => undefined);
      },
      { what: "the publish", ms: 100, clock },
    );
    const settled = expect(hanging).rejects.toThrow("the publish did not end within 100 ms");
    await clock.advance(99);
    expect(told?.aborted).toBe(false);
    await clock.advance(1);
    await settled;
    expect(told?.reason).toBeInstanceOf(DeadlineError);
    expect(clock.pendingTimers()).toBe(0);
  });

  test("work that fails after its deadline is nobody's unhandled rejection", async () => {
    const clock = createManualClock();
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", listen);
    const late = withDeadline(
      (signal) =>
        clock
          .sleep(50, signal)
          .then(() => clock.sleep(50))
          .then(() => Promise.reject(new Error("late"))),
      {
        what: "work",
        ms: 10,
        clock,
      },
    );
    const settled = expect(late).rejects.toBeInstanceOf(DeadlineError);
    await clock.advance(200);
    await settled;
    process.off("unhandledRejection", listen);
    expect(unhandled).toEqual([]);
  });

  test("ends with the reason of the given signal, and does not start when that was aborted before", async () => {
    const clock = createManualClock();
    const stop = new AbortController();
    const stopped = new Error("stopped");
    let starts = 0;
    const work = (): Promise<never> => {
      starts += 1;
      return new Promise<never>(() => undefined);
    };
    const running = withDeadline(work, { what: "work", ms: 100, clock, signal: stop.signal });
    const settled = expect(running).rejects.toBe(stopped);
    stop.abort(stopped);
    await settled;
    await expect(withDeadline(work, { what: "work", ms: 100, clock, signal: stop.signal })).rejects.toBe(stopped);
    expect(starts).toBe(1);
    expect(clock.pendingTimers()).toBe(0);
  });
});
