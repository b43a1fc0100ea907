/**
 * Detects a database clock set back by hours, by hand or a fail-over: retries would wait for hours.
 * The holder of shard 0 compares it with its monotonic clock and brings forward messages that wait
 * longer than any backoff. A step while no relay runs is not found.
 */
import type { RelaySettings } from "../options.ts";
import type { HousekeepingStore } from "../store.ts";

/** A smaller step may be a clock being corrected gradually. */
const STEP_MS = 5_000;
/** Rows of one statement, a millisecond apart. */
const BATCH = 500;
/** A million rows, so that repeated encounters do not keep it running. */
const MOST_BATCHES = 2_000;

export interface SteppedClockOptions {
  readonly housekeeping: Pick<HousekeepingStore, "shortenWaits" | "clockMs">;
  readonly settings: Pick<RelaySettings, "clock" | "logger" | "longestBackoffMs">;
}

/** Returns the number of messages brought forward. */
export function createSteppedClock({ housekeeping, settings }: SteppedClockOptions): () => Promise<number> {
  const { clock, logger, longestBackoffMs } = settings;
  /** Smallest lead of the database's clock at the last look. */
  let leastAheadMs: number | undefined;
  /** Steps whose rows are still waiting. */
  let steppedMs = 0;

  return async () => {
    const askedAtMs = clock.monotonicMs();
    const databaseMs = await housekeeping.clockMs();
    // A late answer makes the clock look ahead, never back.
    const mostAheadMs = databaseMs - askedAtMs;
    if (leastAheadMs !== undefined && leastAheadMs - mostAheadMs > STEP_MS) steppedMs += leastAheadMs - mostAheadMs;
    leastAheadMs = databaseMs - clock.monotonicMs();
    if (steppedMs === 0) return 0;
    let broughtForward = 0;
    for (let batch = 0; batch < MOST_BATCHES; batch += 1) {
      const count = await housekeeping.shortenWaits({ beyondMs: longestBackoffMs, limit: BATCH, stepMs: 1 });
      broughtForward += count;
      if (count < BATCH) break;
    }
    logger.warn("the database's clock was set back", { byMs: Math.round(steppedMs), broughtForward });
    steppedMs = 0;
    return broughtForward;
  };
}
