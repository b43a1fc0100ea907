/**
 * The application's clock, as a port, so that tests turn it by hand (`rowpost/testing`,
 * `createManualClock`).
 *
 * It measures durations and waits; it never dates anything in a table. Instants are written and
 * compared by the database server, because the clocks of two application hosts differ by more than
 * the milliseconds that leases and retries are about.
 */

import { onAbort } from "./abort.ts";

/** A timer that has been set. */
export interface Timer {
  /** The function will not run any more. Fine to call twice, and after it has run. */
  cancel(): void;
}

/** Time as the library sees it. */
export interface Clock {
  /**
   * Milliseconds from an arbitrary start, never going back: the only reading that durations are
   * computed from.
   */
  monotonicMs(): number;
  /**
   * Epoch milliseconds of this host, for logs and for protocols that demand a date. Jumps when the
   * host's clock is set.
   */
  wallMs(): number;
  /**
   * Resolves after `ms` milliseconds, or as soon as the signal is aborted: ask the signal which it
   * was. Never rejects, so that a loop that is being stopped needs no catch; leaves neither a timer
   * nor a listener behind.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `run` once after `ms` milliseconds. */
  setTimer(run: () => void, ms: number): Timer;
}

/** Options of {@link createSystemClock}. */
export interface SystemClockOptions {
  /**
   * Default false. True: a process may end although one of this clock's timers or sleeps is still
   * to come.
   */
  readonly unref?: boolean | undefined;
}

/** setTimeout takes a 32-bit number and runs at once when it is larger: 24.8 days. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** The clock of this process. Waits longer than 24.8 days end after 24.8 days. */
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
