/** Statements of consumers' reports; confirmation-writer.ts explains them. */
import type { Statement } from "../../transactions/executor.ts";
import type { UnknownStatements } from "./unknown-statements.ts";

export interface Identity {
  readonly type: string;
  readonly key: string;
}

/** A consumer that has confirmed the message with this id. */
export interface ConfirmedBy {
  readonly id: string;
  readonly consumer: string;
}

/**
 * Single-word aliases, because users' handles may convert names to camelCase. Lists are in lock
 * order.
 */
export interface ConfirmStatements extends UnknownStatements {
  /**
   * The fast path: `consumed` for those of these identities that may become so. Absent if
   * identities cannot be compared byte for byte or found by index.
   */
  readonly confirmIdentities?: ((identities: readonly Identity[]) => Statement) | undefined;
  /**
   * Locks the messages of these identities, compared by the columns' collation. Aliases: id,
   * messagetype, messagekey, state, deliverycount. `archive`: rows there, oldest first.
   */
  lockIdentities(identities: readonly Identity[], place: "messages" | "archive"): Statement;
  /** `consumed`, for locked rows that may become so. */
  confirmRows(ids: readonly string[]): Statement;
  /** The same for the archive's rows of these identities. */
  confirmArchived(identities: readonly Identity[]): Statement;
  /** Only a new version, for locked rows. */
  touchRows(ids: readonly string[]): Statement;
  /** Deadline and reason of locked rows in `sent`. */
  reportFailed(rows: readonly { readonly id: string; readonly reason: string }[]): Statement;
  /** Adds confirmations; existing ones stay. */
  addConfirmations(rows: readonly ConfirmedBy[]): Statement;
  /** Aliases: id, consumer. Reads committed data, whatever the transaction saw before. */
  readConfirmations(ids: readonly string[]): Statement;
  /** Deletes confirmations of that age, oldest first. Runs on our session. */
  forgetConfirmations(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
}
