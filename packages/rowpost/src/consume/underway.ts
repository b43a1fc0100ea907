/**
 * How many deliveries are under way, for a loop that waits until one has settled. A
 * `Promise.race` of them would leave a reaction on each one that it waits for: 31 MB for 100,000
 * messages that pass by one that is stuck.
 */
import { untilAborted } from "../runtime/abort.ts";

/** Deliveries of one loop. */
export interface Underway {
  readonly size: number;
  /**
   * How many more may come. Where bodies are large, fewer than there are places: as many as the
   * largest of late leave of 32 MiB.
   */
  readonly room: number;
  /** Until it has settled; it must not reject. */
  add(settled: Promise<unknown>, bytes: number): void;
  /** Aborted when one has settled, or at `wake`: the same one for all who ask until then. */
  change(): AbortSignal;
  /** For what else its loop waits for. */
  readonly wake: () => void;
  /** Resolves when there is none. */
  none(): Promise<void>;
}

const MOST_BYTES = 32 * 1_048_576;
/** What the largest body counts for after each that comes: forgotten after some hundred. */
const FADES = 0.98;

export function createUnderway(places: number): Underway {
  let size = 0;
  let held = 0;
  let largest = 0;
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
    get room() {
      const byBytes = Math.floor((MOST_BYTES - held) / Math.max(largest, 1));
      return Math.max(size === 0 ? 1 : 0, Math.min(places - size, byBytes));
    },
    add(settled, bytes) {
      size += 1;
      held += bytes;
      largest = Math.max(bytes, largest * FADES);
      void settled.then(() => {
        size -= 1;
        held -= bytes;
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
