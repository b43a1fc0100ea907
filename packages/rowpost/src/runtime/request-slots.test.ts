import { describe, expect, test } from "vitest";
import { createAbortScope } from "./abort-scope.ts";
import { createRequestSlots } from "./request-slots.ts";

/** True once the promise has settled, a turn later. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol("pending");
  await new Promise((resolve) => setImmediate(resolve));
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending;
}

describe("createRequestSlots", () => {
  test("bounds the number of requests, first come first served", async () => {
    const slots = createRequestSlots({ maxRequests: 2, maxBytes: 100 });
    const scope = createAbortScope();
    await slots.acquire(1, scope);
    await slots.acquire(1, scope);
    const third = slots.acquire(1, scope);
    const fourth = slots.acquire(1, scope);
    expect(await isSettled(third)).toBe(false);
    slots.release(1);
    expect(await third).toBe(true);
    expect(await isSettled(fourth)).toBe(false);
  });

  test("bounds their bytes; one that is larger than all goes alone, and is not overtaken for ever", async () => {
    const slots = createRequestSlots({ maxRequests: 10, maxBytes: 100 });
    const scope = createAbortScope();
    await slots.acquire(60, scope);
    const large = slots.acquire(500, scope);
    const small = slots.acquire(10, scope);
    expect(await isSettled(large)).toBe(false);
    expect(await isSettled(small)).toBe(false);
    slots.release(60);
    expect(await large).toBe(true);
    expect(await isSettled(small)).toBe(false);
    slots.release(500);
    expect(await small).toBe(true);
  });

  test("an abort ends the waiting and lets those behind go on", async () => {
    const slots = createRequestSlots({ maxRequests: 10, maxBytes: 100 });
    const controller = new AbortController();
    const aborted = createAbortScope(controller.signal);
    const other = createAbortScope();
    await slots.acquire(60, other);
    const large = slots.acquire(90, aborted);
    const small = slots.acquire(10, other);
    controller.abort();
    expect(await large).toBe(false);
    expect(await small).toBe(true);
    expect(await slots.acquire(1, aborted)).toBe(false);
    slots.release(60);
    slots.release(10);
    const all = await Promise.all(Array.from({ length: 10 }, () => slots.acquire(10, other)));
    expect(all.every(Boolean)).toBe(true);
  });

  test("an abort ends every request of its scope, also one that would fit where another gave up", async () => {
    const slots = createRequestSlots({ maxBytes: 100 });
    const scope = createAbortScope();
    await slots.acquire(60, createAbortScope());
    const waiting = [slots.acquire(90, scope), slots.acquire(10, scope)];
    scope.abort();
    expect(await Promise.all(waiting)).toEqual([false, false]);
  });
});
