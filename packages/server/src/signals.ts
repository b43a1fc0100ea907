/** SIGTERM and SIGINT: the first one asks for a clean stop, the second one ends the process at once. */

/** What {@link watchSignals} gives back. */
export interface SignalWatch {
  /** Aborted by the first signal; its reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Takes the handlers away. */
  end(): void;
}

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Watches until `end`. `onSecond` is called before the process ends with exit code 1. */
export function watchSignals(onSecond: (name: string) => void): SignalWatch {
  const controller = new AbortController();
  const handlers = SIGNALS.map((name) => {
    const handler = (): void => {
      if (!controller.signal.aborted) {
        controller.abort(name);
        return;
      }
      onSecond(name);
      process.exit(1);
    };
    process.on(name, handler);
    return { name, handler };
  });
  return {
    signal: controller.signal,
    end() {
      for (const { name, handler } of handlers) process.off(name, handler);
    },
  };
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
