/**
 * What a dialect supplies for the inbox. Aliases without an underscore: these run on handles of the
 * user's, which may make camelCase of column names.
 */
import type { HandlingRow, HandlingsRequest, SeenHandling } from "../../inbox/store.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { TableLayout } from "./layout.ts";
import type { EnqueueStatements, SchemaStatements, TransactionCheck } from "./statements.ts";

export interface InboxStatements extends Pick<EnqueueStatements, "markTransaction"> {
  /**
   * Inserts nothing outside of the transaction, where the engine can tell. One row comes back, or
   * one is affected; where the identity is there already none, or an error that `isDuplicate`
   * knows.
   */
  record(row: HandlingRow, check: TransactionCheck): Statement;
  /**
   * Rows: handledat (ISO), handledby, messageid, attempt of this identity, as committed now. With a
   * mark there is a row of NULLs when it is another transaction.
   */
  readHandling(row: HandlingRow, check: TransactionCheck): Statement;
  /** By the index on the time. */
  forgetHandlings(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
  /**
   * Aliases: consumer, type, key, handledat (ISO), handledby, messageid. The oldest first, behind
   * `after`. By the index on the time; no lock.
   */
  readHandlings(
    request: HandlingsRequest & { readonly after: SeenHandling | undefined; readonly limit: number },
  ): Statement;
  readonly schema: SchemaStatements;
}

/** What a dialect brings to the inbox. */
export interface InboxDialect {
  createStatements(layout: TableLayout): InboxStatements;
  /** An error of the driver as one of ours, where it means one; anything else as it is. */
  translateError(error: unknown, statement: string): unknown;
  /** Is this a conflict because a lock was waited for too long, and not a deadlock? */
  isWaitOver(error: unknown): boolean;
  /** Is this the answer to a SAVEPOINT that stands in no transaction, or to its end after that? */
  isSavepointGone(error: unknown): boolean;
  /** A SAVEPOINT outside of a transaction begins one, which nobody would end. */
  readonly savepointBegins?: boolean | undefined;
}
