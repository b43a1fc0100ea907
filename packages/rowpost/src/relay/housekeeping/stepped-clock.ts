/**
 * A database clock that is set back by hours, by hand or by a fail-over to a server that is behind:
 * a retry that was to come in a minute would wait these hours. The holder of shard 0 compares it
 * with its own monotonic clock, which nobody sets, and brings forward what waits longer than any
 * backoff is. A step that nobody was there to see is not found.
 */
import type { RelaySettings } from "../options.ts";
import type { HousekeepingStore } from "../store.ts";

/** Less is not worth a change of rows, and can be the pace of a clock that is being corrected. */
const STEP_MS = 5_000;
/** Rows of one statement, a millisecond apart. */
const BATCH = 500;
/** A million rows: what is met again and again must not keep it going. */
const MOST_BATCHES = 2_000;

export interface SteppedClockOptions {
  readonly housekeeping: Pick<HousekeepingStore, "shortenWaits" | "clockMs">;
  readonly settings: Pick<RelaySettings, "clock" | "logger" | "longestBackoffMs">;
}

/** Looks at the database's clock once; how many messages came forward. */
export function createSteppedClock({ housekeeping, settings }: SteppedClockOptions): () => Promise<number> {
  const { clock, logger, longestBackoffMs } = settings;
  /** The least that the database's clock was ahead of the monotonic one at the look before. */
  let leastAheadMs: number | undefined;
  /** Steps whose rows have not come forward yet. */
  let steppedMs = 0;

  return async () => {
    const askedAtMs = clock.monotonicMs();
    const databaseMs = await housekeeping.clockMs();
    // A late answer makes it look further ahead, and never set back.
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
