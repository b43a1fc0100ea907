/**
 * The database port of the outbox, the relay and the tools, implemented by `rowpost/mysql`,
 * `rowpost/mariadb`, `rowpost/postgres` and `rowpost/sqlite`. Types only.
 */

import type { AlertStore } from "../admin/alerts.ts";
import type { DoctorStore } from "../admin/doctor/store.ts";
import type { MessageAdmin } from "../admin/message-admin.ts";
import type { OperationsStore } from "../admin/operations.ts";
import type { ReconcileStore } from "../admin/reconcile/store.ts";
import type { InboxDatabase } from "../inbox/store.ts";
import type { ConfirmationWriter } from "../outbox/confirmations.ts";
import type { MessageWriter } from "../outbox/message-writer.ts";
import type { QueueStore } from "../queue/store.ts";
import type { RelayStore } from "../relay/store.ts";
import type { Executor, QueryResult, Statement, Transaction } from "../transactions/executor.ts";
import type { Words } from "./sql/cold.ts";
import type { TableLayout } from "./sql/layout.ts";
import type { QueueStatements } from "./sql/queue/statements.ts";
import type { SchemaStatements } from "./sql/statements.ts";

export type { TableLayout };

/** SQL family. MariaDB and MySQL share statements. */
export type DialectName = "mysql" | "postgres" | "sqlite";

/**
 * Purpose of a {@link Session}. Relay sessions get a short lock wait, UTC (unless the layout uses
 * the session's clock) and READ COMMITTED.
 */
export type SessionPurpose = "relay" | "lease" | "tool" | "listen";

/** Options of {@link Database.connect}. */
export interface SessionOptions {
  /** Purpose of the session; decides settings and time-outs. */
  readonly purpose: SessionPurpose;
  /** Owner, for people: in `application_name` on PostgreSQL, `program_name` on MySQL. */
  readonly of?: "consumer" | undefined;
  /**
   * A statement without an answer after this long fails with `DatabaseUnavailableError` and ends
   * the session. Default 30,000.
   */
  readonly statementTimeoutMs?: number;
  /**
   * The server also stops a statement after `statementTimeoutMs`, and the session lives on. MySQL
   * stops only SELECTs, PostgreSQL always stops statements, SQLite never. Default false.
   */
  readonly stopsOnServer?: boolean;
  /**
   * Longest wait for a row lock. Must stay below a quarter of the lease (rule: takeover-fence).
   * Default 3,000.
   */
  readonly lockWaitTimeoutMs?: number;
  /**
   * `SET time_zone`: "utc" for layouts with a UTC clock, "server" keeps the server's own zone.
   * Default "utc".
   */
  readonly clock?: "utc" | "server";
  /**
   * Each transaction reads one snapshot with all its statements, and writes nothing. Default false.
   */
  readonly snapshot?: boolean;
  /**
   * When aborted, the connection is cut at once. Pending statements fail and may have taken effect.
   */
  readonly signal?: AbortSignal | undefined;
  /** Called once when the session dies by a lost connection, a time-out or `abandon`. */
  readonly onLost?: () => void;
}

/**
 * One connection of rowpost's own. Statements run in sequence; outside `transaction` each commits
 * by itself.
 */
export interface Session {
  /** Product with the server's version, for logs and error texts. */
  readonly server: { readonly product: "mariadb" | "mysql" | "postgres" | "sqlite"; readonly version: string };
  /** Runs one statement. */
  run(statement: Statement): Promise<QueryResult>;
  /**
   * BEGIN, `work`, COMMIT; ROLLBACK and rethrow if it throws. A COMMIT that the server turned into
   * a rollback is a `TransactionLostError`.
   */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>;
  /**
   * Ends the connection by KILL or pg_terminate_backend, and resolves once no statement of this
   * session can take effect any more (rule: claim-token). Rejects if the server cannot be asked;
   * call it again then.
   */
  abandon(): Promise<void>;
  /** Closes gracefully; cuts the connection after half a second. */
  close(): Promise<void>;
  /**
   * Name of a lock that the server holds until this session has ended and none of its statements
   * can take effect (rule: session-lock). New with each session. Undefined unless the purpose is
   * `lease`, and where not everyone sees the lock.
   */
  readonly lock: string | undefined;
  /** Those of these locks of other sessions that are free. */
  freeLocks(locks: readonly string[]): Promise<string[]>;
  /**
   * True once the connection is lost, timed out or closed. A dead session is replaced, not revived.
   */
  readonly dead: boolean;
}

/**
 * Hint that there is something to relay, also across processes where the engine supports it. A lost
 * hint costs only latency.
 */
export interface Doorbell<News = undefined> {
  /** Rings for relays in this process; `news` is what is known already. */
  ring(news?: News): void;
  /**
   * Calls `listener` on each ring from this process, or from the engine once `listen` is on.
   * Returns a function that unsubscribes.
   */
  subscribe(listener: (news?: News) => void): () => void;
}

/** A committed append: the partition has its messages up to this id. */
export interface AppendNews {
  readonly topic: string;
  readonly lastId: string;
}

/** The message table to work on. */
export interface StoreOptions {
  readonly layout: TableLayout;
}

/** Scope of a relay. */
export interface RelayStoreScope extends StoreOptions {
  /** Patterns of the topics to take. Default: every topic. */
  readonly topics?: readonly string[] | undefined;
}

/** Scope of an operator's tool. */
export interface ToolOptions extends StoreOptions {
  /**
   * A statement without an answer after this long fails, and the server stops it too. Default
   * 30,000.
   */
  readonly statementTimeoutMs?: number | undefined;
}

/** Connections and statements for the queue. */
export interface QueueSql extends Pick<Database, "connect"> {
  /** The engine's syntax for shared statements. */
  readonly words: Words;
  /** Statements written for each engine. */
  readonly statements: QueueStatements;
  /** All sessions are one handle. */
  readonly sharedSession: boolean | undefined;
  readonly isTableMissing: (error: unknown) => boolean;
  /** Whether the database refuses such a row. */
  readonly isRowRefused: (error: unknown) => boolean;
  /**
   * The letter that the database's encoding lacks, if the error says so; "" if it does not name it.
   */
  readonly lackedLetter?: ((error: unknown) => string | undefined) | undefined;
}

/** What the message queue needs of a database. */
export interface QueueDatabase {
  /** Rings after an append. */
  readonly doorbell: Doorbell<AppendNews>;
  /** PostgreSQL: LISTENs for appends of other processes. Elsewhere undefined: poll. */
  listen(): Promise<{ close(): Promise<void> } | undefined>;
  store(): QueueStore;
  /** For the queue's work beside appends and consumers. */
  readonly sql: QueueSql;
}

/** A database for rowpost. */
export interface Database {
  /** SQL family of its statements. */
  readonly dialect: DialectName;
  /** For logs: scheme, host, port and database, never a password. */
  readonly label: string;
  /** Opens a connection of rowpost's own. */
  connect(options: SessionOptions): Promise<Session>;
  /** Layout of a table that `rowpost migrate` makes: the default of an outbox or a relay. */
  readonly defaultLayout: TableLayout;
  /**
   * Begins, runs `work`, commits; rolls back on a throw. Runs on this object's pool or handle, or
   * on `on`, another one of the same engine.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, on?: unknown): Promise<T>;
  /** Most connections of the pool of `transaction`; undefined: unlimited, or unknown. */
  poolSize(): Promise<number | undefined>;
  /**
   * A user's open transaction (driver or ORM handle) as an executor. Throws
   * `TransactionRequiredError` for anything else.
   */
  executor(handle: unknown): Executor;
  /** Wakes relays of this process. */
  readonly doorbell: Doorbell;
  /**
   * PostgreSQL: LISTENs on the channel of this table and rings the doorbell, until the signal.
   * Elsewhere resolves to undefined: poll.
   */
  listen(layout: TableLayout, signal?: AbortSignal): Promise<{ close(): Promise<void> } | undefined>;
  /** Migrations and their checks, for `migrate` (databases/sql/migrate.ts) and `rowpost doctor`. */
  schema(options: StoreOptions): SchemaStatements;
  /** The port of `createOutbox`. */
  messageWriter(options: StoreOptions): MessageWriter;
  /** The port of `outbox.confirm`. */
  confirmationWriter(options: StoreOptions): ConfirmationWriter;
  /** The port of `createRelay`. */
  relayStore(options: RelayStoreScope): RelayStore;
  /** Views of messages and changes by hand. */
  messageAdmin(options: ToolOptions): MessageAdmin;
  /** Console sessions, the audit, and the size of the table. */
  operations(options: ToolOptions): OperationsStore;
  /** The port of `examine`. */
  doctor(options: StoreOptions): DoctorStore;
  /** Current alerts with their start, sent notices, and silences. */
  alerts(options: ToolOptions): AlertStore;
  /** The port of `reconcile`. */
  reconcileStore(options: StoreOptions): ReconcileStore;
  /** For the message queue stored in SQL. */
  readonly queue: QueueDatabase;
  /** For messages that consumers have handled. */
  readonly inbox: InboxDatabase;
  /** Closes what this object opened; a pool or handle from the user stays open. */
  close(): Promise<void>;
}
