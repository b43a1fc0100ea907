/** How many rows a scan asks for, from each of its two branches. Pure bookkeeping. */
import type { ScannedMessage } from "./relay-store.ts";

/** Rows asked for by the first scan: small, because nothing is known yet of the size of the bodies. */
const FIRST_SCAN = 64;
/** Bytes of bodies that one scan should return at most: with a full window of four batches about 64 MB stay in memory. */
const SCAN_BYTES = 16 * 1_048_576;

/** Limits of the two branches of one scan. */
export interface ScanLimits {
  readonly immediateLimit: number;
  readonly dueLimit: number;
}

export interface ScanSize {
  /** Limits for a scan with this much room; `beyond`: rows of each branch that will be passed over, and are asked for on top. */
  limits(room: number, beyond: ScanLimits): ScanLimits;
  returned(rows: readonly ScannedMessage[], limits: ScanLimits): void;
  /** The due branch of the last scan was full. */
  readonly dueFull: boolean;
  /** Rows that the last scan asked for. */
  readonly last: number;
}

/** Makes the bookkeeping; it begins small and doubles up to the batch size. */
export function createScanSize(batchSize: number): ScanSize {
  let ramp = Math.min(FIRST_SCAN, batchSize);
  let averageBytes = 1;
  let dueFull = false;
  let immediateFull = false;
  let last = 0;
  return {
    limits(room, beyond) {
      const byBytes = Math.max(1, Math.floor(SCAN_BYTES / averageBytes));
      const most = Math.max(1, Math.min(ramp, room, byBytes));
      // Each branch has its share so that neither starves; a branch that was not full leaves its share to the other.
      const quarter = Math.ceil(most / 4);
      const dueLimit = dueFull ? (immediateFull ? Math.ceil(most / 2) : most) : quarter;
      const immediateLimit = dueFull ? Math.max(1, immediateFull ? most - dueLimit : quarter) : most;
      last = dueLimit + immediateLimit;
      return {
        dueLimit: dueLimit + beyond.dueLimit,
        immediateLimit: immediateLimit + beyond.immediateLimit,
      };
    },
    returned(rows, limits) {
      let due = 0;
      let characters = 0;
      for (const row of rows) {
        if (row.due) due += 1;
        characters += row.body.length;
      }
      dueFull = due >= limits.dueLimit;
      immediateFull = rows.length - due >= limits.immediateLimit;
      if (rows.length > 0) averageBytes = Math.max(1, characters / rows.length, averageBytes * 0.9);
      ramp = Math.min(batchSize, ramp * 2);
    },
    get dueFull() {
      return dueFull;
    },
    get last() {
      return last;
    },
  };
}
