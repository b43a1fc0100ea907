/**
 * The only thing that enqueue needs of a user's open transaction: run one statement in it. Raw
 * drivers and ORMs are brought to this shape by the files of this folder, told by the shape of the
 * handle, with no import of the driver or ORM.
 */

/**
 * One statement in the dialect's own placeholder style (`?` for MySQL and SQLite, `$1` for
 * PostgreSQL).
 */
export interface Statement {
  /** Stable name: key of prepared statements, of query budgets and of the EXPLAIN tests. */
  readonly name: string;
  readonly text: string;
  /**
   * Numbers, strings, null, Uint8Array, and for PostgreSQL arrays of them. Never a JS Date (drivers
   * disagree on zones).
   */
  readonly params: readonly unknown[];
}

/** What a statement did. */
export interface QueryResult {
  /** Rows as objects by column alias; empty for statements that return none. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows matched (not only changed) by an INSERT, UPDATE or DELETE. */
  readonly affected: number;
}

/** A user's open transaction. */
export interface Executor {
  /** How the handle was recognized, such as `mysql2`, `kysely`; for error texts. */
  readonly kind: string;
  run(statement: Statement): Promise<QueryResult>;
  /**
   * Whether the connection is in a transaction at this moment. Asked before an INSERT that cannot
   * check it in SQL (MySQL 8 and 9, SQLite); free where the driver knows, else one round trip. True
   * without a question where the INSERT checks for itself (MariaDB, PostgreSQL). Absent: a
   * transaction of rowpost's own, which knows by itself when it has ended.
   */
  inTransaction?(): Promise<boolean>;
  /**
   * Takes note of a call that belongs to this transaction: the COMMIT waits for nobody, so it is
   * refused while one is unfinished. Absent where the COMMIT is not ours.
   */
  watch?<T>(call: Promise<T>): Promise<T>;
}

/**
 * What `outbox.transaction` hands to its callback: an {@link Executor} with a plain `query` for the
 * user's own statements.
 */
export interface Transaction extends Executor {
  /**
   * Runs a statement of the user's in this transaction. Throws `TransactionLostError` once the
   * transaction has ended by itself.
   */
  query<Row = Record<string, unknown>>(text: string, params?: readonly unknown[]): Promise<Row[]>;
}
