/** Limits the requests a second of one name, with a burst of five seconds' worth, or `burst`. */
import { Problem } from "./problem.ts";

const BURST_S = 5;
const MOST_NAMES = 10_000;

/** Returns the check, which throws a {@link Problem} when there were too many. */
export function createRateLimit(
  perSecond: number,
  { burst = perSecond * BURST_S, now = () => performance.now() }: { burst?: number; now?: () => number } = {},
): (name: string) => void {
  const left = new Map<string, { readonly count: number; readonly atMs: number }>();
  return (name) => {
    const atMs = now();
    const before = left.get(name) ?? { count: burst, atMs };
    const refilled = Math.min(burst, before.count + ((atMs - before.atMs) / 1_000) * perSecond);
    if (refilled < 1)
      throw new Problem("rate-limited", `more than ${perSecond} requests a second`, {
        headers: { "retry-after": "1" },
      });
    left.delete(name);
    left.set(name, { count: refilled - 1, atMs });
    if (left.size > MOST_NAMES) left.delete(left.keys().next().value ?? "");
  };
}
