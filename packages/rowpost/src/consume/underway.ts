/**
 * Counts deliveries under way, for a loop that waits until one settles. A `Promise.race` would add
 * a reaction to each pending one: 31 MB for 100,000 messages that pass a stuck one.
 */
import { untilAborted } from "../runtime/abort.ts";

export interface Underway {
  readonly size: number;
  /**
   * Room for more. Less than the free places when bodies are large: as many as fit into 32 MiB at
   * the largest recent size.
   */
  readonly room: number;
  /** Counts it until `settled`, which must not reject. */
  add(settled: Promise<unknown>, bytes: number): void;
  /** Aborted when one has settled, or at `wake`; callers share it until then. */
  change(): AbortSignal;
  readonly wake: () => void;
  none(): Promise<void>;
}

const MOST_BYTES = 32 * 1_048_576;
/** Decay of the largest size with each delivery: forgotten after some hundred. */
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
