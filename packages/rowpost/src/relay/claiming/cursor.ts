/**
 * Position of the next scan, and the share of its two branches: due rows, and rows without a time,
 * by id.
 *
 * The position spares the database rows just shown (delete-marked index entries of claimed rows,
 * excluded rows). It is valid for one sweep: ids become visible out of order, so a sweep restarts
 * at least once a second (rule: bounded-scan).
 */
import type { Clock } from "../../runtime/clock.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import type { ScannedMessage } from "../store.ts";

const SWEEP_MS = 1_000;
/**
 * Shortest interval between restarts for a freed key, whose next messages lie behind the position:
 * a hot key must not wait out the second, nor keep the sweep from passing its backlog.
 */
const KEY_RESTART_MS = 100;

/**
 * Most due rows of other shards to read past. They precede ours while their relay cannot send them,
 * and the due branch has no position.
 */
const MOST_FOREIGN = 20_000;

/** Rounds to a power of two: each limit in a statement's text is prepared anew. */
function roundedUp(rows: number): number {
  return Math.min(MOST_FOREIGN, 2 ** Math.ceil(Math.log2(Math.max(1, rows))));
}

export interface Branches {
  readonly immediateLimit: number;
  readonly dueLimit: number;
}

export interface CursorScan extends Branches {
  readonly afterId: string;
  /** See `ScanRequest`. */
  readonly foreignDue: number;
}

export interface Cursor {
  /** Next part of a scan with room for `most` rows, plus those `beyond` that are passed over. */
  ask(most: number, beyond: Branches): CursorScan;
  /**
   * Takes the result of that scan. The position stops before a row whose body was left out.
   * `shards`: those scanned; absent: all.
   */
  returned(
    rows: readonly Pick<ScannedMessage, "id" | "due" | "body" | "shard">[],
    asked: CursorScan,
    shards?: readonly number[],
  ): void;
  readonly atStart: boolean;
  /** Reached the end of the rows without a time. */
  readonly complete: boolean;
  /** Returned as many due rows as requested. */
  readonly dueFull: boolean;
  /** Returned as many rows of either kind as requested. */
  readonly full: boolean;
  /** A message with an ordering key left the window. */
  keyFreed(): void;
  restart(): void;
}

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
      // Each branch has a share, so that neither starves.
      const quarter = Math.ceil(most / 4);
      const dueLimit = dueFull ? (immediateFull ? Math.ceil(most / 2) : most) : quarter;
      const immediateLimit = dueFull ? Math.max(1, immediateFull ? most - dueLimit : quarter) : most;
      // Expensive: once a second, unless the last one found something.
      const isFar = foreignDue > 0 && clock.monotonicMs() - lookedFarMs >= SWEEP_MS;
      if (isFar) lookedFarMs = clock.monotonicMs();
      return {
        afterId,
        foreignDue: isFar ? foreignDue : 0,
        dueLimit: dueLimit + beyond.dueLimit,
        // Later in a sweep the position is past these rows.
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
