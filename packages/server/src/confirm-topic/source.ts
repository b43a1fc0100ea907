import type { Database, Logger } from "rowpost";
import type { Consumption } from "rowpost/consume";
import type { CommonOptions, ConsumePlace } from "../consumers/place.ts";
import type { TakeReports } from "./reports.ts";

/** Location of the confirmations; the relays of one message table share its group. */
export interface ConfirmSource extends ConsumePlace {
  readonly label: string;
}

export interface SourceParts {
  readonly database: Database;
  readonly logger: Logger;
  readonly take: TakeReports;
}

export type OpenSource = (source: ConfirmSource, parts: SourceParts) => Promise<Consumption>;

/**
 * A duplicate confirmation is harmless, so there is no inbox and no order; it is retried until it
 * is written.
 */
export function consumeOptions({ logger, take }: SourceParts): CommonOptions {
  return {
    inbox: "none",
    // For log lines; the body says what it confirms.
    identity: () => ({ type: "confirmation", key: "-" }),
    orderBy: () => undefined,
    handler: (message) => take(message.text()),
    retry: { maxAttempts: Number.POSITIVE_INFINITY },
    concurrency: AT_ONCE,
    logger,
  };
}

const AT_ONCE = 100;
