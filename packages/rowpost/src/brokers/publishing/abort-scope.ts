/** The end of a publish call: one listener on each signal for any number of requests. */
import { onAbort } from "../../runtime/abort.ts";

export type Ending = "deadline" | "closed";

export interface AbortScope {
  readonly aborted: boolean;
  readonly ending: Ending | undefined;
  /** Adds a callback, run at once if already aborted. Returns a function that removes it. */
  onAbort(cancel: () => void): () => void;
  abort(): void;
  end(): void;
}

export interface AbortSources {
  readonly deadline?: AbortSignal | undefined;
  readonly closing?: AbortSignal | undefined;
}

export function createAbortScope({ deadline, closing }: AbortSources = {}): AbortScope {
  const cancels = new Set<() => void>();
  let isAborted = false;
  const abort = (): void => {
    isAborted = true;
    const running = [...cancels];
    cancels.clear();
    for (const cancel of running) cancel();
  };
  const follows = [onAbort(deadline, abort), onAbort(closing, abort)];
  const scope: AbortScope = {
    get aborted() {
      return scope.ending !== undefined;
    },
    get ending() {
      // Reads the signals themselves: another call's listener may run first and make room for this
      // one.
      if (closing?.aborted === true) return "closed";
      if (deadline?.aborted === true) return "deadline";
      return isAborted ? "closed" : undefined;
    },
    onAbort(cancel) {
      if (isAborted) cancel();
      else cancels.add(cancel);
      return () => {
        cancels.delete(cancel);
      };
    },
    abort,
    end() {
      cancels.clear();
      for (const stop of follows) stop();
    },
  };
  return scope;
}

/** Runs once on abort, at once if already aborted. Returns a function that stops following. */
export function follow(by: AbortScope | AbortSignal, run: () => void): () => void {
  return by instanceof AbortSignal ? onAbort(by, run) : by.onAbort(run);
}

/** The value, or undefined once aborted. The work goes on and its result is dropped. */
export function orAborted<Value>(work: Promise<Value>, by: AbortScope | AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const stopFollowing = follow(by, () => resolve(undefined));
    work.finally(stopFollowing).then(resolve, reject);
  });
}
