/**
 * Limits guessing: a name rests after failures, an address after more of them, and few passwords
 * are checked at once.
 */
import { Problem } from "../http/problem.ts";

const REST_MS = 15 * 60_000;
const MOST_KNOWN = 10_000;
const FAILURES_OF_NAME = 5;
/** Higher, because several people may share an address. */
const FAILURES_OF_ADDRESS = 20;
/** Waiting password checks; each takes about 100 ms of CPU. */
const MOST_WAITING = 20;

export interface Guesser {
  readonly name: string;
  readonly address: string | undefined;
}

export function createLoginLimits(now: () => number = Date.now): {
  /** Runs `check` in turn. Rejects with a {@link Problem} while the name or the address rests. */
  guard(who: Guesser, check: () => Promise<boolean>): Promise<boolean>;
} {
  const names = createFailures(FAILURES_OF_NAME, now);
  const addresses = createFailures(FAILURES_OF_ADDRESS, now);
  let waiting = 0;
  let turn: Promise<unknown> = Promise.resolve();

  function checkRest({ address, name }: Guesser): void {
    const leftMs = Math.max(names.restMs(name), address === undefined ? 0 : addresses.restMs(address));
    if (leftMs > 0) refuse(Math.ceil(leftMs / 1_000));
  }

  return {
    async guard(who, check) {
      checkRest(who);
      if (waiting >= MOST_WAITING) refuse(5);
      waiting += 1;
      const mine = turn.then(async () => {
        // Checks that ran earlier may have used up the tries.
        checkRest(who);
        const right = await check();
        if (right) names.forget(who.name);
        else {
          names.add(who.name);
          if (who.address !== undefined) addresses.add(who.address);
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

function refuse(seconds: number): never {
  throw new Problem("rate-limited", "too many failed logins; wait", { headers: { "retry-after": String(seconds) } });
}

interface Failures {
  /** 0: may try now. */
  restMs(of: string): number;
  add(of: string): void;
  forget(of: string): void;
}

function createFailures(most: number, now: () => number): Failures {
  const known = new Map<string, { readonly count: number; readonly untilMs: number }>();
  return {
    restMs(of) {
      const before = known.get(of);
      if (before === undefined) return 0;
      const leftMs = before.untilMs - now();
      if (leftMs <= 0) known.delete(of);
      return before.count < most ? 0 : leftMs;
    },
    add(of) {
      if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value ?? "");
      known.set(of, { count: (known.get(of)?.count ?? 0) + 1, untilMs: now() + REST_MS });
    },
    forget: (of) => void known.delete(of),
  };
}
