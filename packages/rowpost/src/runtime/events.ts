import type { Logger } from "./logger.ts";
import { silentLogger } from "./logger.ts";

/** Runs when its event happens. May be async: a rejection is logged like a throw. */
export type Listener<Payload> = (payload: Payload) => void | Promise<void>;

/** Typed events: `Events` maps each event's name to its payload. */
export interface EventEmitter<Events extends object> {
  /**
   * Adds a listener and returns the function that takes it off again (fine to call twice). The same
   * function may be added twice.
   */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void;
  /**
   * Runs the listeners of the event, in the order in which they were added, before it returns. A
   * listener that throws or rejects is logged and changes nothing for the others or for the caller:
   * what a user does on an event must never stop a relay.
   */
  emit<Name extends keyof Events>(name: Name, payload: Events[Name]): void;
  /** Number of listeners, so that a payload which is costly to build is built only for somebody. */
  listenerCount(name: keyof Events): number;
}

/** Makes an emitter. Errors of listeners go to `logger`. */
export function createEventEmitter<Events extends object>(
  options: { readonly logger?: Logger | undefined } = {},
): EventEmitter<Events> {
  const logger = options.logger ?? silentLogger;
  // Each entry is one `on`, wrapped, so that adding a function twice and taking one of them off
  // does what it says.
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
      // The array is replaced, never changed, by on and off: a listener may take itself or others
      // off while it runs.
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
