import type { Clock } from "../runtime/clock.ts";
import { sleepWith } from "../runtime/clock.ts";

/** A clock that advances only when a test says so. */
export interface ManualClock extends Clock {
  /**
   * Advances time by `ms` and runs every timer that falls due, including new ones, in the order of
   * their instants (equal ones in order of setting). Promises settle between two instants, so that
   * a loop of sleeps without I/O gets all its rounds.
   */
  advance(ms: number): Promise<void>;
  /** Advances to the next timer and runs what is due. False if no timer is set. */
  advanceToNextTimer(): Promise<boolean>;
  /**
   * Sets the wall clock, as an operator or a time server would. The monotonic clock is not
   * affected.
   */
  setWallMs(wallMs: number): void;
  /** Number of pending timers: 0 at the end of a test shows that nothing was left behind. */
  pendingTimers(): number;
}

interface ManualTimer {
  readonly atMs: number;
  readonly run: () => void;
}

/**
 * Creates a clock for unit tests. `startWallMs`: initial `wallMs()`; default 1,700,000,000,000
 * (November 2023).
 */
export function createManualClock(options: { readonly startWallMs?: number | undefined } = {}): ManualClock {
  let nowMs = 0;
  let wallOffsetMs = options.startWallMs ?? 1_700_000_000_000;
  // A Set keeps insertion order, which breaks ties.
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

/** One turn of the event loop: all ready promise callbacks, and those they make ready, have run. */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
