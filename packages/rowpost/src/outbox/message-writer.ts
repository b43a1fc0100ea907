/** Port of enqueue: writes messages in a user's transaction. Implemented by databases/sql. */
import type { EncodedMessage } from "../message/encode.ts";
import type { Executor } from "../transactions/executor.ts";

export type { EncodedMessage };

/** Result for each message of a call, in order. */
export type EnqueueStatus = "enqueued" | "duplicate";

/** One call of enqueue. */
export interface EnqueueCall {
  /**
   * Inserts all messages with one statement. `duplicates: "throw"`: an existing (type, key) fails
   * the call with `DuplicateMessageError`, without any of its rows and with a usable transaction
   * (on MySQL 8 and 9 it blocks other inserts until it ends). `"ignore"`: it is reported as
   * `duplicate`, but throws when the stored identity differs in bytes (a folding collation; rule:
   * exact-bytes). Throws `TransactionRequiredError`, with nothing left, when the handle is in no
   * transaction.
   */
  insert(
    messages: readonly EncodedMessage[],
    options: { readonly duplicates: "throw" | "ignore" },
  ): Promise<EnqueueStatus[]>;
  /**
   * Deletes messages inserted earlier in a call that failed with `error`, unless the server rolled
   * the transaction back: on MySQL the statement would be committed alone and remove later rows of
   * others under the same identity.
   */
  undo(messages: readonly EncodedMessage[], error: unknown): Promise<void>;
}

export interface MessageWriter {
  /**
   * Binds a call to the current transaction, however late its statements are sent. `later`: the
   * first one follows after this turn of the program.
   */
  begin(tx: Executor, options: { readonly later: boolean }): EnqueueCall;
  /** A call of one statement. */
  insert(tx: Executor, ...call: Parameters<EnqueueCall["insert"]>): ReturnType<EnqueueCall["insert"]>;
}
