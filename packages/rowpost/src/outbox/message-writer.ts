/** The enqueue port: writes messages in a user's transaction. Implemented by databases/sql. */
import type { Executor } from "../transactions/executor.ts";

/** A message as it goes into the table: checked, encoded, nothing left to interpret. */
export interface EncodedMessage {
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  /** Text of the message_body column (JSON, text, or base64). */
  readonly body: string;
  /** JSON object of strings, or null. */
  readonly headers: string | null;
  /** Null = the column's default, application/json. A binary body ends in `;base64`. */
  readonly contentType: string | null;
  readonly orderingKey: string | null;
  /** Milliseconds from the database's now; null = at once. */
  readonly delayMs: number | null;
  /** Epoch milliseconds, compared with the database's clock; null = at once. At most one of the two. */
  readonly deliverAtMs: number | null;
  readonly createdBy: string;
}

/** What became of each message of a call, in its order. */
export type EnqueueStatus = "enqueued" | "duplicate";

export interface MessageWriter {
  /**
   * Inserts all messages with one statement. `duplicates: "throw"`: a (type, key) that is there already makes the call fail with
   * `DuplicateMessageError`; no row of the call stays and the transaction is usable. `"ignore"`: it is reported as `duplicate`; but when the
   * stored identity differs in bytes (a folding collation), the call throws all the same (rule R7).
   * Throws `TransactionRequiredError`, with nothing left behind, when the handle is in no transaction.
   */
  insert(tx: Executor, messages: readonly EncodedMessage[], options: { readonly duplicates: "throw" | "ignore" }): Promise<EnqueueStatus[]>;
}
