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

/** A signal that follows others, and the function that takes its listeners off them again. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts it by itself; nothing happens to the others. */
  abort(reason: unknown): void;
  /** Must be called when the work is over: from then on nothing of it hangs on the others. */
  release(): void;
}

/**
 * A signal that is aborted, with the same reason, when one of the given ones is.
 *
 * `AbortSignal.any` does this too, but keeps its parts alive by weak references that are cleaned up at some garbage collection: with one
 * long-lived stop signal and a hundred thousand publishes that is a leak for as long as it lasts (Node 20 up to 20.16 lost the memory for
 * good). Here the listeners are gone at `release`.
 */
export function linkSignals(...signals: readonly (AbortSignal | undefined)[]): LinkedSignal {
  const controller = new AbortController();
  const followed: { readonly source: AbortSignal; readonly follow: () => void }[] = [];

  function release(): void {
    for (const { source, follow } of followed) source.removeEventListener("abort", follow);
    followed.length = 0;
  }

  function abort(reason: unknown): void {
    release();
    controller.abort(reason);
  }

  for (const source of signals) {
    if (source === undefined) continue;
    if (source.aborted) {
      abort(source.reason);
      break;
    }
    const follow = (): void => abort(source.reason);
    source.addEventListener("abort", follow, { once: true });
    followed.push({ source, follow });
  }
  return { signal: controller.signal, abort, release };
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
  let stopWaiting: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    const end = (): void => reject(link.signal.reason);
    link.signal.addEventListener("abort", end, { once: true });
    stopWaiting = () => link.signal.removeEventListener("abort", end);
  });
  try {
    // race adds a handler to both, so a late rejection of the loser is not "unhandled".
    return await Promise.race([start(link.signal), aborted]);
  } finally {
    timer.cancel();
    stopWaiting?.();
    link.release();
  }
}
