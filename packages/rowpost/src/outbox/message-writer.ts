/** Port of enqueue: writes messages in a user's transaction. Implemented by databases/sql. */
import type { EncodedMessage } from "../message/encode.ts";
import type { Executor } from "../transactions/executor.ts";

export type { EncodedMessage };

/** Result for each message of a call, in order. */
export type EnqueueStatus = "enqueued" | "duplicate";

/** One call of enqueue. */
export interface EnqueueCall {
  /**
   * Inserts all messages with one statement. `duplicates: "throw"`: an existing (type, key) makes
   * the call fail with `DuplicateMessageError`; no row of the call stays and the transaction is
   * usable (on MySQL 8 and 9 it blocks other inserts until it ends). `"ignore"`: it is reported as
   * `duplicate`; but when the stored identity differs in bytes (a folding collation), the call
   * throws anyway (rule: exact-bytes). Throws `TransactionRequiredError`, with nothing left behind,
   * when the handle is in no transaction.
   */
  insert(
    messages: readonly EncodedMessage[],
    options: { readonly duplicates: "throw" | "ignore" },
  ): Promise<EnqueueStatus[]>;
  /**
   * Deletes messages inserted earlier in a call that failed with `error`. Does nothing when the
   * server rolled the transaction back: on MySQL the statement would be committed alone and remove
   * rows that others have since written under the same identity.
   */
  undo(messages: readonly EncodedMessage[], error: unknown): Promise<void>;
}

export interface MessageWriter {
  /**
   * Binds a call to the current transaction: nothing of it is written in another one, or in none,
   * however late its statements are sent. `later`: the first statement is sent after this turn of
   * the program.
   */
  begin(tx: Executor, options: { readonly later: boolean }): EnqueueCall;
  /** A call of one statement. */
  insert(tx: Executor, ...call: Parameters<EnqueueCall["insert"]>): ReturnType<EnqueueCall["insert"]>;
}
