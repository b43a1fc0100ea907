/**
 * The window in slices that fit into memory: what a query or the table has of one is read whole,
 * within one state of the database, and long windows are many short transactions.
 */
import type { Window } from "./store.ts";

/** A slice has more than fits; nothing of it was told. */
export class TooMuchError extends Error {}

/** Two slices of a second cannot be told apart in a column of whole seconds. */
const SHORTEST_MS = 2_000;

/**
 * Calls `work` for each slice, in the order of time. The first is the whole window; after a
 * {@link TooMuchError} it is halved. `mayFail`: false where it cannot be halved again.
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
      // Whole seconds, so that columns of whole seconds are cut where the window is.
      lengthMs = Math.max(SHORTEST_MS, Math.ceil(lengthMs / 2_000) * 1_000);
      continue;
    }
    placeMs = slice.toMs;
  }
}
