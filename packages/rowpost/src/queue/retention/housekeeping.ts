/**
 * What running consumers do for their topic, one of them once an hour: the tables of the next month
 * are made ahead, and months past the retention are dropped.
 */
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { RetentionOutcome } from "./retention.ts";
import type { RetentionStore } from "./store.ts";

export interface HousekeepingOptions {
  readonly topic: string;
  readonly store: Pick<RetentionStore, "elect">;
  readonly prepareMonths: () => Promise<void>;
  readonly applyRetention: () => Promise<readonly RetentionOutcome[]>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const EVERY_MS = 3_600_000;
/** How often each of them asks whether an hour is over. */
const ASK_MS = 600_000;

/** Runs until the signal is aborted; it is waited for by nobody, and never rejects. */
export async function keepHouse(options: HousekeepingOptions, signal: AbortSignal): Promise<void> {
  const { topic, store, clock, logger } = options;
  while (!signal.aborted) {
    try {
      if (await store.elect(topic, EVERY_MS)) {
        await options.prepareMonths();
        for (const { month, dropped, problem } of await options.applyRetention()) {
          if (dropped !== undefined) logger.info("a month was dropped", { ...dropped });
          else logger.warn("a month past its retention is still there", { topic, month, problem });
        }
      }
    } catch (error) {
      if (!signal.aborted) logger.warn("housekeeping of the queue failed", { topic, error });
    }
    await clock.sleep(ASK_MS, signal);
  }
}
