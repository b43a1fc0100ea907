/**
 * Detects a database clock set back by hours, by hand or by a fail-over to a server that is behind:
 * a retry due in a minute would wait these hours. The holder of shard 0 compares it with its own
 * monotonic clock and brings forward messages that wait longer than any backoff. A step while no
 * relay watches is not found.
 */
import type { RelaySettings } from "../options.ts";
import type { HousekeepingStore } from "../store.ts";

/** A smaller step is not worth changing rows, and may be a clock being corrected gradually. */
const STEP_MS = 5_000;
/** Rows of one statement, a millisecond apart. */
const BATCH = 500;
/** A million rows: repeated encounters must not keep it running. */
const MOST_BATCHES = 2_000;

export interface SteppedClockOptions {
  readonly housekeeping: Pick<HousekeepingStore, "shortenWaits" | "clockMs">;
  readonly settings: Pick<RelaySettings, "clock" | "logger" | "longestBackoffMs">;
}

/** Checks the database's clock once and returns the number of messages brought forward. */
export function createSteppedClock({ housekeeping, settings }: SteppedClockOptions): () => Promise<number> {
  const { clock, logger, longestBackoffMs } = settings;
  /** Smallest lead of the database's clock over the monotonic one at the last look. */
  let leastAheadMs: number | undefined;
  /** Steps whose rows have not come forward yet. */
  let steppedMs = 0;

  return async () => {
    const askedAtMs = clock.monotonicMs();
    const databaseMs = await housekeeping.clockMs();
    // A late answer makes the clock look further ahead, never set back.
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
