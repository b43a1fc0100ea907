/** Statements of confirmations whose message is unknown; what they mean: confirmation-writer.ts. */
import type { Statement } from "../../transactions/executor.ts";

/** What consumers have said of one message, once or several times. */
export interface UnknownRow {
  readonly type: string;
  readonly key: string;
  /** "" of a consumer without a name. */
  readonly consumer: string;
  /** Why it could not be handled; null: it was consumed. */
  readonly reason: string | null;
  readonly times: number;
}

/** `countUnknown` and `keepUnknown` run on handles of the user's, the others on our sessions. */
export interface UnknownStatements {
  /** Alias: kept. How many there are, counted to `most`. */
  countUnknown(most: number): Statement;
  /** Adds them, or to those that are there; each identity and consumer once, in one order. */
  keepUnknown(rows: readonly UnknownRow[]): Statement;
  /** Deletes what was last said that long ago, the oldest first. */
  forgetUnknown(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
}
