import { expect, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { deliveredMessage } from "./message.ts";
import { workSettings } from "./options.ts";
import { createWork } from "./work.ts";

test("one in its last delivery has its pauses in a close as well, and the others go back", async () => {
  const clock = createManualClock();
  const calls: string[] = [];
  const settings = workSettings(
    "a test",
    {
      ...{ inbox: "none", logger: "silent", clock },
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
      ...{ raw: undefined, isLast, tell: () => undefined },
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
