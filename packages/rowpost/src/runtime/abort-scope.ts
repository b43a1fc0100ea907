/** Abort handed down to whatever waits: one listener on a publish call's signal, however many requests the call has. */
import { onAbort } from "./abort.ts";

/** Something that can be aborted: a publish call, or the whole adapter. */
export interface AbortScope {
  readonly aborted: boolean;
  /** Adds a callback; returns what takes it out again. Runs at once when aborted already. */
  onAbort(cancel: () => void): () => void;
  /** Aborts by ourselves. */
  abort(): void;
  /** Lets the signal go; no callback runs any more. */
  end(): void;
}

/** A scope that is aborted with one of the signals, or by its own `abort` only. */
export function createAbortScope(...signals: readonly AbortSignal[]): AbortScope {
  const cancels = new Set<() => void>();
  let aborted = false;
  const abort = (): void => {
    aborted = true;
    const running = [...cancels];
    cancels.clear();
    for (const cancel of running) cancel();
  };
  const follows = signals.map((signal) => onAbort(signal, abort));
  return {
    get aborted() {
      return aborted;
    },
    onAbort(cancel) {
      if (aborted) cancel();
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
}

/** The value, or undefined as soon as the scope or signal is aborted. The work goes on; what comes of it then is nobody's. */
export function orAborted<Value>(work: Promise<Value>, by: AbortScope | AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => resolve(undefined);
    const stopFollowing = by instanceof AbortSignal ? onAbort(by, giveUp) : by.onAbort(giveUp);
    work.finally(stopFollowing).then(resolve, reject);
  });
}
