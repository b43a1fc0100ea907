/**
 * Reports forgotten transactions: the database keeps every row version since their begin, and scans
 * walk over them (163 ms instead of 1 ms at 300,000 messages on PostgreSQL).
 */
import type { OldTransaction } from "../../admin/doctor/diagnosis.ts";
import type { RelaySettings } from "../options.ts";
import type { HousekeepingStore } from "../store.ts";

const LOOK_EVERY_MS = 60_000;
/** A scan normally takes a few milliseconds. */
const SLOW_SCAN_MS = 100;
/** Suspects while scans are slow. */
const WHILE_SLOW = { olderThanMs: 10_000, heldTransactions: 1_000 } as const;
/** Suspects before anything is slow. */
const OTHERWISE = { olderThanMs: 300_000, heldTransactions: 100_000 } as const;
/** Reported transactions remembered. */
const MOST_TOLD = 1_000;

export interface OldTransactionsOptions {
  readonly housekeeping: Pick<HousekeepingStore, "oldTransactions">;
  readonly settings: Pick<RelaySettings, "clock" | "logger">;
}

export interface OldTransactionsWatch {
  readonly scanTook: (ms: number) => void;
  /** Returns false when the database was not asked. */
  look(): Promise<boolean>;
}

/** Asks at most once a minute, reports each transaction once. */
export function createOldTransactions({ housekeeping, settings }: OldTransactionsOptions): OldTransactionsWatch {
  const { clock, logger } = settings;
  let lastLookMs = Number.NEGATIVE_INFINITY;
  let slowestMs = 0;
  let isDenied = false;
  const told = new Map<string, number>();

  function tell(transaction: OldTransaction, scanMs: number): void {
    const { application, doing, held, kind, name, openForMs, user } = transaction;
    logger.warn("a transaction that is open for long keeps old row versions, and scans become slower", {
      [kind]: name,
      user,
      application,
      doing,
      openForMs,
      held,
      slowestScanMs: Math.round(scanMs),
    });
  }

  return {
    scanTook(ms) {
      slowestMs = Math.max(slowestMs, ms);
    },
    async look() {
      const nowMs = clock.monotonicMs();
      if (isDenied || nowMs - lastLookMs < LOOK_EVERY_MS) return false;
      lastLookMs = nowMs;
      const scanMs = slowestMs;
      slowestMs = 0;
      const found = await housekeeping.oldTransactions(scanMs > SLOW_SCAN_MS ? WHILE_SLOW : OTHERWISE);
      isDenied = found === undefined;
      for (const transaction of found ?? []) {
        const { kind, name, openForMs = 0 } = transaction;
        const before = told.get(`${kind} ${name}`);
        if (before === undefined && told.size >= MOST_TOLD) told.clear();
        told.set(`${kind} ${name}`, openForMs);
        // A younger transaction reuses the number of an ended one.
        if (before === undefined || openForMs < before) tell(transaction, scanMs);
      }
      return true;
    },
  };
}
