/** What a dialect supplies for looking at messages that wait for a confirmation. */
import type { Statement } from "../../transactions/executor.ts";

/** Each reads a bounded number of rows along an index, and locks nothing. */
export interface UnconfirmedStatements {
  /** Alias: id, of messages in `sent` with a deadline, the earliest first. */
  unconfirmed(limit: number): Statement;
  /**
   * Aliases: message_type overdue (1: its deadline has come) count, of at most `limit` messages
   * whose deadline has come and as many others.
   */
  countUnconfirmed(limit: number): Statement;
  /** Aliases: id consumer. Who has confirmed these messages. */
  confirmedBy(ids: readonly string[]): Statement;
  /** Aliases: message_type consumer, each pair once, of the last `limit` confirmations. */
  lastConsumers(limit: number): Statement;
}
