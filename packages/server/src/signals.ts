/** Stop requests for a long-running command: SIGTERM, SIGINT, or a closed standard output. */

/** What {@link watchSignals} gives back. */
export interface SignalWatch {
  /** Aborted by the first signal; its reason is the signal's name, or {@link OUTPUT_CLOSED}. */
  readonly signal: AbortSignal;
  end(): void;
}

/** The reader of standard output has gone (`rowpost relay --broker stdout: | head`). */
export const OUTPUT_CLOSED = "standard output was closed";

/** No SIGHUP, since a handler would defeat nohup. */
const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/**
 * Watches until `end`. A second signal ends the process at once with exit code 1, after `onSecond`.
 */
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
  const closed = (): void => controller.abort(OUTPUT_CLOSED);
  process.stdout.on("error", closed);
  return {
    signal: controller.signal,
    end() {
      for (const { name, handler } of handlers) process.off(name, handler);
      process.stdout.off("error", closed);
    },
  };
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
