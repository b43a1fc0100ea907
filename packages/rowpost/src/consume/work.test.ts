import { beforeAll, expect, test } from "vitest";
import { loadTelemetry } from "../runtime/trace-context.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { deliveredMessage } from "./message.ts";
import { workSettings } from "./options.ts";
import { createWork } from "./work.ts";

// The test clock does not wait for modules loaded by the first message of a process.
beforeAll(() => loadTelemetry());

test.each([
  ["stays until it is back, with its key", undefined, "handled", 4],
  ["is told to a sender that waits, after its tries", "never", "redeliver", 2],
] as const)("a message whose handler calls somebody who is away %s", async (_what, stays, verdict, calls) => {
  const clock = createManualClock();
  const called: string[] = [];
  const settings = workSettings(
    "a test",
    {
      inbox: "none",
      logger: "silent",
      clock,
      retry: { maxAttempts: 2, baseMs: 0 },
      handler: ({ key }) => {
        called.push(key);
        if (called.length < 4) throw Object.assign(new Error("away"), { cause: { code: "ECONNREFUSED" } });
      },
    },
    {},
  );
  const work = createWork(settings);
  const handled = work.handle({
    raw: undefined,
    stays,
    tell: () => undefined,
    read: () => deliveredMessage({ identity: { type: "t", key: "k" }, headers: {}, body: "" }),
  });
  for (let step = 1; step <= 10; step += 1) await clock.advance(1_000);
  expect(await handled).toBe(verdict);
  expect(called).toHaveLength(calls);
});

test("one in its last delivery has its pauses in a close as well, and the others go back", async () => {
  const clock = createManualClock();
  const calls: string[] = [];
  const settings = workSettings(
    "a test",
    {
      inbox: "none",
      logger: "silent",
      clock,
      handler: ({ key }) => {
        calls.push(key);
        if (calls.length < 4) throw new Error("not yet");
      },
    },
    {},
  );
  const work = createWork({ ...settings, retryInMs: () => 1_000 });
  const handle = (key: string, isLast: boolean): Promise<string> =>
    work.handle({
      raw: undefined,
      isLast,
      tell: () => undefined,
      read: () => deliveredMessage({ identity: { type: "t", key }, headers: {}, body: "" }),
    });
  const verdicts = Promise.all([handle("last", true), handle("other", false)]);
  await expect.poll(() => calls).toEqual(["last", "other"]);
  const drained = work.drain();
  await clock.advance(999);
  expect(calls).toEqual(["last", "other"]);
  await clock.advance(1);
  expect(calls).toEqual(["last", "other", "last"]);
  await clock.advance(1_000);
  expect(await verdicts).toEqual(["handled", "stopped"]);
  expect(await drained).toEqual({ drained: true });
});
