import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createCutoff, linkSignals, onAbort } from "./abort.ts";

describe("following signals", () => {
  test("onAbort runs once, with the reason, or at once when it is too late", () => {
    const stop = new AbortController();
    const reasons: unknown[] = [];
    onAbort(stop.signal, (reason) => reasons.push(reason));
    stop.abort("first");
    stop.abort("second");
    onAbort(stop.signal, (reason) => reasons.push(reason));
    expect(reasons).toEqual(["first", "first"]);
  });

  test("onAbort can be taken off, and follows nothing when there is no signal", () => {
    const stop = new AbortController();
    let runs = 0;
    onAbort(stop.signal, () => {
      runs += 1;
    })();
    onAbort(undefined, () => {
      runs += 1;
    })();
    stop.abort();
    expect(runs).toBe(0);
  });

  test("a hundred followers of one signal bring no warning of a leak", async () => {
    const warnings: string[] = [];
    const listen = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", listen);
    const stop = new AbortController();
    const offs = Array.from({ length: 100 }, () => onAbort(stop.signal, () => undefined));
    // Warnings are emitted on a later tick.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    process.off("warning", listen);
    for (const off of offs) off();
    expect(warnings).toEqual([]);
  });

  test("a linked signal follows whichever comes first, with its reason", () => {
    const [one, two] = [new AbortController(), new AbortController()];
    const link = linkSignals(one.signal, undefined, two.signal);
    two.abort("two");
    one.abort("one");
    expect(link.signal.reason).toBe("two");
    expect(linkSignals(one.signal, two.signal).signal.reason).toBe("one");
  });

  test("nothing hangs on the sources after release, or after one of them was aborted", () => {
    const [one, two] = [new AbortController(), new AbortController()];
    const listeners = (): number =>
      getEventListeners(one.signal, "abort").length + getEventListeners(two.signal, "abort").length;
    const released = linkSignals(one.signal, two.signal);
    expect(listeners()).toBe(2);
    released.release();
    expect(listeners()).toBe(0);
    linkSignals(one.signal, two.signal);
    one.abort();
    expect(listeners()).toBe(0);
    expect(released.signal.aborted).toBe(false);
  });

  test("a cutoff ends what is under way and what comes later, and follows its signal once", async () => {
    const stop = new AbortController();
    const cutoff = createCutoff(stop.signal);
    const never = new Promise<never>(() => undefined);
    await expect(cutoff.unlessCut(Promise.resolve(1), () => "cut")).resolves.toBe(1);
    await expect(cutoff.unlessCut(Promise.reject(new Error("its own")), () => "cut")).rejects.toThrow("its own");
    const waiting = [cutoff.unlessCut(never, () => "one"), cutoff.unlessCut(never, () => "two")];
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(1);
    stop.abort();
    await expect(Promise.allSettled(waiting)).resolves.toMatchObject([{ reason: "one" }, { reason: "two" }]);
    await expect(cutoff.unlessCut(never, () => "late")).rejects.toBe("late");
    const other = new AbortController();
    createCutoff(other.signal).release();
    cutoff.release();
    expect(getEventListeners(other.signal, "abort")).toHaveLength(0);
  });
});
