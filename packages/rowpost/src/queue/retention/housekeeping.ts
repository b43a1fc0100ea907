/**
 * Upkeep by consumers. Once an hour one of them makes next month's tables, drops months past the
 * retention and verifies a stretch. Every ten minutes each of them sets milestones for fast counts.
 */
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Rewinding } from "../rewinding/rewinding.ts";
import type { VerifyAnswer, VerifyOptions } from "../verifying/verify.ts";
import type { Retention } from "./dropping.ts";
import type { RetentionOutcome } from "./retention.ts";

export interface HousekeepingOptions {
  readonly topic: string;
  readonly store: Pick<Retention, "elect">;
  readonly rewinding: Pick<Rewinding, "setMilestones">;
  readonly prepareMonths: () => Promise<void>;
  readonly applyRetention: () => Promise<readonly RetentionOutcome[]>;
  readonly verify: (options: VerifyOptions) => Promise<VerifyAnswer>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const EVERY_MS = 3_600_000;
const ASK_MS = 600_000;
/** Below 0.3 % of one connection. */
const VERIFY_MS = 10_000;
/** 6 million messages on MariaDB, 30 million on PostgreSQL. */
const MILESTONES_MS = 10_000;
/** The count beside it covers all. */
const MOST_NAMED = 20;

/** Not awaited, so it never rejects. */
export async function keepHouse(options: HousekeepingOptions, signal: AbortSignal): Promise<void> {
  const { topic, store, rewinding, clock, logger } = options;
  /** Where the last turn stopped. */
  let after: VerifyOptions["after"];
  let fromMonth: number | undefined;
  while (!signal.aborted) {
    try {
      const isElected = await store.elect(topic, EVERY_MS);
      if (isElected) {
        await options.prepareMonths();
        for (const { month, dropped, problem } of await options.applyRetention()) {
          if (dropped !== undefined) logger.info("a month was dropped", { ...dropped });
          else logger.warn("a month past its retention is still there", { topic, month, problem });
        }
        const { problems, next } = await options.verify({ topic, after, timeLimitMs: VERIFY_MS });
        after = next;
        if (problems.length > 0) {
          const messages = problems.reduce((sum, each) => sum + each.messages, 0);
          logger.error("messages below a group's progress have no record", {
            topic,
            messages,
            problems: problems.slice(0, MOST_NAMED),
          });
        }
      }
      const untilMs = clock.monotonicMs() + MILESTONES_MS;
      const isOver = (): boolean => signal.aborted || clock.monotonicMs() > untilMs;
      // Past months are complete unless no milestone was ever set.
      fromMonth = await rewinding.setMilestones({ topic, fromMonth: isElected ? 0 : fromMonth, isOver });
    } catch (error) {
      if (!signal.aborted) logger.warn("housekeeping of the queue failed", { topic, error });
    }
    await clock.sleep(ASK_MS, signal);
  }
}
