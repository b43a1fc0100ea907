/** How much one scan may bring, in rows and in bytes. Adapts to the bodies and to the database. */
import type { ScannedMessage } from "../store.ts";

/** Rows asked for by the first scan: small, because nothing is known yet of the bodies. */
const FIRST_SCAN = 64;
/** Bytes of bodies that come along with the rows of a scan, about at most. */
const SCAN_BYTES = 16 * 1_048_576;
/**
 * Bytes of bodies that are read by themselves at once, but for a single larger one: the others wait
 * for that read. With 16 MiB the p99 of a topic beside bodies of 1 MB was 400 ms (PostgreSQL).
 */
const READ_BYTES = 4 * 1_048_576;
/** After a scan that failed, the next one asks for this part of it. */
const LESS = 4;

export interface ScanBudget {
  /** Rows to ask for, given this much room. */
  rows(room: number): number;
  /**
   * Bodies of more bytes than this are read by themselves: so many rows, and each could be as long.
   */
  bodyLimit(rows: number): number;
  /** Bytes of bodies that may be read by themselves. */
  readonly bytes: number;
  returned(rows: readonly Pick<ScannedMessage, "bodyBytes">[]): void;
  /** A scan took too long, or failed: repeated unchanged, it might do so for ever. */
  failed(): void;
}

/** Begins small and doubles up to the batch size. */
export function createScanBudget(batchSize: number): ScanBudget {
  let ramp = Math.min(FIRST_SCAN, batchSize);
  let less = 1;
  let averageBytes = 1;
  return {
    rows: (room) => Math.max(1, Math.min(ramp, room, Math.floor(SCAN_BYTES / less / averageBytes))),
    bodyLimit: (rows) => Math.floor(SCAN_BYTES / less / rows),
    get bytes() {
      return Math.floor(READ_BYTES / less);
    },
    returned(rows) {
      let sum = 0;
      for (const { bodyBytes } of rows) sum += bodyBytes;
      if (rows.length > 0) averageBytes = Math.max(1, sum / rows.length, averageBytes * 0.9);
      ramp = Math.min(batchSize, ramp * 2);
      less = Math.max(1, less / 2);
    },
    failed() {
      ramp = Math.max(1, Math.floor(ramp / LESS));
      less = Math.min(READ_BYTES, less * LESS);
    },
  };
}
