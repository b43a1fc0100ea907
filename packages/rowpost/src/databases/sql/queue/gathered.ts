/** Calls of many members that are made together go in one statement. */
import { setTimeout as sleep } from "node:timers/promises";
import { atMost } from "../../../runtime/deadline.ts";

export interface GatheredOptions<Request, Answer> {
  /** Answers in the order of the requests. */
  readonly run: (requests: readonly Request[]) => Promise<readonly Answer[]>;
  /** How long the first one waits for others, beside those that come while the last run goes on. */
  readonly waitMs: number;
  /** A run without an answer for this long holds up the next one no more. Default: it does. */
  readonly patienceMs?: number | undefined;
}

/** One run after another; each takes all that has come meanwhile. */
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
      // 0: for those that are made in one go.
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
