import type { Clock } from "../runtime/clock.ts";
import { sleepWith } from "../runtime/clock.ts";

/** A clock that stands still until a test turns it. */
export interface ManualClock extends Clock {
  /**
   * Moves time on by `ms` and runs every timer that falls due on the way, each at its own instant,
   * in the order of their instants (equal ones: in the order in which they were set), including
   * those that are set meanwhile. Between two instants it lets promises settle, so that a loop
   * which sleeps, works without I/O and sleeps again gets all of its rounds.
   */
  advance(ms: number): Promise<void>;
  /** Moves time to the next timer and runs what is due there. False when no timer is set. */
  advanceToNextTimer(): Promise<boolean>;
  /**
   * Sets the wall clock, as an operator or a time server would. The monotonic one goes on as if
   * nothing had happened.
   */
  setWallMs(wallMs: number): void;
  /**
   * Timers that are set and have not run: 0 at the end of a test shows that nothing was left
   * behind.
   */
  pendingTimers(): number;
}

interface ManualTimer {
  readonly atMs: number;
  readonly run: () => void;
}

/**
 * Makes a clock for unit tests. `startWallMs`: what `wallMs()` says first; default
 * 1,700,000,000,000 (November 2023).
 */
export function createManualClock(options: { readonly startWallMs?: number | undefined } = {}): ManualClock {
  let nowMs = 0;
  let wallOffsetMs = options.startWallMs ?? 1_700_000_000_000;
  // Insertion order breaks ties: a Set keeps it.
  const timers = new Set<ManualTimer>();

  function nextTimer(): ManualTimer | undefined {
    let next: ManualTimer | undefined;
    for (const timer of timers) if (next === undefined || timer.atMs < next.atMs) next = timer;
    return next;
  }

  function setTimer(run: () => void, ms: number): { cancel(): void } {
    const timer: ManualTimer = { atMs: nowMs + Math.max(ms, 0), run };
    timers.add(timer);
    return { cancel: () => void timers.delete(timer) };
  }

  async function runUntil(untilMs: number): Promise<void> {
    await settlePromises();
    for (let timer = nextTimer(); timer !== undefined && timer.atMs <= untilMs; timer = nextTimer()) {
      timers.delete(timer);
      nowMs = Math.max(nowMs, timer.atMs);
      timer.run();
      await settlePromises();
    }
    nowMs = Math.max(nowMs, untilMs);
  }

  return {
    monotonicMs: () => nowMs,
    wallMs: () => wallOffsetMs + nowMs,
    sleep: (ms, signal) => sleepWith(setTimer, ms, signal),
    setTimer,
    advance: (ms) => runUntil(nowMs + ms),
    async advanceToNextTimer() {
      await settlePromises();
      const next = nextTimer();
      if (next === undefined) return false;
      await runUntil(next.atMs);
      return true;
    },
    setWallMs(wallMs) {
      wallOffsetMs = wallMs - nowMs;
    },
    pendingTimers: () => timers.size,
  };
}

/**
 * One turn of the event loop: all promise callbacks that are ready, and those that they make ready,
 * have run.
 */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
