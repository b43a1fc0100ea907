/**
 * What consumers report of the messages that they got (已消费), and the port that writes it.
 * Implemented by databases/sql.
 */
import type { Executor } from "../transactions/executor.ts";

/** One report of a consumer: it has consumed a message, or could not. */
export interface Confirmation {
  /** First part of the message's identity: what its header `rowpost-type` says. */
  readonly type: string;
  /** Second part: `rowpost-key`. */
  readonly key: string;
  /**
   * Who reports. Needed where the message type names its consumers: the message is consumed when
   * all of them have confirmed it.
   */
  readonly consumer?: string | undefined;
  /**
   * Present: the consumer could not handle it and has given up, and this is why. The deadline of
   * the message comes at once: it is sent again, fails, or is only told of, as its type's
   * `confirm.onTimeout` says.
   */
  readonly error?: string | undefined;
  /**
   * With `error`: the attempt that was not handled, from the header `rowpost-attempt`. A report
   * about an earlier one changes nothing. Absent: it is about the present one.
   */
  readonly attempt?: number | undefined;
}

/**
 * What became of a report. `consumed`: the message is consumed, now or already. `waiting`: other
 * consumers still have to confirm it. `reported`: the failure is written, and a relay acts on it.
 * `outdated`: a failure of a message that is not `sent`, or was sent again since; nothing was
 * changed. `unknown`: there is no such message, neither in the table nor in its archive; what was
 * said is kept for a week.
 */
export type ConfirmationStatus = "consumed" | "waiting" | "reported" | "outdated" | "unknown";

/** What {@link Confirmation} led to. */
export interface ConfirmationResult {
  /** What became of it. */
  readonly status: ConfirmationStatus;
  /** With `waiting`: the consumers that have not confirmed it. */
  readonly waitingFor?: readonly string[] | undefined;
  /**
   * With `unknown`, in a transaction of `outbox.confirm`'s own: is it kept for `rowpost confirm
   * --unknown`? false: 10,000 are, or it could not be written. In your transaction nothing is kept.
   */
  readonly kept?: boolean | undefined;
}

/** A checked report, with the consumers that its message type names. */
export interface CheckedConfirmation extends Confirmation {
  /** Undefined: any confirmation will do. */
  readonly consumers: readonly string[] | undefined;
}

/** The port of `outbox.confirm`. */
export interface ConfirmationWriter {
  /**
   * Writes the reports in an open transaction; one result for each, in order. The messages are
   * locked until it ends, before anything about them is read (rule: confirmation). Throws
   * `TransactionRequiredError`, and a `DatabaseConflictError` where the server ended the
   * transaction.
   */
  confirm(tx: Executor, confirmations: readonly CheckedConfirmation[]): Promise<ConfirmationResult[]>;
  /**
   * Keeps what was said of messages that are not there, in an open transaction. False: so many are
   * kept that these are not.
   */
  keepUnknown(tx: Executor, confirmations: readonly CheckedConfirmation[]): Promise<boolean>;
}
