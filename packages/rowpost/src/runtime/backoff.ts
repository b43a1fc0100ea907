/** An exponential backoff, and the position in it. */
export interface BackoffOptions {
  /** Number of the failed attempt, from 1. */
  readonly attempt: number;
  /** Ceiling of the first wait. */
  readonly baseMs: number;
  /** Growth of the ceiling per attempt, at least 1. */
  readonly factor: number;
  /** Highest ceiling. */
  readonly maxMs: number;
}

/**
 * Milliseconds to wait after a failed attempt: exponential with full jitter, an even draw from 0 to
 * `min(maxMs, baseMs * factor ^ (attempt - 1))`, in whole milliseconds.
 *
 * Full jitter spreads messages that failed at the same instant evenly over the whole wait, instead
 * of a second wave when the broker comes back. A single wait can be near 0.
 *
 * With `DEFAULT_RETRY_POLICY` (message/message-type.ts):
 *
 * | after attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 and more |
 * | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
 * | at most | 1 s | 2 s | 4 s | 8 s | 16 s | 32 s | 64 s | 2.1 min | 4.3 min | 8.5 min | 10 min |
 * | on average, all waits so far | 0.5 s | 1.5 s | 3.5 s | 7.5 s | 15.5 s | 31.5 s | 1.1 min | 2.1 min | 4.3 min | 8.5 min | +5 min each |
 *
 * @param random gives a number in [0, 1); `Math.random` by default, a seeded one in the simulation.
 */
export function backoffMs(options: BackoffOptions, random: () => number = Math.random): number {
  const ceiling = backoffCeilingMs(options);
  return Math.min(Math.floor(random() * (ceiling + 1)), ceiling);
}

/** Longest wait of {@link backoffMs} for this attempt. */
export function backoffCeilingMs({ attempt, baseMs, factor, maxMs }: BackoffOptions): number {
  // A large power is Infinity, and 0 * Infinity is NaN; 2 ^ 64 exceeds any limit.
  const exponent = Math.min(Math.max(attempt - 1, 0), 64);
  return Math.floor(Math.min(maxMs, baseMs * factor ** exponent));
}

/** Longest {@link retryPauseMs}. */
export const LONGEST_RETRY_MS = 1_000;
const FIRST_RETRY_MS = 50;

/**
 * After this many failed statements in a row: 100 ms doubled up to a second. One loop needs no
 * jitter.
 */
export function retryPauseMs(failures: number): number {
  return backoffCeilingMs({ attempt: failures + 1, baseMs: FIRST_RETRY_MS, factor: 2, maxMs: LONGEST_RETRY_MS });
}
