/**
 * One sweep over the waiting messages: the id after which the next scan goes on. It only spares the database from walking again over rows
 * that it has just shown (claimed rows leave delete-marked index entries behind; excluded ones fill the batch). It is a hint within one sweep,
 * never a position: ids become visible out of order, so every sweep begins again from the start, at least once a second (rule R12).
 */
import type { Clock } from "../runtime/clock.ts";
import { compareIds } from "./row-id.ts";

/** A sweep older than this starts over with the next scan. */
const SWEEP_MS = 1_000;
/**
 * A key that became free starts the sweep over, but not more often than this: its next messages lie behind the place reached, and a hot key must
 * neither wait for the rest of the second nor keep the sweep from ever reaching what lies behind its backlog.
 */
const KEY_RESTART_MS = 100;

export interface Sweep {
  readonly afterId: string;
  /** Tells what a scan returned: `lastId` of its immediate branch, and whether that branch was full. */
  advance(scan: { readonly lastId: string | undefined; readonly full: boolean }): void;
  /** True right after a scan that reached the end. */
  readonly complete: boolean;
  /** True when nothing was claimed or passed over since this sweep began: after a complete one, nothing is left that could go now. */
  readonly clean: boolean;
  /** Rows of the last scan were claimed, or passed over although they may go soon; or rows may have become pending meanwhile. */
  touched(): void;
  /** A message with an ordering key left the window. */
  keyFreed(): void;
  /** Call before a scan: starts over when a key became free and enough time has passed. */
  begin(): void;
  restart(): void;
}

/** Makes a sweep at its start. */
export function createSweep(clock: Clock): Sweep {
  let afterId = "0";
  let startedMs = clock.monotonicMs();
  let complete = false;
  let clean = true;
  let freed = false;

  function restart(): void {
    afterId = "0";
    startedMs = clock.monotonicMs();
    freed = false;
  }

  return {
    get afterId() {
      return afterId;
    },
    get complete() {
      return complete;
    },
    get clean() {
      return clean;
    },
    touched() {
      clean = false;
    },
    keyFreed() {
      freed = true;
    },
    begin() {
      if (freed && clock.monotonicMs() - startedMs >= KEY_RESTART_MS) restart();
      if (afterId === "0") clean = true;
    },
    restart,
    advance({ lastId, full }) {
      complete = !full;
      if (!full || lastId === undefined || clock.monotonicMs() - startedMs >= SWEEP_MS) restart();
      else if (compareIds(lastId, afterId) > 0) afterId = lastId;
    },
  };
}
