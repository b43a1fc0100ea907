import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { createLanes } from "./lanes.ts";

it.each([undefined, "a"])(
  "lets go of a task, and of the body that it holds, when it has ended: lane %s",
  async (lane) => {
    const lanes = createLanes(2);
    const add = (): WeakRef<object> => {
      const body = { text: "x" };
      lanes.add({ lane }, async () => {
        await setImmediate();
        expect(body.text).toBe("x");
      });
      return new WeakRef(body);
    };
    const bodies = [add(), add(), add()];
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    setFlagsFromString("--expose-gc");
    (runInNewContext("gc") as () => void)();
    expect(bodies.map((body) => body.deref())).toEqual([undefined, undefined, undefined]);
  },
);
