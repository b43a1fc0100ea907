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
  /** SQL with the placeholders of its dialect. */
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
  /** The user's handle, where this is made of one: the same for each call on it. */
  readonly handle?: object | undefined;
  /** Runs one statement. */
  run(statement: Statement): Promise<QueryResult>;
  /**
   * The same with its result at once, where the user's handle is synchronous (SQLite): between two
   * statements of one turn nothing ends the transaction.
   */
  runNow?(statement: Statement): QueryResult;
  /**
   * Statements of one turn are sent one behind the other without waiting for answers, and what
   * comes behind the end of the transaction may never get one (postgres.js).
   */
  readonly pipelines?: boolean;
  /**
   * Whether the connection is in a transaction. A plain answer is free and holds for a statement
   * that is handed over in the same turn: the driver knows, and sends in the order of the calls, or
   * the INSERT checks for itself (MariaDB). A promise took a round trip (MySQL 8 and 9), and the
   * statement right behind it has to see that nothing ended the transaction since. `undefined`:
   * only a mark in the transaction can tell (PostgreSQL). Absent: a transaction of rowpost's own,
   * which knows by itself when it has ended.
   */
  inTransaction?(): boolean | undefined | Promise<boolean>;
  /** Asks PostgreSQL, in one round trip, on behalf of callers that leave no mark. */
  askServer?(): Promise<boolean>;
  /**
   * Runs `work` behind a savepoint, which is released when it is done and gone back to when it
   * throws: where the handle sends its statements in a way in which the server takes no SAVEPOINT.
   * `inner` is the handle to be used meanwhile. Absent: SAVEPOINT can be run like any statement.
   */
  behindSavepoint?<T>(work: (inner: unknown) => Promise<T>): Promise<T>;
  /**
   * Takes note of a call that belongs to this transaction: the COMMIT waits for nobody, so it is
   * refused while one is unfinished. Absent where the COMMIT is not ours.
   */
  watch?<T>(call: Promise<T>): Promise<T>;
}

/**
 * What `outbox.transaction` hands to its callback: an open transaction, with a plain `query` for
 * the user's own statements.
 */
export interface Transaction extends Executor {
  /**
   * What the database said to a statement that failed, until one succeeds again; of several in a
   * row, to the first. PostgreSQL refuses those behind it, also where the error was caught.
   */
  readonly failure?: unknown;
  /**
   * Runs a statement of the user's in this transaction. Throws `TransactionLostError` once the
   * transaction has ended by itself.
   */
  query<Row = Record<string, unknown>>(text: string, params?: readonly unknown[]): Promise<Row[]>;
}
