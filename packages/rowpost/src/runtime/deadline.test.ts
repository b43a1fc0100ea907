import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DeadlineError, withDeadline } from "./deadline.ts";

describe("withDeadline", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("gives the result, and leaves no timer", async () => {
    expect(await withDeadline(async () => 42, { what: "work", ms: 100 })).toBe(42);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("gives the error of the work as it is, also one that is thrown at once", async () => {
    const broken = new Error("broken");
    const options = { what: "work", ms: 100 };
    await expect(withDeadline(() => Promise.reject(broken), options)).rejects.toBe(broken);
    const throwing = (): Promise<never> => {
      throw broken;
    };
    await expect(withDeadline(throwing, options)).rejects.toBe(broken);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("leaves work that hangs at the deadline", async () => {
    let over = false;
    const hanging = withDeadline(() => new Promise<never>(() => undefined), { what: "the publish", ms: 100 });
    const settled = expect(hanging.finally(() => (over = true))).rejects.toThrow(
      "the publish did not end within 100 ms",
    );
    await vi.advanceTimersByTimeAsync(99);
    expect(over).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await settled;
    expect(vi.getTimerCount()).toBe(0);
  });

  test("work that fails after its deadline is nobody's unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", listen);
    const fail = (): Promise<never> =>
      new Promise((_resolve, reject) => setTimeout(() => reject(new Error("late")), 100));
    const settled = expect(withDeadline(fail, { what: "work", ms: 10 })).rejects.toBeInstanceOf(DeadlineError);
    await vi.advanceTimersByTimeAsync(200);
    await settled;
    process.off("unhandledRejection", listen);
    expect(unhandled).toEqual([]);
  });
});
