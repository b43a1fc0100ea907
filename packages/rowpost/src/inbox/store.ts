/** Inbox port: the table of handled messages. Implemented by databases/sql. Types only. */
import type { Executor } from "../transactions/executor.ts";

/** Row of a message that a consumer handles. */
export interface HandlingRow {
  readonly consumer: string;
  readonly type: string;
  readonly key: string;
  readonly topic: string | null;
  /** The broker's id of this copy. */
  readonly messageId: string | null;
  /** The relay's claim that produced this copy. */
  readonly attempt: number | null;
  readonly handledBy: string;
}

/** The handling already in the table. */
export interface EarlierHandling {
  /** ISO 8601, UTC, by the database's clock. */
  readonly handledAt: string;
  readonly handledBy: string;
  readonly messageId: string | null;
  readonly attempt: number | null;
}

/** Range of {@link InboxStore.handlings}. */
export interface HandlingsRequest {
  readonly fromMs: number;
  readonly toMs: number;
  /** Undefined: all. */
  readonly consumer: string | undefined;
}

/** A handling from the table. */
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
   * Inserts the row, or resolves to the existing one. Waits for an open transaction that inserted
   * the same.
   *
   * Throws, with nothing written: `TransactionRequiredError`, `DatabaseConflictError` (the wait
   * took too long or ended in a deadlock), `SchemaError`, `PermissionError`, `ConfigurationError`.
   */
  record(tx: Executor, row: HandlingRow): Promise<EarlierHandling | undefined>;
  /**
   * Runs `work` with the handle `inner` in the caller's transaction `on`. A throw undoes its
   * writes, and the transaction continues. `depth` counts the open ones.
   *
   * Throws `TransactionRequiredError` without a transaction, `TransactionLostError` when it ended
   * meanwhile.
   */
  within<T>(tx: Executor, on: unknown, depth: number, work: (inner: unknown) => Promise<T>): Promise<T>;
  /** Oldest first, in its own transaction; returns their number. */
  forget(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  /**
   * Handlings from `fromMs` to before `toMs` (epoch ms), in pages, oldest first. Locks nothing, and
   * awaits `each`.
   */
  handlings(request: HandlingsRequest, each: (page: readonly SeenHandling[]) => Promise<void>): Promise<void>;
  /** Creates the table if it is missing. Returns what it did. */
  migrate(): Promise<readonly string[]>;
  /** SQL of {@link migrate}. */
  print(): string;
  /** Returns unknown errors unchanged. */
  meaning(error: unknown, what: string): unknown;
  /** A retry would wait as long. */
  isWaitOver(error: unknown): boolean;
}

export interface InboxDatabase {
  store(options: InboxStoreOptions): InboxStore;
}
