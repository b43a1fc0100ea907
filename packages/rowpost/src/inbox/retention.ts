/** Deletes old handlings. */

import { checkOptions } from "../runtime/check-options.ts";
import type { Clock } from "../runtime/clock.ts";
import { ConfigurationError, DatabaseConflictError } from "../runtime/errors.ts";
import type { Logger } from "../runtime/logger.ts";
import type { InboxStore } from "./store.ts";

/** Options of {@link Inbox.keepHouse}. */
export interface KeepHouseOptions {
  /** Milliseconds between two looks. Default 10 minutes; at least 1 second. */
  readonly everyMs?: number | undefined;
}

/** A running {@link Inbox.keepHouse}. */
export interface InboxHousekeeping {
  /** Resolves after the current batch; no other one begins. */
  stop(): Promise<void>;
}

interface RetentionParts {
  readonly store: Pick<InboxStore, "forget">;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly keepMs: number;
  readonly retryWindowMs: number;
}

interface Retention {
  purge(): Promise<number>;
  keepHouse(options?: KeepHouseOptions): InboxHousekeeping;
}

/** Keeps locks short and replicas close. */
const BATCH = 500;
/** Lets others write: SQLite has one writer at a time and no queue. */
const PAUSE_MS = 5;
const EVERY_MS = 600_000;
const LEAST_EVERY_MS = 1_000;
/** Tries of a batch that conflicts with another process. */
const TRIES = 4;

export function createRetention({ store, logger, clock, keepMs, retryWindowMs }: RetentionParts): Retention {
  let isWarned = false;

  function warnOnce(): void {
    if (isWarned || keepMs >= retryWindowMs) return;
    isWarned = true;
    logger.warn("the inbox forgets messages that can still come again", { keepMs, retryWindowMs });
  }

  async function forgetBatch(): Promise<number> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await store.forget({ olderThanMs: keepMs, limit: BATCH });
      } catch (error) {
        if (attempt >= TRIES || !(error instanceof DatabaseConflictError)) throw error;
      }
    }
  }

  async function purge(signal?: AbortSignal): Promise<number> {
    warnOnce();
    let forgotten = 0;
    while (signal?.aborted !== true) {
      const count = await forgetBatch();
      forgotten += count;
      if (count < BATCH) break;
      await clock.sleep(PAUSE_MS, signal);
    }
    return forgotten;
  }

  async function repeat(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await purge(signal).then(
        (forgotten) => forgotten > 0 && logger.info("the inbox has forgotten messages", { forgotten }),
        (error: unknown) => logger.warn("housekeeping of the inbox failed", { error }),
      );
      await clock.sleep(everyMs, signal);
    }
  }

  return {
    purge: () => purge(),
    keepHouse(options = {}) {
      checkOptions("inbox.keepHouse", options, { everyMs: "number" });
      const { everyMs = EVERY_MS } = options;
      if (!Number.isSafeInteger(everyMs) || everyMs < LEAST_EVERY_MS) {
        throw new ConfigurationError(
          `inbox.keepHouse: everyMs is ${everyMs}; it must be a whole number of at least ${LEAST_EVERY_MS}`,
        );
      }
      const stopping = new AbortController();
      const running = repeat(everyMs, stopping.signal);
      return {
        async stop() {
          stopping.abort();
          await running;
        },
      };
    },
  };
}
