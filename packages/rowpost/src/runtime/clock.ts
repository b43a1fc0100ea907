/**
 * Port of the application's clock, which tests control (`rowpost/testing`, `createManualClock`).
 *
 * It measures durations and waits, but never dates anything in a table. The database server writes
 * and compares instants, because the clocks of two application hosts differ by more than the
 * milliseconds that matter for leases and retries.
 */

import { onAbort } from "./abort.ts";

/** A pending timer. */
export interface Timer {
  /** Prevents the function from running. May be called repeatedly, and after it has run. */
  cancel(): void;
}

/** Clock and timers of the library. */
export interface Clock {
  /** Milliseconds from an arbitrary start, never going back: the only source of durations. */
  monotonicMs(): number;
  /**
   * Epoch milliseconds of this host, for logs and protocols that need a date. Jumps when the host's
   * clock is set.
   */
  wallMs(): number;
  /**
   * Resolves after `ms` milliseconds or when the signal is aborted; ask the signal which. Never
   * rejects, so that a stopping loop needs no catch, and leaves no timer or listener behind.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `run` once after `ms` milliseconds. */
  setTimer(run: () => void, ms: number): Timer;
}

/** Options of {@link createSystemClock}. */
export interface SystemClockOptions {
  /** True: timers and sleeps of this clock do not keep the process alive. Default false. */
  readonly unref?: boolean | undefined;
}

/** setTimeout takes a 32-bit number and runs at once when it is larger: 24.8 days. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** The clock of this process. Longer waits end after 24.8 days. */
export function createSystemClock(options: SystemClockOptions = {}): Clock {
  const { unref = false } = options;

  function setTimer(run: () => void, ms: number): Timer {
    const timeout = setTimeout(run, Math.min(Math.max(ms, 0), LONGEST_TIMER_MS));
    if (unref) timeout.unref();
    return { cancel: () => clearTimeout(timeout) };
  }

  return {
    monotonicMs: () => performance.now(),
    wallMs: () => Date.now(),
    sleep: (ms, signal) => sleepWith(setTimer, ms, signal),
    setTimer,
  };
}

/** The clock of this process, with timers that keep it alive. */
export const systemClock: Clock = createSystemClock();

/** {@link Clock.sleep} for any clock, from its `setTimer`. */
export function sleepWith(setTimer: Clock["setTimer"], ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    function wake(): void {
      timer.cancel();
      stopFollowing();
      resolve();
    }
    const timer = setTimer(wake, ms);
    const stopFollowing = onAbort(signal, wake);
  });
}
