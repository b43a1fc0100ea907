/**
 * One sweep over the waiting messages: the id after which the next scan goes on. It only spares the database from walking again over rows
 * that it has just shown (claimed rows leave delete-marked index entries behind; excluded ones fill the batch). It is a hint within one sweep,
 * never a position: ids become visible out of order, so every sweep begins again from the start, at least once a second (rule R12).
 */
import type { Clock } from "../runtime/clock.ts";
import { compareIds } from "./row-id.ts";

/** A sweep older than this starts over with the next scan. */
export const SWEEP_MS = 1_000;

export interface Sweep {
  readonly afterId: string;
  /** Tells what a scan returned: `lastId` of its immediate branch, and whether that branch was full. */
  advance(scan: { readonly lastId: string | undefined; readonly full: boolean }): void;
  /** True right after a scan that reached the end. */
  readonly complete: boolean;
  restart(): void;
}

/** Makes a sweep at its start. */
export function createSweep(clock: Clock): Sweep {
  let afterId = "0";
  let startedMs = clock.monotonicMs();
  let complete = false;

  function restart(): void {
    afterId = "0";
    startedMs = clock.monotonicMs();
  }

  return {
    get afterId() {
      return afterId;
    },
    get complete() {
      return complete;
    },
    restart,
    advance({ lastId, full }) {
      complete = !full;
      if (!full || lastId === undefined || clock.monotonicMs() - startedMs >= SWEEP_MS) restart();
      else if (compareIds(lastId, afterId) > 0) afterId = lastId;
    },
  };
}
