import { systemClock } from "./clock.ts";
import { RowpostError } from "./errors.ts";

/**
 * Something did not end in time. It may still be running or have happened: the outcome is unknown.
 */
export class DeadlineError extends RowpostError {
  constructor(what: string, deadlineMs: number, options: { cause?: unknown } = {}) {
    super("DEADLINE", `${what} did not end within ${deadlineMs} ms`, { ...options, retriable: true });
  }
}

export interface DeadlineOptions {
  /** Action in the error's text: "the publish", "statement claim". */
  readonly what: string;
  readonly ms: number;
}

/**
 * Settles like `start`, or rejects with {@link DeadlineError} after `ms`: the work continues
 * unattended, and its result is dropped. Leaves no timer behind.
 */
export async function withDeadline<Result>(
  start: () => Promise<Result>,
  { what, ms }: DeadlineOptions,
): Promise<Result> {
  let expire = (_error: DeadlineError): void => undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    expire = reject;
  });
  const timer = systemClock.setTimer(() => expire(new DeadlineError(what, ms)), ms);
  try {
    // race handles both, so a late rejection of the loser is not "unhandled".
    return await Promise.race([start(), expired]);
  } finally {
    timer.cancel();
  }
}

/** A server that does not answer notices the closed socket. */
export const CLOSE_WITHIN_MS = 500;
/** A pool waits this long for running transactions. */
export const POOL_CLOSE_MS = 5_000;

/** Resolves when closing ended in any way, at the latest after `ms`. */
export async function closeQuietly(closing: Promise<unknown>, ms: number = CLOSE_WITHIN_MS): Promise<void> {
  await atMost(ms, closing);
}

/** Resolves at the end, or after `ms`, leaving it running. */
export async function atMost(ms: number, running: Promise<unknown>): Promise<void> {
  await withDeadline(() => running, { what: "it", ms }).catch(() => undefined);
}
