import { expect, test, vi } from "vitest";
import { createAbortScope, orAborted } from "./abort-scope.ts";

test("a scope is aborted with any of its signals, once, and tells those that come later at once", () => {
  const [deadline, closing] = [new AbortController(), new AbortController()];
  const scope = createAbortScope({ deadline: deadline.signal, closing: closing.signal });
  const [first, taken, late] = [vi.fn(), vi.fn(), vi.fn()];
  scope.onAbort(first);
  scope.onAbort(taken)();
  expect(scope.aborted).toBe(false);
  closing.abort();
  deadline.abort();
  scope.onAbort(late);
  expect([scope.aborted, scope.ending]).toEqual([true, "closed"]);
  expect([first, taken, late].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 1]);
});

test("a scope that ended hears its signals no more; one that is made from an aborted signal is aborted", () => {
  const controller = new AbortController();
  const scope = createAbortScope({ deadline: controller.signal });
  const cancel = vi.fn();
  scope.onAbort(cancel);
  scope.end();
  controller.abort();
  expect(cancel).not.toHaveBeenCalled();
  expect(createAbortScope({ deadline: controller.signal }).aborted).toBe(true);
});

test("orAborted: the value, the error, or undefined when the abort is first", async () => {
  const scope = createAbortScope();
  const controller = new AbortController();
  const never = new Promise<string>(() => undefined);
  expect(await orAborted(Promise.resolve("value"), scope)).toBe("value");
  await expect(orAborted(Promise.reject(new Error("no")), controller.signal)).rejects.toThrow("no");
  const waiting = [orAborted(never, scope), orAborted(never, controller.signal)];
  scope.abort();
  controller.abort();
  expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
});
