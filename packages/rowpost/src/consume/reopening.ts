/**
 * Reopens a connection whenever it ends, until the consumer closes. The caller gets the error of
 * the first opening.
 */
import { untilAborted } from "../runtime/abort.ts";
import { LONGEST_RETRY_MS, retryPauseMs } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import { withDeadline } from "../runtime/deadline.ts";
import type { Logger } from "../runtime/logger.ts";

export interface Opened {
  readonly ended: Promise<unknown>;
}

interface Parts<One extends Opened> {
  readonly open: () => Promise<One>;
  /** Longest time for an opening. Default: no limit. */
  readonly openWithinMs?: number | undefined;
  /** For a connection that opens when it is no longer wanted. */
  readonly discard: (one: One) => Promise<void>;
  readonly closing: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly what: string;
}

export interface Reopening<One extends Opened> {
  current(): One;
}

/** Rejects if the first opening fails. */
export async function reopening<One extends Opened>(parts: Parts<One>): Promise<Reopening<One>> {
  const { clock, closing, logger, what } = parts;
  let current = await openInTime(parts);

  async function keepOpen(): Promise<void> {
    for (let failures = 0; !closing.aborted; ) {
      const error = failures === 0 ? await Promise.race([current.ended, aborted(closing)]) : undefined;
      if (closing.aborted) return;
      if (failures === 0) {
        logger.warn("a consumer lost its connection and opens another one", { what, error });
        // It may end as soon as it is open, for example on a message that the client cannot read.
        await clock.sleep(LONGEST_RETRY_MS, closing);
        if (closing.aborted) return;
      }
      try {
        const next = await openInTime(parts);
        // The close did not wait for it, because a silent server may take for ever.
        if (closing.aborted) return await parts.discard(next);
        current = next;
        failures = 0;
      } catch (refused) {
        failures += 1;
        if (failures === 1)
          logger.error("a consumer cannot open its connection; it goes on trying", { what, error: refused });
        await clock.sleep(retryPauseMs(failures), closing);
      }
    }
  }

  void keepOpen();
  return { current: () => current };
}

/** A client may wait for ever for a server that accepts and stays silent. */
async function openInTime<One extends Opened>({ discard, open, openWithinMs, what }: Parts<One>): Promise<One> {
  if (openWithinMs === undefined) return await open();
  const opening = open();
  try {
    return await withDeadline(() => opening, { what: `opening ${what}`, ms: openWithinMs });
  } catch (error) {
    // A connection that opens late would consume beside the next one.
    void opening.then(discard).catch(() => undefined);
    throw error;
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return untilAborted(signal).then(() => undefined);
}
