import type { Logger } from "./logger.ts";
import { silentLogger } from "./logger.ts";

/** Called on its event. May be async: a rejection is logged like a throw. */
export type Listener<Payload> = (payload: Payload) => void | Promise<void>;

/** `Events` maps each event's name to its payload. */
export interface EventEmitter<Events extends object> {
  /** Returns a function that removes the listener. The same function may be added twice. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void;
  /**
   * Runs the listeners synchronously and in order. Their errors are logged and affect nothing else:
   * user code must never stop a relay.
   */
  emit<Name extends keyof Events>(name: Name, payload: Events[Name]): void;
  /** Avoids building a costly payload for none. */
  listenerCount(name: keyof Events): number;
}

/** Logs errors of listeners to `logger`. */
export function createEventEmitter<Events extends object>(
  options: { readonly logger?: Logger | undefined } = {},
): EventEmitter<Events> {
  const logger = options.logger ?? silentLogger;
  // Wrapped, so that a function can be added twice and removed once.
  const entries = new Map<keyof Events, readonly { readonly run: (payload: never) => void | Promise<void> }[]>();

  function report(name: keyof Events, error: unknown): void {
    logger.error("a listener failed", { event: String(name), error });
  }

  return {
    on(name, listener) {
      const entry = { run: listener };
      entries.set(name, [...(entries.get(name) ?? []), entry]);
      return () => {
        const left = (entries.get(name) ?? []).filter((other) => other !== entry);
        if (left.length > 0) entries.set(name, left);
        else entries.delete(name);
      };
    },
    emit(name, payload) {
      // Replaced by on and off, so a listener may remove itself or others.
      for (const entry of entries.get(name) ?? []) {
        try {
          const outcome = entry.run(payload as never);
          if (outcome instanceof Promise) outcome.catch((error: unknown) => report(name, error));
        } catch (error) {
          report(name, error);
        }
      }
    },
    listenerCount: (name) => entries.get(name)?.length ?? 0,
  };
}
