/**
 * How often somebody may guess: a name rests after failures, and few passwords are tried at once.
 */
import { Problem } from "../http/problem.ts";

const FAILURES = 5;
const REST_MS = 15 * 60_000;
/** Names that are remembered; the oldest go first. */
const MOST_NAMES = 10_000;
/** Passwords that wait: each takes about 100 ms of a processor. */
const MOST_WAITING = 20;

interface Failures {
  readonly count: number;
  readonly untilMs: number;
}

/** Makes the limits of one process. */
export function createLoginLimits(now: () => number = Date.now): {
  /** Runs `check` in turn. Rejects with a {@link Problem} while the name rests. */
  guard(name: string, check: () => Promise<boolean>): Promise<boolean>;
} {
  const failures = new Map<string, Failures>();
  let waiting = 0;
  let turn: Promise<unknown> = Promise.resolve();

  function refuse(seconds: number): never {
    throw new Problem("rate-limited", "too many failed logins; wait", { headers: { "retry-after": String(seconds) } });
  }

  function checkRest(name: string): void {
    const before = failures.get(name);
    if (before === undefined || before.count < FAILURES) return;
    const leftMs = before.untilMs - now();
    if (leftMs > 0) refuse(Math.ceil(leftMs / 1_000));
    failures.delete(name);
  }

  return {
    async guard(name, check) {
      checkRest(name);
      if (waiting >= MOST_WAITING) refuse(5);
      waiting += 1;
      const mine = turn.then(async () => {
        // Those of the same name that waited before it may have used up its tries.
        checkRest(name);
        const right = await check();
        if (right) failures.delete(name);
        else {
          if (failures.size >= MOST_NAMES) failures.delete(failures.keys().next().value ?? "");
          failures.set(name, { count: (failures.get(name)?.count ?? 0) + 1, untilMs: now() + REST_MS });
        }
        return right;
      });
      turn = mine.catch(() => undefined);
      try {
        return await mine;
      } finally {
        waiting -= 1;
      }
    },
  };
}
