/** Abort handed down to whatever waits: one listener on a publish call's signal, however many requests the call has. */

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

/** A scope that is aborted with a signal, or by its own `abort` only. */
export function createAbortScope(signal?: AbortSignal): AbortScope {
  const cancels = new Set<() => void>();
  let aborted = signal?.aborted ?? false;
  const abort = (): void => {
    aborted = true;
    const running = [...cancels];
    cancels.clear();
    for (const cancel of running) cancel();
  };
  signal?.addEventListener("abort", abort, { once: true });
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
      signal?.removeEventListener("abort", abort);
    },
  };
}
