/**
 * Consumers' reports about their messages (已消费), and the port that writes them. Implemented by
 * databases/sql.
 */
import type { Executor } from "../transactions/executor.ts";

/** A consumer's report that it consumed a message or failed to. */
export interface Confirmation {
  /** First part of the identity, from the header `rowpost-type`. */
  readonly type: string;
  /** Second part, from the header `rowpost-key`. */
  readonly key: string;
  /**
   * The reporting consumer. Required where the message type names its consumers: the message is
   * consumed once all have confirmed.
   */
  readonly consumer?: string | undefined;
  /**
   * Set when the consumer gave up: the reason. The message's deadline comes at once: it is resent,
   * fails, or is only reported, according to its type's `confirm.onTimeout`.
   */
  readonly error?: string | undefined;
  /**
   * With `error`: the failed attempt, from the header `rowpost-attempt`. A report about an earlier
   * attempt changes nothing. Default: the current one.
   */
  readonly attempt?: number | undefined;
}

/**
 * Result of a report. `consumed`: the message is consumed, now or already. `waiting`: other
 * consumers have yet to confirm. `reported`: the failure is stored for a relay to act on.
 * `outdated`: a failure of a message that is not `sent`, or was resent since; nothing changed.
 * `unknown`: the message is neither in the table nor in its archive; the report is kept for a week.
 */
export type ConfirmationStatus = "consumed" | "waiting" | "reported" | "outdated" | "unknown";

/** Result of a {@link Confirmation}. */
export interface ConfirmationResult {
  /** Result of the report. */
  readonly status: ConfirmationStatus;
  /** With `waiting`: the consumers that have not confirmed. */
  readonly waitingFor?: readonly string[] | undefined;
  /**
   * With `unknown`, in a transaction of `outbox.confirm`'s own: whether the report is kept for
   * `rowpost confirm --unknown`. False: 10,000 are kept, or the write failed. In your transaction
   * nothing is kept.
   */
  readonly kept?: boolean | undefined;
}

/** A checked report, with the consumers of its message type. */
export interface CheckedConfirmation extends Confirmation {
  /** Undefined: any confirmation counts. */
  readonly consumers: readonly string[] | undefined;
}

/** Port of `outbox.confirm`. */
export interface ConfirmationWriter {
  /**
   * Writes the reports in an open transaction; one result for each, in order. Locks the messages
   * until it ends, before reading anything about them (rule: confirmation). Throws
   * `TransactionRequiredError`, and `DatabaseConflictError` when the server ended the transaction.
   */
  confirm(tx: Executor, confirmations: readonly CheckedConfirmation[]): Promise<ConfirmationResult[]>;
  /**
   * Keeps reports about missing messages, in an open transaction. False: the limit is reached and
   * these are not kept.
   */
  keepUnknown(tx: Executor, confirmations: readonly CheckedConfirmation[]): Promise<boolean>;
}
