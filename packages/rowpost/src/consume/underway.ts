/**
 * How many deliveries are under way, for a loop that waits until one has settled. A
 * `Promise.race` of them would leave a reaction on each one that it waits for: 31 MB for 100,000
 * messages that pass by one that is stuck.
 */
import { untilAborted } from "../runtime/abort.ts";

/** Deliveries of one loop. */
export interface Underway {
  readonly size: number;
  /** Until it has settled; it must not reject. */
  add(settled: Promise<unknown>): void;
  /** Aborted when one has settled, or at `wake`: the same one for all who ask until then. */
  change(): AbortSignal;
  /** For what else its loop waits for. */
  readonly wake: () => void;
  /** Resolves when there is none. */
  none(): Promise<void>;
}

export function createUnderway(): Underway {
  let size = 0;
  let changing: AbortController | undefined;

  function wake(): void {
    const changed = changing;
    changing = undefined;
    changed?.abort();
  }

  function change(): AbortSignal {
    changing ??= new AbortController();
    return changing.signal;
  }

  return {
    get size() {
      return size;
    },
    add(settled) {
      size += 1;
      void settled.then(() => {
        size -= 1;
        wake();
      });
    },
    change,
    wake,
    async none() {
      while (size > 0) await untilAborted(change());
    },
  };
}
