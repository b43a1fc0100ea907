/** Limits a scan in rows and bytes, adapting to bodies and database. */
import { grouped } from "../../runtime/grouped.ts";
import type { ScannedMessage } from "../store.ts";

/** Rows of the first scan: few, because body sizes are unknown. */
const FIRST_SCAN = 64;
/** Approximate body bytes of one scan. */
const SCAN_BYTES = 16 * 1_048_576;
/**
 * Most body bytes read separately at once, except a single larger one; other messages wait for that
 * read. With 16 MiB the p99 of a topic beside bodies of 1 MB was 400 ms (PostgreSQL).
 */
const READ_BYTES = 4 * 1_048_576;
/** Divisor of the next scan after one that failed. */
const LESS = 4;
/** Topics whose body sizes are remembered. */
const MOST_TOPICS = 256;

export interface ScanBudget {
  /** Rows to request: of all topics, or of one of several that share a scan. */
  rows(room: number, of?: { readonly topic: string; readonly sharers: number }): number;
  /** Larger bodies, in bytes, are read separately. */
  bodyLimit(rows: number): number;
  readonly bytes: number;
  returned(rows: readonly Pick<ScannedMessage, "bodyBytes" | "topic">[]): void;
  /** After a slow or failed scan the next one is smaller. */
  failed(): void;
}

export function createScanBudget(batchSize: number): ScanBudget {
  let ramp = Math.min(FIRST_SCAN, batchSize);
  let less = 1;
  let averageBytes = 1;
  /**
   * By topic: large bodies of one topic shrank all scans to one row, and 50 small messages beside
   * 24 of 12 MB took 6.6 s (MariaDB).
   */
  const averages = new Map<string, number>();

  const next = (average: number, rows: readonly { readonly bodyBytes: number }[]): number => {
    const sum = rows.reduce((bytes, { bodyBytes }) => bytes + bodyBytes, 0);
    return Math.max(1, sum / rows.length, average * 0.9);
  };

  return {
    rows(room, of) {
      const sharers = of?.sharers ?? 1;
      const average = (of && averages.get(of.topic)) ?? averageBytes;
      return Math.max(1, Math.min(Math.ceil(ramp / sharers), room, Math.floor(SCAN_BYTES / less / sharers / average)));
    },
    bodyLimit: (rows) => Math.floor(SCAN_BYTES / less / rows),
    get bytes() {
      return Math.floor(READ_BYTES / less);
    },
    returned(rows) {
      if (rows.length > 0) averageBytes = next(averageBytes, rows);
      for (const [topic, found] of grouped(rows, (row) => row.topic)) {
        const average = next(averages.get(topic) ?? 1, found);
        averages.delete(topic);
        averages.set(topic, average);
        if (averages.size > MOST_TOPICS) averages.delete([...averages.keys()][0] ?? "");
      }
      ramp = Math.min(batchSize, ramp * 2);
      less = Math.max(1, less / 2);
    },
    failed() {
      ramp = Math.max(1, Math.floor(ramp / LESS));
      less = Math.min(READ_BYTES, less * LESS);
    },
  };
}
