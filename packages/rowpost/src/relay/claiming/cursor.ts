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

/**
 * Due rows of other shards that a scan reads past at most. They stand in front of ours while their
 * relay cannot send them, and the due branch has no place to go on from.
 */
const MOST_FOREIGN = 20_000;

/** To a power of two: where limits stand in the text of a statement, each is prepared anew. */
function roundedUp(rows: number): number {
  return Math.min(MOST_FOREIGN, 2 ** Math.ceil(Math.log2(Math.max(1, rows))));
}

/** Rows of each branch. */
export interface Branches {
  readonly immediateLimit: number;
  readonly dueLimit: number;
}

/** What a scan is asked for. */
export interface CursorScan extends Branches {
  readonly afterId: string;
  /** See `ScanRequest`. */
  readonly foreignDue: number;
}

export interface Cursor {
  /**
   * Part of a scan with room for `most` rows; `beyond`: known to be passed over, asked for on top.
   */
  ask(most: number, beyond: Branches): CursorScan;
  /**
   * Tells what that scan returned. It does not go on past a row whose body is still to be read.
   * `shards`: those that were asked for; absent: all.
   */
  returned(
    rows: readonly Pick<ScannedMessage, "id" | "due" | "body" | "shard">[],
    asked: CursorScan,
    shards?: readonly number[],
  ): void;
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
  let foreignDue = 0;
  let lookedFarMs = Number.NEGATIVE_INFINITY;

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
      // Far looks read much for little: once a second, unless the last one found something.
      const isFar = foreignDue > 0 && clock.monotonicMs() - lookedFarMs >= SWEEP_MS;
      if (isFar) lookedFarMs = clock.monotonicMs();
      return {
        afterId,
        foreignDue: isFar ? foreignDue : 0,
        dueLimit: dueLimit + beyond.dueLimit,
        // Later in a sweep its place lies behind what is to be passed over.
        immediateLimit: immediateLimit + (afterId === "0" ? beyond.immediateLimit : 0),
      };
    },
    returned(rows, asked, shards) {
      const immediate = rows.filter(({ due }) => !due);
      const dueCount = rows.length - immediate.length;
      const foreign = shards === undefined ? 0 : rows.filter(({ due, shard }) => due && !shards.includes(shard)).length;
      const unread = immediate.findIndex(({ body }) => body === null);
      const lastId = immediate[unread < 0 ? immediate.length - 1 : unread - 1]?.id;
      dueFull = dueCount >= asked.dueLimit;
      const isBehind = foreign === dueCount;
      if (asked.foreignDue > 0 && !isBehind) lookedFarMs = Number.NEGATIVE_INFINITY;
      if (!dueFull) foreignDue = 0;
      else if (isBehind) foreignDue = Math.max(foreignDue, roundedUp(foreign * 2));
      else if (asked.foreignDue > 0) foreignDue = roundedUp(foreign);
      immediateFull = immediate.length >= asked.immediateLimit;
      const isOver = !immediateFull || clock.monotonicMs() - startedMs >= SWEEP_MS;
      if (isOver || lastId === undefined) restart();
      else if (compareIds(lastId, afterId) > 0) afterId = lastId;
    },
  };
}
