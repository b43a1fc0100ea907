/** Where confirmations are read, and how they are taken there. */
import type { Database, Logger } from "rowpost";
import type { Consumption } from "rowpost/consume";
import type { CommonOptions, ConsumePlace } from "../consumers/place.ts";
import type { TakeReports } from "./reports.ts";

/** Where the confirmations are; the relays of one message table share its group. */
export interface ConfirmSource extends ConsumePlace {
  /** The URL for people. */
  readonly label: string;
}

export interface SourceParts {
  readonly database: Database;
  readonly logger: Logger;
  readonly take: TakeReports;
}

/** Begins to read; throws what the broker says to that. */
export type OpenSource = (source: ConfirmSource, parts: SourceParts) => Promise<Consumption>;

/**
 * A confirmation does no harm when it comes twice, so there is no inbox; in whatever order; and it
 * is tried until it is written.
 */
export function consumeOptions({ logger, take }: SourceParts): CommonOptions {
  return {
    inbox: "none",
    // For log lines: what it confirms stands in its body.
    identity: () => ({ type: "confirmation", key: "-" }),
    orderBy: () => undefined,
    handler: (message) => take(message.text()),
    retry: { maxAttempts: Number.POSITIVE_INFINITY },
    concurrency: AT_ONCE,
    logger,
  };
}

/** Messages that wait for one write of the database. */
const AT_ONCE = 100;
