import { linkSignals, onAbort } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { systemClock } from "./clock.ts";
import { RowpostError } from "./errors.ts";

/** Something did not end in its time. What it was doing may still be going on, or have happened: the outcome is unknown. */
export class DeadlineError extends RowpostError {
  /** The time that it had. */
  readonly deadlineMs: number;

  constructor(what: string, deadlineMs: number, options: { cause?: unknown } = {}) {
    super("DEADLINE", `${what} did not end within ${deadlineMs} ms`, { ...options, retriable: true });
    this.deadlineMs = deadlineMs;
  }
}

/** Options of {@link withDeadline}. */
export interface DeadlineOptions {
  /** What is done, for the error's text: "the publish", "statement claim". */
  readonly what: string;
  readonly ms: number;
  /** Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Ends it early, with this signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `start` and settles as its promise does, but at the latest after `ms`: then it rejects with {@link DeadlineError} (or with the reason
 * of the given signal, if that was aborted first) and `start`'s signal is aborted, so that the work can end too. It does not wait for that:
 * something that hangs is left behind, and what it may still bring is dropped silently.
 *
 * Leaves no timer and no listener behind in any case.
 */
export async function withDeadline<Result>(
  start: (signal: AbortSignal) => Promise<Result>,
  options: DeadlineOptions,
): Promise<Result> {
  const { what, ms, clock = systemClock } = options;
  const link = linkSignals(options.signal);
  link.signal.throwIfAborted();
  const timer = clock.setTimer(() => link.abort(new DeadlineError(what, ms)), ms);
  let stopFollowing = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    stopFollowing = onAbort(link.signal, reject);
  });
  try {
    // race adds a handler to both, so a late rejection of the loser is not "unhandled".
    return await Promise.race([start(link.signal), aborted]);
  } finally {
    timer.cancel();
    stopFollowing();
    link.release();
  }
}
