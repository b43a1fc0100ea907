/**
 * Where the next scan goes on, and how it divides its rows between the two branches: rows whose
 * time has come, and rows without a time, by id.
 *
 * The place only spares the database from walking again over rows that it has just shown (claimed
 * rows leave delete-marked index entries behind; excluded ones fill the batch). It is a hint within
 * one sweep, never a position: ids become visible out of order, so every sweep begins again from
 * the start, at least once a second (rule: bounded-scan).
 */
import type { Clock } from "../../runtime/clock.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import type { ScannedMessage } from "../store.ts";

/** A sweep older than this starts over with the next scan. */
const SWEEP_MS = 1_000;
/**
 * A key that became free starts the sweep over, but not more often than this: its next messages lie
 * behind the place reached, and a hot key must neither wait for the rest of the second nor keep the
 * sweep from ever reaching what lies behind its backlog.
 */
const KEY_RESTART_MS = 100;

/** Rows of each branch. */
export interface Branches {
  readonly immediateLimit: number;
  readonly dueLimit: number;
}

/** What a scan is asked for. */
export interface CursorScan extends Branches {
  readonly afterId: string;
}

export interface Cursor {
  /**
   * Part of a scan with room for `most` rows; `beyond`: known to be passed over, asked for on top.
   */
  ask(most: number, beyond: Branches): CursorScan;
  /** Tells what that scan returned. It does not go on past a row whose body is still to be read. */
  returned(rows: readonly Pick<ScannedMessage, "id" | "due" | "body">[], asked: CursorScan): void;
  /** It begins at the start. */
  readonly atStart: boolean;
  /** The last scan reached the end of the rows without a time. */
  readonly complete: boolean;
  /** It brought as many due rows as it asked for. */
  readonly dueFull: boolean;
  /** It brought as many rows of either kind as it asked for. */
  readonly full: boolean;
  /** A message with an ordering key left the window. */
  keyFreed(): void;
  restart(): void;
}

/** Makes a cursor at the start. */
export function createCursor(clock: Clock): Cursor {
  let afterId = "0";
  let startedMs = clock.monotonicMs();
  let freed = false;
  let dueFull = false;
  let immediateFull = false;

  function restart(): void {
    afterId = "0";
    startedMs = clock.monotonicMs();
    freed = false;
  }

  return {
    restart,
    get atStart() {
      return afterId === "0";
    },
    get complete() {
      return !immediateFull;
    },
    get dueFull() {
      return dueFull;
    },
    get full() {
      return dueFull || immediateFull;
    },
    keyFreed() {
      freed = true;
    },
    ask(most, beyond) {
      if (freed && clock.monotonicMs() - startedMs >= KEY_RESTART_MS) restart();
      // Each branch has its share so that neither starves; a branch that was not full leaves its
      // share to the other.
      const quarter = Math.ceil(most / 4);
      const dueLimit = dueFull ? (immediateFull ? Math.ceil(most / 2) : most) : quarter;
      const immediateLimit = dueFull ? Math.max(1, immediateFull ? most - dueLimit : quarter) : most;
      return {
        afterId,
        dueLimit: dueLimit + beyond.dueLimit,
        // Later in a sweep its place lies behind what is to be passed over.
        immediateLimit: immediateLimit + (afterId === "0" ? beyond.immediateLimit : 0),
      };
    },
    returned(rows, asked) {
      const immediate = rows.filter(({ due }) => !due);
      const unread = immediate.findIndex(({ body }) => body === null);
      const lastId = immediate[unread < 0 ? immediate.length - 1 : unread - 1]?.id;
      dueFull = rows.length - immediate.length >= asked.dueLimit;
      immediateFull = immediate.length >= asked.immediateLimit;
      const isOver = !immediateFull || clock.monotonicMs() - startedMs >= SWEEP_MS;
      if (isOver || lastId === undefined) restart();
      else if (compareIds(lastId, afterId) > 0) afterId = lastId;
    },
  };
}
