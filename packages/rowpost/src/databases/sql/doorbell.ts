/**
 * The doorbell inside one process: whoever has committed messages rings, relays here look at once.
 */
import type { Doorbell } from "../database.ts";

/** Makes a doorbell. A listener that throws does not keep the others from hearing. */
export function createDoorbell<News = undefined>(): Doorbell<News> {
  const listeners = new Set<(news?: News) => void>();
  return {
    ring(news) {
      for (const listener of [...listeners]) {
        try {
          listener(news);
        } catch {
          // A wake-up is a hint; whoever enqueued has committed and must not see an error of a
          // relay.
        }
      }
    },
    subscribe(listener) {
      // A function of its own for each subscription: the same listener may subscribe twice.
      const entry = (news?: News): void => listener(news);
      listeners.add(entry);
      return () => {
        listeners.delete(entry);
      };
    },
  };
}
