/** A handler that notes what it has handled, and how many of it run. */
import type { DeliveredMessage } from "../../src/consume/index.ts";

export interface CountingHandler {
  /** Keys, in the order in which they were done. */
  readonly handled: string[];
  readonly running: () => number;
  readonly handler: (message: DeliveredMessage) => Promise<void>;
}

export function countingHandler(): CountingHandler {
  const handled: string[] = [];
  let running = 0;
  return {
    handled,
    running: () => running,
    async handler({ key }) {
      running += 1;
      await new Promise((resolve) => setImmediate(resolve));
      handled.push(key);
      running -= 1;
    },
  };
}
