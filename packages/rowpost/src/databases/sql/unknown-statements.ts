/** Statements for confirmations of unknown messages; confirmation-writer.ts explains them. */
import type { Statement } from "../../transactions/executor.ts";

export interface UnknownRow {
  readonly type: string;
  readonly key: string;
  /** "" for a consumer without a name. */
  readonly consumer: string;
  /** Why it could not be handled; null: it was consumed. */
  readonly reason: string | null;
  readonly times: number;
}

/** `countUnknown` and `keepUnknown` run on users' handles, the others on our sessions. */
export interface UnknownStatements {
  /** Alias: kept. The number of entries, counted up to `most`. */
  countUnknown(most: number): Statement;
  /** Adds or updates entries; each identity and consumer once, in one order. */
  keepUnknown(rows: readonly UnknownRow[]): Statement;
  /** Deletes entries last reported that long ago, oldest first. */
  forgetUnknown(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
}
