/**
 * The doorbell inside one process: whoever has committed messages rings, relays here look at once.
 */
import type { Doorbell } from "../database.ts";

/** Makes a doorbell. A listener that throws does not keep the others from hearing. */
export function createDoorbell(): Doorbell {
  const listeners = new Set<() => void>();
  return {
    ring() {
      for (const listener of [...listeners]) {
        try {
          listener();
        } catch {
          // A wake-up is a hint; whoever enqueued has committed and must not see an error of a
          // relay.
        }
      }
    },
    subscribe(listener) {
      // A function of its own for each subscription: the same listener may subscribe twice.
      const entry = (): void => listener();
      listeners.add(entry);
      return () => {
        listeners.delete(entry);
      };
    },
  };
}
