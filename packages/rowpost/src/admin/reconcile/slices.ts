/**
 * Cuts the window into slices that fit into memory, each read in one snapshot, so that transactions
 * stay short.
 */
import type { Window } from "./store.ts";

/** Nothing of the slice was reported. */
export class TooMuchError extends Error {}

/** A column of whole seconds cannot separate shorter ones. */
const SHORTEST_MS = 2_000;

/**
 * Calls `work` for each slice in order of time. Begins with the whole window and halves it after a
 * {@link TooMuchError}. `mayFail` is false when it cannot be halved again.
 */
export async function inSlices(
  { fromMs, toMs }: Window,
  work: (slice: Window, mayFail: boolean) => Promise<void>,
): Promise<void> {
  let lengthMs = toMs - fromMs;
  for (let placeMs = fromMs; placeMs < toMs; ) {
    const slice = { fromMs: placeMs, toMs: Math.min(toMs, placeMs + lengthMs) };
    const mayFail = lengthMs > SHORTEST_MS;
    try {
      await work(slice, mayFail);
    } catch (error) {
      if (!(error instanceof TooMuchError) || !mayFail) throw error;
      // Whole seconds, for columns of whole seconds.
      lengthMs = Math.max(SHORTEST_MS, Math.ceil(lengthMs / 2_000) * 1_000);
      continue;
    }
    placeMs = slice.toMs;
  }
}
