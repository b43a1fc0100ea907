/** Statements of consumers' reports; what they mean stands in confirmation-writer.ts. */
import type { Statement } from "../../transactions/executor.ts";
import type { UnknownStatements } from "./unknown-statements.ts";

/** Type and key of a message. */
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
 * They run on handles of the user's, which may make camelCase of column names: aliases are of one
 * word. Lists are in the order in which rows are locked.
 */
export interface ConfirmStatements extends UnknownStatements {
  /**
   * The short way: `consumed`, for those of these identities that may become so. Absent where the
   * identities could not be compared byte for byte, or found by their index.
   */
  readonly confirmIdentities?: ((identities: readonly Identity[]) => Statement) | undefined;
  /**
   * Locks the messages of these identities, as the collation of the columns compares. Aliases: id,
   * messagetype, messagekey, state, deliverycount. `archive`: the rows there, the oldest first.
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
  /** Who has confirmed which; what stands there already stays. */
  addConfirmations(rows: readonly ConfirmedBy[]): Statement;
  /** Aliases: id, consumer. Reads what is committed now, whatever the transaction saw before. */
  readConfirmations(ids: readonly string[]): Statement;
  /** Deletes what was confirmed that long ago, the oldest first. On a session of ours. */
  forgetConfirmations(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
}
