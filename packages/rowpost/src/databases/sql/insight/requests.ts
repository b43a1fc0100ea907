/** What is asked of the statements that look at messages. */
import type { MessageFilter } from "../../../admin/message-admin.ts";
import type { Statement } from "../../../transactions/executor.ts";
import type { Cold } from "../cold.ts";
import type { Row } from "../rows.ts";

/**
 * Gauges and bounded counts look at so many rows of a state: with more, a count means "at least".
 */
export const COUNTED_ROWS = 10_000;

/** Runs a statement, and returns its rows. */
export type Read = (statement: Cold | Statement) => Promise<readonly Row[]>;

/** Message ids from `lowId` to `highId`, both included; undefined = no bound on that side. */
export interface IdRange {
  readonly lowId?: string | undefined;
  readonly highId?: string | undefined;
}

/** A filter whose key has been given its types. */
export interface MessageMatch extends Omit<MessageFilter, "type"> {
  readonly types?: readonly string[] | undefined;
}

/** Ids of messages that match. */
export interface FindRequest extends IdRange {
  readonly match: MessageMatch;
  readonly archived: boolean;
  readonly newestFirst: boolean;
  readonly limit: number;
  /**
   * `ids`: along the primary key, for a range that the caller has bounded. `states`: by the index
   * on the state, for states with few rows. `names`: by ids or keys that the match names. `keys`:
   * by the index on the ordering key of unfinished rows, in the order of ids.
   */
  readonly along: "ids" | "states" | "names" | "keys";
}

/** How many keys begin like this? */
export interface KeyCount {
  readonly types: readonly string[];
  readonly keyPrefix: string;
  readonly archived: boolean;
  readonly limit: number;
}
