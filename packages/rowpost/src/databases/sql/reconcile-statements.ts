/** What a dialect supplies for reconciling. Nothing here locks, and no statement reads a body. */
import type { Statement } from "../../transactions/executor.ts";

/** A query of the operator's, with its times put in. */
export interface WrappedQuery {
  readonly text: string;
  /** It has the column message_type beside message_key. */
  readonly typed: boolean;
  readonly limit: number;
}

export interface ReconcileStatements {
  /**
   * Aliases: message_type (NULL unless it is typed), message_key. The query is the table of a
   * SELECT: so it can only be a SELECT itself, and every driver gives its keys as text.
   */
  userRows(query: WrappedQuery): Statement;
  /** Aliases: message_type, message_key, times. What comes more than once, byte for byte. */
  repeatedRows(query: WrappedQuery): Statement;
  /**
   * Aliases: message_type, message_key as stored, of the rows with this type and one of these keys,
   * as the collation of the columns compares. One look into the index for each key.
   */
  existing(request: { readonly type: string; readonly keys: readonly string[]; readonly archived: boolean }): Statement;
  /** An instant of the message table's clock as a literal, from milliseconds since the epoch. */
  instant(epochMs: number): string;
  /** The same from the text of a wall clock, `2026-11-23 18:00:00.000`. */
  wallClock(text: string): string;
  /** What is no code in a query: texts, quoted names, comments. The pattern is sticky. */
  readonly opaque: RegExp;
}
