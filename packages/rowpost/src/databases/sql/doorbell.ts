/** The doorbell within a process: rung after a commit, heard by its relays. */
import type { Doorbell } from "../database.ts";

/** A listener that throws does not keep the others from hearing. */
export function createDoorbell<News = undefined>(): Doorbell<News> {
  const listeners = new Set<(news?: News) => void>();
  return {
    ring(news) {
      for (const listener of [...listeners]) {
        try {
          listener(news);
        } catch {
          // A ring is a hint: an enqueue that has committed must not see a relay's error.
        }
      }
    },
    subscribe(listener) {
      // One function per subscription, because the same listener may subscribe twice.
      const entry = (news?: News): void => listener(news);
      listeners.add(entry);
      return () => {
        listeners.delete(entry);
      };
    },
  };
}
