/** The enqueue port: writes messages in a user's transaction. Implemented by databases/sql. */
import type { EncodedMessage } from "../message/encode.ts";
import type { Executor } from "../transactions/executor.ts";

export type { EncodedMessage };

/** What became of each message of a call, in its order. */
export type EnqueueStatus = "enqueued" | "duplicate";

/** One call of enqueue. */
export interface EnqueueCall {
  /**
   * Inserts all messages with one statement. `duplicates: "throw"`: a (type, key) that is there
   * already makes the call fail with `DuplicateMessageError`; no row of the call stays and the
   * transaction is usable (on MySQL 8 and 9 it holds up other inserts until it ends). `"ignore"`:
   * it is reported as `duplicate`; but when the stored identity differs in bytes (a folding
   * collation), the call throws all the same (rule: exact-bytes). Throws
   * `TransactionRequiredError`, with nothing left behind, when the handle is in no transaction.
   */
  insert(
    messages: readonly EncodedMessage[],
    options: { readonly duplicates: "throw" | "ignore" },
  ): Promise<EnqueueStatus[]>;
  /**
   * Deletes messages that this transaction has inserted, of a call that failed with `error` at a
   * later statement. Where the server has rolled the transaction back, nothing is deleted: on MySQL
   * the statement would be committed alone, and would take away what somebody else has written
   * under the same identity meanwhile.
   */
  undo(messages: readonly EncodedMessage[], error: unknown): Promise<void>;
}

export interface MessageWriter {
  /**
   * Ties a call to the transaction that is open now: nothing of it is written in another one, or in
   * none, however late its statements are sent. `later`: the first of them is not sent in this turn
   * of the program.
   */
  begin(tx: Executor, options: { readonly later: boolean }): EnqueueCall;
  /** A call of one statement. */
  insert(tx: Executor, ...call: Parameters<EnqueueCall["insert"]>): ReturnType<EnqueueCall["insert"]>;
}
