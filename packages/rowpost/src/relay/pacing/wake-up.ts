/**
 * Wake-ups of the relay's loop: hints that there is something to do. Losing one costs latency only,
 * because the loop also polls.
 */
import { onAbort } from "../../runtime/abort.ts";
import type { Clock } from "../../runtime/clock.ts";

export interface WakeUp {
  readonly ring: () => void;
  /**
   * Rings so far. Read before looking for work, so that a ring that comes meanwhile is not slept
   * through.
   */
  readonly count: number;
  /** Resolves at a ring later than `sinceCount`, after `ms`, or at the abort. */
  wait(request: { readonly sinceCount: number; readonly ms: number; readonly signal: AbortSignal }): Promise<void>;
}

const RUNG = "rung";

/** Makes a wake-up nobody has rung yet. */
export function createWakeUp(clock: Clock): WakeUp {
  let count = 0;
  let waiting: AbortController | undefined;
  return {
    ring() {
      count += 1;
      // A reason of our own: without one each abort makes a DOMException with a stack, 4 % of a
      // drain's client CPU.
      waiting?.abort(RUNG);
    },
    get count() {
      return count;
    },
    async wait({ sinceCount, ms, signal }) {
      if (count > sinceCount || signal.aborted) return;
      const sleeper = new AbortController();
      const forward = (): void => sleeper.abort(RUNG);
      waiting = sleeper;
      signal.addEventListener("abort", forward, { once: true });
      await clock.sleep(ms, sleeper.signal);
      signal.removeEventListener("abort", forward);
      waiting = undefined;
    },
  };
}

/** Waits for whichever rings first, each since its own count. */
export async function firstRing(
  { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
  ...bells: readonly (readonly [wakeUp: WakeUp, sinceCount: number])[]
): Promise<void> {
  const rung = new AbortController();
  const stopFollowing = onAbort(signal, () => rung.abort(RUNG));
  const waits = bells.map(([bell, sinceCount]) =>
    bell.wait({ sinceCount, ms, signal: rung.signal }).then(() => rung.abort(RUNG)),
  );
  // All of them: a wait that goes on would take the place of the next one.
  await Promise.all(waits);
  stopFollowing();
}
