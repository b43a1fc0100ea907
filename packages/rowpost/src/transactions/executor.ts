/**
 * The port by which enqueue runs a statement in a user's open transaction. The files of this folder
 * recognize drivers and ORMs by the shape of the handle, without importing them.
 */

/**
 * One statement in the dialect's own placeholder style (`?` for MySQL and SQLite, `$1` for
 * PostgreSQL).
 */
export interface Statement {
  /** Stable name: key of prepared statements, of query budgets and of the EXPLAIN tests. */
  readonly name: string;
  /** SQL with the placeholders of its dialect. */
  readonly text: string;
  /**
   * Numbers, strings, null, Uint8Array, and for PostgreSQL arrays of them. Never a JS Date, since
   * drivers disagree on zones.
   */
  readonly params: readonly unknown[];
}

/** Result of a statement. */
export interface QueryResult {
  /** Rows as objects by column alias; empty for statements that return none. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows matched, not only changed, by an INSERT, UPDATE or DELETE. */
  readonly affected: number;
}

/** A user's open transaction. */
export interface Executor {
  /** Kind of handle, such as `mysql2` or `kysely`, for error texts. */
  readonly kind: string;
  /** The user's handle, if any: the same object for each call on it. */
  readonly handle?: object | undefined;
  /** Runs one statement. */
  run(statement: Statement): Promise<QueryResult>;
  /**
   * Same as `run` with an immediate result, for a synchronous handle (SQLite): between two
   * statements of one turn nothing can end the transaction.
   */
  runNow?(statement: Statement): QueryResult;
  /**
   * Statements of one turn are sent without waiting for answers. One sent after the end of the
   * transaction may never get an answer (postgres.js).
   */
  readonly pipelines?: boolean;
  /**
   * Whether the connection is in a transaction. A plain answer is free and holds for a statement
   * passed in the same turn: the driver knows and sends in call order, or the INSERT checks itself
   * (MariaDB). A promise took a round trip (MySQL 8 and 9), and the next statement must check
   * again. `undefined`: only a mark can tell (PostgreSQL). Absent: rowpost's own transaction.
   */
  inTransaction?(): boolean | undefined | Promise<boolean>;
  /** Asks PostgreSQL in one round trip, for callers that leave no mark. */
  askServer?(): Promise<boolean>;
  /**
   * Runs `work` behind a savepoint, which is released afterwards, or rolled back to when it throws.
   * For handles that send SAVEPOINT in a form that the server refuses; `inner` is the handle to use
   * meanwhile. Absent: SAVEPOINT runs like any statement.
   */
  behindSavepoint?<T>(work: (inner: unknown) => Promise<T>): Promise<T>;
  /**
   * Registers a call of this transaction, so that COMMIT is refused while it is unfinished. Absent
   * if the COMMIT is not ours.
   */
  watch?<T>(call: Promise<T>): Promise<T>;
}

/**
 * The open transaction that `outbox.transaction` passes to its callback, with a `query` for the
 * user's own statements.
 */
export interface Transaction extends Executor {
  /**
   * Error of the last failed statement, cleared by the next success; of several in a row, the
   * first. PostgreSQL refuses later statements even if it was caught.
   */
  readonly failure?: unknown;
  /**
   * Runs a user's statement in this transaction. Throws `TransactionLostError` once the transaction
   * has ended by itself.
   */
  query<Row = Record<string, unknown>>(text: string, params?: readonly unknown[]): Promise<Row[]>;
}
