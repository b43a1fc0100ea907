/**
 * A dialect's statements for the inbox. Single-word aliases, because users' handles may convert
 * names to camelCase.
 */
import type { HandlingRow, HandlingsRequest, SeenHandling } from "../../inbox/store.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { TableLayout } from "./layout.ts";
import type { EnqueueStatements, SchemaStatements, TransactionCheck } from "./statements.ts";

export interface InboxStatements extends Pick<EnqueueStatements, "markTransaction"> {
  /**
   * Inserts nothing outside the transaction, if the engine can tell. Returns or affects one row;
   * for an existing identity none, or an error that `isDuplicate` knows.
   */
  record(row: HandlingRow, check: TransactionCheck): Statement;
  /**
   * Rows: handledat (ISO), handledby, messageid, attempt of this identity, as committed now. With a
   * mark, returns a row of NULLs in another transaction.
   */
  readHandling(row: HandlingRow, check: TransactionCheck): Statement;
  /** Uses the index on the time. */
  forgetHandlings(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
  /**
   * Aliases: consumer, type, key, handledat (ISO), handledby, messageid. Oldest first, after
   * `after`. Uses the index on the time. No lock.
   */
  readHandlings(
    request: HandlingsRequest & { readonly after: SeenHandling | undefined; readonly limit: number },
  ): Statement;
  readonly schema: SchemaStatements;
}

export interface InboxDialect {
  createStatements(layout: TableLayout): InboxStatements;
  /** Translates a driver's error where we have one for it; returns any other unchanged. */
  translateError(error: unknown, statement: string): unknown;
  /** Whether the conflict is a lock wait time-out and not a deadlock. */
  isWaitOver(error: unknown): boolean;
  /** Whether this is the error of a SAVEPOINT, or of its release, outside a transaction. */
  isSavepointGone(error: unknown): boolean;
  /** A SAVEPOINT outside a transaction begins one that would stay open. */
  readonly savepointBegins?: boolean | undefined;
}
