/** How much one scan may bring, in rows and in bytes. Adapts to the bodies and to the database. */
import { grouped } from "../../runtime/grouped.ts";
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
/** Topics whose bodies are known, the latest ones. */
const MOST_TOPICS = 256;

export interface ScanBudget {
  /**
   * Rows to ask for, given this much room: of all topics, or of one of several that share a scan.
   */
  rows(room: number, of?: { readonly topic: string; readonly sharers: number }): number;
  /**
   * Bodies of more bytes than this are read by themselves: so many rows, and each could be as long.
   */
  bodyLimit(rows: number): number;
  /** Bytes of bodies that may be read by themselves. */
  readonly bytes: number;
  returned(rows: readonly Pick<ScannedMessage, "bodyBytes" | "topic">[]): void;
  /** A scan took too long, or failed: repeated unchanged, it might do so for ever. */
  failed(): void;
}

/** Begins small and doubles up to the batch size. */
export function createScanBudget(batchSize: number): ScanBudget {
  let ramp = Math.min(FIRST_SCAN, batchSize);
  let less = 1;
  let averageBytes = 1;
  /**
   * By topic: large bodies of one shrank the scans of all to a row, and 50 small messages beside 24
   * of 12 MB went one by one, for 6.6 s (MariaDB).
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
