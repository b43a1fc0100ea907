/**
 * The database port: what the outbox, the relay and the tools need of a database, whatever engine
 * it is. `rowpost/mysql`, `rowpost/mariadb`, `rowpost/postgres` and `rowpost/sqlite` make objects
 * of this shape. Types only.
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

/**
 * SQL family. MariaDB and MySQL share statements; what differs between them is a fact on the
 * session.
 */
export type DialectName = "mysql" | "postgres" | "sqlite";

/**
 * What a {@link Session} is opened for. Relay sessions get a short lock wait, UTC (unless the
 * layout's clock is the session's) and READ COMMITTED.
 */
export type SessionPurpose = "relay" | "lease" | "tool" | "listen";

/** Options of {@link Database.connect}. */
export interface SessionOptions {
  /** What it is for; decides settings and time-outs. */
  readonly purpose: SessionPurpose;
  /** Whose it is, for people: `application_name` on PostgreSQL, `program_name` on MySQL. */
  readonly of?: "consumer" | undefined;
  /**
   * A statement that has no answer after this long fails with `DatabaseUnavailableError`, and the
   * session is dead. Default 30,000.
   */
  readonly statementTimeoutMs?: number;
  /**
   * The server stops a statement too that takes longer than `statementTimeoutMs`, and the session
   * lives on. MySQL stops SELECTs only. PostgreSQL always does so; SQLite never. Default false.
   */
  readonly stopsOnServer?: boolean;
  /**
   * A row lock is waited for this long. Must stay below a quarter of the lease (rule:
   * takeover-fence). Default 3,000.
   */
  readonly lockWaitTimeoutMs?: number;
  /**
   * `SET time_zone`: "utc" for layouts with a UTC clock, "server" leaves the server's own zone.
   * Default "utc".
   */
  readonly clock?: "utc" | "server";
  /**
   * Each transaction sees one state of the database, the same for all of its statements, and writes
   * nothing. Default false.
   */
  readonly snapshot?: boolean;
  /**
   * Aborted: the connection is cut at once, also one that is still being made. What waits for an
   * answer fails, and may have taken effect.
   */
  readonly signal?: AbortSignal | undefined;
  /** Called once when the session dies, by a lost connection, a time-out or `abandon`. */
  readonly onLost?: () => void;
}

/**
 * One connection of rowpost's own. Statements on it run one after another; outside `transaction`
 * each commits by itself.
 */
export interface Session {
  /**
   * `mariadb`, `mysql`, `postgres`, `sqlite`, with the server's version; for logs and error texts.
   */
  readonly server: { readonly product: "mariadb" | "mysql" | "postgres" | "sqlite"; readonly version: string };
  /** Runs one statement. */
  run(statement: Statement): Promise<QueryResult>;
  /**
   * BEGIN, `work`, COMMIT; ROLLBACK and rethrow when it throws. A COMMIT that the server turned
   * into a rollback is a `TransactionLostError`.
   */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>;
  /**
   * Ends the connection and resolves only when the server has certainly stopped working for it
   * (KILL and look, pg_terminate_backend and look): after that no statement of this session can
   * still take effect (rule: claim-token). Rejects when the server cannot be asked; ask again then.
   */
  abandon(): Promise<void>;
  /** Says goodbye; cuts the connection when that takes more than half a second. */
  close(): Promise<void>;
  /**
   * Name of a lock that the server holds for this session alone, and gives up only when it has
   * ended and no statement of it can take effect any more (rule: session-lock). New with each
   * session. Undefined for a purpose other than `lease`, and where not everybody sees such a lock.
   */
  readonly lock: string | undefined;
  /** Of these locks of other sessions, those that nobody holds. */
  freeLocks(locks: readonly string[]): Promise<string[]>;
  /**
   * True once the connection is lost, timed out or closed. A dead session is replaced, not revived.
   */
  readonly dead: boolean;
}

/**
 * In-process and, where the engine has it, cross-process hint that there is something to relay.
 * Losing one costs latency only.
 */
export interface Doorbell<News = undefined> {
  /** Rings for relays in this process; `news` is what is known already. */
  ring(news?: News): void;
  /**
   * Calls `listener` on each ring (from this process, or from the engine once `listen` is on).
   * Returns the function that ends it.
   */
  subscribe(listener: (news?: News) => void): () => void;
}

/** An append that is committed: a partition of the topic has its messages up to this id. */
export interface AppendNews {
  readonly topic: string;
  readonly lastId: string;
}

/** Names of the tables that belong together. */
export interface StoreOptions {
  readonly layout: TableLayout;
}

/** What a relay works on. */
export interface RelayStoreScope extends StoreOptions {
  /** Patterns of the topics that it takes. Default: every topic. */
  readonly topics?: readonly string[] | undefined;
}

/** What a person's tool works on. */
export interface ToolOptions extends StoreOptions {
  /**
   * A statement without an answer after this long is given up, and the server stops too. Default
   * 30,000.
   */
  readonly statementTimeoutMs?: number | undefined;
}

/** What SQL of the queue runs on. */
export interface QueueSql extends Pick<Database, "connect"> {
  /** How the engine spells what is written once for all of them. */
  readonly words: Words;
  /** What is written whole for each engine. */
  readonly statements: QueueStatements;
  /** All sessions are one handle. */
  readonly sharedSession: boolean | undefined;
  readonly isTableMissing: (error: unknown) => boolean;
  /** The database takes no row like this. */
  readonly isRowRefused: (error: unknown) => boolean;
  /** The letter that the database's encoding lacks, where the error says so; "": one of them. */
  readonly lackedLetter?: ((error: unknown) => string | undefined) | undefined;
}

/** What the message queue needs of a database. */
export interface QueueDatabase {
  /** Rings when something was appended. */
  readonly doorbell: Doorbell<AppendNews>;
  /** PostgreSQL: LISTENs for the appends of other processes. Elsewhere undefined: poll. */
  listen(): Promise<{ close(): Promise<void> } | undefined>;
  store(): QueueStore;
  /** For what the queue does beside its appends and consumers. */
  readonly sql: QueueSql;
}

/** A database that rowpost works on. */
export interface Database {
  /** Which statements it speaks. */
  readonly dialect: DialectName;
  /** For logs: scheme, host, port and database, never a password. */
  readonly label: string;
  /** Opens a connection of rowpost's own. */
  connect(options: SessionOptions): Promise<Session>;
  /**
   * The layout of a table that `rowpost migrate` makes: what an outbox or a relay uses when none is
   * named.
   */
  readonly defaultLayout: TableLayout;
  /**
   * Begins, runs `work`, commits; rolls back on a throw. On the user's own pool or handle of this
   * database object, or on `on`, another pool, connection or handle of the same engine.
   * `runTransaction` of the transactions folder does it for all drivers.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, on?: unknown): Promise<T>;
  /**
   * Connections of the pool that `transaction` begins on, at most; undefined: without a limit, or
   * with one that cannot be read.
   */
  poolSize(): Promise<number | undefined>;
  /**
   * A user's open transaction (driver or ORM handle) as an executor. Throws
   * `TransactionRequiredError` for anything else.
   */
  executor(handle: unknown): Executor;
  /** Wakes relays of this process. */
  readonly doorbell: Doorbell;
  /**
   * PostgreSQL: LISTENs on the channel of this table and rings the doorbell. Elsewhere resolves to
   * undefined: poll. The signal cuts the connection.
   */
  listen(layout: TableLayout, signal?: AbortSignal): Promise<{ close(): Promise<void> } | undefined>;
  /**
   * Migrations and what checks them: for `migrate` (databases/sql/migrate.ts) and `rowpost doctor`.
   */
  schema(options: StoreOptions): SchemaStatements;
  /** The port of `createOutbox`. */
  messageWriter(options: StoreOptions): MessageWriter;
  /** The port of `outbox.confirm`. */
  confirmationWriter(options: StoreOptions): ConfirmationWriter;
  /** The port of `createRelay`. */
  relayStore(options: RelayStoreScope): RelayStore;
  /** Looks at messages and changes them by hand. */
  messageAdmin(options: ToolOptions): MessageAdmin;
  /** Sessions of the console, the audit, and the size of the table. */
  operations(options: ToolOptions): OperationsStore;
  /** The port of `examine`. */
  doctor(options: StoreOptions): DoctorStore;
  /** What is wrong, since when, who was told, and what is silenced. */
  alerts(options: ToolOptions): AlertStore;
  /** The port of `reconcile`. */
  reconcileStore(options: StoreOptions): ReconcileStore;
  /** For the message queue stored in SQL. */
  readonly queue: QueueDatabase;
  /** For what consumers have handled. */
  readonly inbox: InboxDatabase;
  /** Closes what this object opened; a pool or handle that the user passed in stays open. */
  close(): Promise<void>;
}
