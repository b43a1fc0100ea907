/** Follows abort signals without leaving listeners on them. */
import { setMaxListeners } from "node:events";

/**
 * Runs `run` once on abort, or at once if already aborted. Returns a function that stops following.
 *
 * Node warns of a leak from the 11th listener on. A hundred publishes may follow one stop signal,
 * so the limit is lifted.
 */
export function onAbort(signal: AbortSignal | undefined, run: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    run(signal.reason);
    return () => undefined;
  }
  const listener = (): void => run(signal.reason);
  setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, () => resolve()));
}

/**
 * Rejects with the result of `reason` on abort: the work continues unattended, and its result is
 * dropped.
 */
export function unlessAborted<Result>(
  signal: AbortSignal | undefined,
  work: Promise<Result>,
  reason: () => unknown,
): Promise<Result> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stopFollowing = onAbort(signal, () => reject(reason()));
    work.then(resolve, reject).finally(stopFollowing);
  });
}

/** {@link unlessAborted} for many pieces of work. */
export interface Cutoff {
  unlessCut<Result>(work: Promise<Result>, reason: () => unknown): Promise<Result>;
  /** Stops following the signal. */
  release(): void;
}

/**
 * Follows a long-lived signal once; relay/pacing/wake-up.ts has the cost of following it for each
 * piece of work.
 */
export function createCutoff(signal: AbortSignal): Cutoff {
  const waiting = new Set<() => void>();
  const release = onAbort(signal, () => {
    for (const fail of waiting) fail();
  });
  return {
    release,
    unlessCut: (work, reason) =>
      new Promise((resolve, reject) => {
        const fail = (): void => reject(reason());
        if (signal.aborted) fail();
        waiting.add(fail);
        work.then(
          (result) => {
            waiting.delete(fail);
            resolve(result);
          },
          (error: unknown) => {
            waiting.delete(fail);
            reject(error);
          },
        );
      }),
  };
}

/** A signal that follows others. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts this signal only. */
  abort(reason: unknown): void;
  /** Removes the listeners from the others; must be called after the work. */
  release(): void;
}

/**
 * Aborted, with the same reason, when one of the given signals is.
 *
 * `AbortSignal.any` stays attached to its sources until garbage collection. Measured on Node 20
 * with one long-lived stop signal and 100,000 successive links: 1,057 ms of CPU and 126 MB of heap
 * until collected, against 56 ms and 1 MB here.
 */
export function linkSignals(...signals: readonly (AbortSignal | undefined)[]): LinkedSignal {
  const controller = new AbortController();
  const follows: (() => void)[] = [];

  function release(): void {
    for (const stop of follows) stop();
    follows.length = 0;
  }

  function abort(reason: unknown): void {
    release();
    controller.abort(reason);
  }

  for (const signal of signals) {
    if (controller.signal.aborted) break;
    follows.push(onAbort(signal, abort));
  }
  return { signal: controller.signal, abort, release };
}
