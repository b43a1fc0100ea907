/** Combines simultaneous calls of many members into one statement. */
import { setTimeout as sleep } from "node:timers/promises";
import { atMost } from "../../../runtime/deadline.ts";

export interface GatheredOptions<Request, Answer> {
  /** Answers in the order of the requests. */
  readonly run: (requests: readonly Request[]) => Promise<readonly Answer[]>;
  /** How long the first request waits for others, beside those that arrive during the last run. */
  readonly waitMs: number;
  /** A run without an answer for this long no longer delays the next one. Default: it does. */
  readonly patienceMs?: number | undefined;
}

/** One run after another; each takes all requests that arrived meanwhile. */
export function createGathered<Request, Answer>(
  options: GatheredOptions<Request, Answer>,
): (request: Request) => Promise<Answer> {
  const { run, waitMs, patienceMs } = options;
  let waiting: { request: Request; resolve: (answer: Answer) => void; reject: (reason: unknown) => void }[] = [];
  let isRunning = false;

  async function runNext(): Promise<void> {
    const taken = waiting;
    waiting = [];
    try {
      const answers = await run(taken.map(({ request }) => request));
      for (const [index, { resolve }] of taken.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      for (const { reject } of taken) reject(error);
    }
  }

  async function runAll(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) {
      // 0: for requests made in one go.
      await (waitMs > 0 ? sleep(waitMs) : undefined);
      const running = runNext();
      await (patienceMs === undefined ? running : atMost(patienceMs, running));
    }
    isRunning = false;
  }

  return async (request) =>
    await new Promise<Answer>((resolve, reject) => {
      waiting.push({ request, resolve, reject });
      if (!isRunning) void runAll();
    });
}
