/** The inbox port: what was handled, in a table. Implemented by databases/sql. Types only. */
import type { Executor } from "../transactions/executor.ts";

/** What goes into the row of a message that a consumer handles. */
export interface HandlingRow {
  readonly consumer: string;
  readonly type: string;
  readonly key: string;
  readonly topic: string | null;
  /** The broker's id of this copy. */
  readonly messageId: string | null;
  /** Which claim of the relay this copy comes from. */
  readonly attempt: number | null;
  readonly handledBy: string;
}

/** The handling that stands in the table already. */
export interface EarlierHandling {
  /** ISO 8601, UTC, by the database's clock. */
  readonly handledAt: string;
  readonly handledBy: string;
  readonly messageId: string | null;
  readonly attempt: number | null;
}

/** What {@link InboxStore.handlings} is about. */
export interface HandlingsRequest {
  readonly fromMs: number;
  readonly toMs: number;
  /** Undefined: of all. */
  readonly consumer: string | undefined;
}

/** A handling that stands in the table. */
export interface SeenHandling {
  readonly consumer: string;
  readonly type: string;
  readonly key: string;
  /** ISO 8601, UTC, by the database's clock. */
  readonly handledAt: string;
  readonly handledBy: string;
  readonly messageId: string | null;
}

/** Options of {@link InboxDatabase.store}. */
export interface InboxStoreOptions {
  readonly table: string;
  /** Database (MySQL), schema (PostgreSQL) or attached database (SQLite) of the table. */
  readonly schema: string | undefined;
}

export interface InboxStore {
  /**
   * Inserts the row, or resolves to the one that is there. Where another transaction has inserted
   * the same and has not ended, it waits for that one: it finds its row, or none when that was
   * rolled back.
   *
   * Throws, with nothing written: `TransactionRequiredError`, `DatabaseConflictError` (the wait
   * took too long, or a deadlock ended it), `SchemaError`, `PermissionError`, `ConfigurationError`.
   */
  record(tx: Executor, row: HandlingRow): Promise<EarlierHandling | undefined>;
  /**
   * Runs `work` in somebody else's open transaction `on`; what it did is taken back when it throws,
   * and the transaction goes on. `inner` is the handle to be used meanwhile. `depth`: how many of
   * these are open in the transaction.
   *
   * Throws `TransactionRequiredError` where there is no transaction, `TransactionLostError` when it
   * has ended meanwhile.
   */
  within<T>(tx: Executor, on: unknown, depth: number, work: (inner: unknown) => Promise<T>): Promise<T>;
  /**
   * Deletes rows older than that, at most `limit`, the oldest first; their number. In a transaction
   * of its own.
   */
  forget(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  /**
   * Calls `each` with what was handled from `fromMs` on and before `toMs` (milliseconds since the
   * epoch), in pages, the oldest first. Locks nothing, and waits for what `each` returns.
   */
  handlings(request: HandlingsRequest, each: (page: readonly SeenHandling[]) => Promise<void>): Promise<void>;
  /** Makes the table, where it is missing. What was done now. */
  migrate(): Promise<readonly string[]>;
  /** The SQL of {@link migrate}. */
  print(): string;
  /** An error of the driver as one of ours, where it means one; anything else as it is. */
  meaning(error: unknown, what: string): unknown;
  /**
   * Did the driver's error end a wait that took too long, so that the next try would wait as long?
   */
  isWaitOver(error: unknown): boolean;
}

/** What the inbox needs of a database. */
export interface InboxDatabase {
  store(options: InboxStoreOptions): InboxStore;
}
