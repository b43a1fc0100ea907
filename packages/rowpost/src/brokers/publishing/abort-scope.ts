/** The end of a publish call: one listener on each signal, however many requests it has. */
import { onAbort } from "../../runtime/abort.ts";

/** Why a call ended before its time. */
export type Ending = "deadline" | "closed";

/** Something that can be aborted: a publish call, or the whole adapter. */
export interface AbortScope {
  readonly aborted: boolean;
  /** Undefined while it is not aborted. */
  readonly ending: Ending | undefined;
  /** Adds a callback; returns what takes it out again. Runs at once when aborted already. */
  onAbort(cancel: () => void): () => void;
  /** Aborts by ourselves, as closing does. */
  abort(): void;
  /** Lets the signals go; no callback runs any more. */
  end(): void;
}

/** What aborts a scope. */
export interface AbortSources {
  readonly deadline?: AbortSignal | undefined;
  readonly closing?: AbortSignal | undefined;
}

/** A scope that is aborted with one of the signals, or by its own `abort` only. */
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
      // The signals themselves: another call may be told first, and make room for this one.
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

/** Runs once when it is aborted, at once when it is already. Returns what stops following. */
export function follow(by: AbortScope | AbortSignal, run: () => void): () => void {
  return by instanceof AbortSignal ? onAbort(by, run) : by.onAbort(run);
}

/** The value, or undefined as soon as it is aborted. The work goes on, and is nobody's. */
export function orAborted<Value>(work: Promise<Value>, by: AbortScope | AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const stopFollowing = follow(by, () => resolve(undefined));
    work.finally(stopFollowing).then(resolve, reject);
  });
}
