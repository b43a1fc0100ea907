/**
 * What a dialect supplies: one whole statement for each operation, built from the layout. The flow
 * (which statement when, in which transaction, what its answer means) is written once in this
 * folder. Each dialect folder has the same file names: `scan.ts claim.ts settle.ts leases.ts
 * enqueue.ts confirm.ts unknown.ts housekeeping.ts admin.ts schema.ts`. What people ask for stands
 * once, beside its flow: see cold-table.ts.
 *
 * Rows come back under the aliases that the comments name, so that they are decoded once. BIGINTs
 * are returned as text. Instants are returned as ISO 8601 UTC text (`…T…Z`, milliseconds), or as
 * differences in milliseconds.
 */

import type { OperatorAction } from "../../admin/message-admin.ts";
import type { EncodedMessage } from "../../outbox/message-writer.ts";
import type {
  Fence,
  HeldShard,
  Outcome,
  RowToken,
  ScanRequest,
  ShardLease,
  SuspensionRule,
  TimedDecision,
  TopicScan,
} from "../../relay/store.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { MessageTable } from "./cold-table.ts";
import type { ColumnTypeWords } from "./column-types.ts";
import type { ConfirmStatements } from "./confirm-statements.ts";
import type { TableLayout } from "./layout.ts";
import type { OldTransactionsRequest } from "./old-transactions.ts";
import type { OwnTopics } from "./own-topics.ts";
import type { Picked } from "./past-refused.ts";

/** Facts about a dialect or server that change the flow, each with its consequence. */
export interface DialectFacts {
  /**
   * INSERT says itself which rows were duplicates (ON CONFLICT DO NOTHING RETURNING); else a
   * duplicate is an error and is looked up.
   */
  readonly insertReportsDuplicates: boolean;
  /**
   * sendingMark "off" may be chosen; else it is refused, because a list in the lease row costs more
   * than the mark where a commit is cheap.
   */
  readonly listsInFlight: boolean;
  readonly shardCount: 1 | 16;
}

/**
 * Aliases without an underscore: these run on handles of the user's, which may make camelCase of
 * column names.
 */
export interface EnqueueStatements {
  /**
   * Inserts nothing outside of the transaction, where the engine can tell. Rows: messagetype,
   * messagekey of what was inserted (facts.insertReportsDuplicates).
   */
  insert(messages: readonly EncodedMessage[], check?: TransactionCheck): Statement;
  /**
   * Rows: messagetype, messagekey as stored, of those identities (compared as the column's
   * collation does); a locking read, so that it sees what made the insert fail. With a mark there
   * is a row more, without an identity, when it is another transaction.
   */
  findIdentities(messages: readonly EncodedMessage[], check?: TransactionCheck): Statement;
  /**
   * A plain read, asked before an INSERT that ignores duplicates, where one that fails would hold
   * up other transactions. What it answers is looked up with findIdentities; it may answer nothing.
   * Rows as there. Absent where the INSERT reports duplicates itself.
   */
  readonly seeIdentities?: (messages: readonly EncodedMessage[], check?: TransactionCheck) => Statement;
  /** Deletes the given identities: undo of a partly inserted call. */
  deleteIdentities(messages: readonly EncodedMessage[], check?: TransactionCheck): Statement;
  /**
   * Rows: databasename, columnname, characters, bytes, charsetname, datatype of the message table.
   * Absent where the server always refuses what does not fit.
   */
  readonly readRoom?: (check: TransactionCheck) => Statement;
  /** Leaves a mark that ends with the transaction. Absent where there is another way to know. */
  readonly markTransaction?: (mark: string) => Statement;
}

/**
 * How the statements of one enqueue find out that they run in the transaction in which it was
 * called, and not behind its end (rule: ended-transaction).
 */
export interface TransactionCheck {
  /**
   * A statement of this call has gone before, and this one must find that the transaction has not
   * ended since; false for the first one where the driver keeps the order, and in transactions of
   * our own.
   */
  readonly asked: boolean;
  /** Unlike that of any other call. */
  readonly mark: string;
  /** In a transaction of rowpost's own, which knows by itself when it has ended. */
  readonly isOwn?: boolean;
  /**
   * The values were held against the columns of the table in this database, so that a lenient
   * session may insert them there.
   */
  readonly fitsIn?: string | undefined;
  /**
   * No INSERT of this process has gone into the table yet: one that would not tell duplicates has
   * to find that there is no unique key.
   */
  readonly looksForKey?: boolean;
}

/** For the first statement, where nothing has to be found. */
export const UNASKED: TransactionCheck = { asked: false, mark: "" };

/** Leases of anything that is shared among instances: shards of a table, partitions of a group. */
export interface TakingStatements {
  removeInstance(owner: string): Statement;
  /** Deletes registry rows silent for a day, so that the table does not grow with every restart. */
  forgetInstances(): Statement;
  /** Rows: shard, owner, epoch, lease_until (text), lease_ms. */
  readLeases(): Statement;
  /**
   * First statement of a takeover (rule: takeover-fence): epoch + 1, owner, lease_until, for rows
   * exactly as observed.
   */
  take(request: {
    readonly owner: string;
    readonly leaseMs: number;
    readonly observed: readonly ShardLease[];
  }): Statement;
  release(request: { readonly owner: string; readonly shards: readonly HeldShard[] }): Statement;
}

/** What an owner leaves in `sending`, and how it comes back. */
export interface RecoveryStatements {
  /**
   * Second of a takeover: `sending` rows of these shards back to pending, lock_version + 1,
   * next_retry_at = deliver_at when ahead, else NULL. Rows that a user holds are passed over where
   * the engine can (rule: watched-sending finds them later).
   */
  recoverShards(shards: readonly number[]): Statement;
  /**
   * sendingMark off: delivery_count + 1 and lock_version + 1 for the ids listed in these shards'
   * lease rows. Rows that a user holds are passed over where the engine can, uncounted.
   */
  recoverListed(shards: readonly number[]): Statement;
  clearListed(shards: readonly number[]): Statement;
}

export interface LeaseStatements extends TakingStatements, RecoveryStatements {
  reportInstance(instance: { readonly owner: string; readonly label: string }): Statement;
  /** lease_until = now + leaseMs for held shards at their epoch. */
  renew(request: { readonly owner: string; readonly leaseMs: number; readonly held: readonly HeldShard[] }): Statement;
  /** Rows: owner, label, alive (0/1). */
  readInstances(instanceTimeoutMs: number): Statement;
  /** INSERT of the missing shard rows; concurrent calls agree. */
  ensureShards(): Statement;
  /**
   * What the instance says of itself, JSON. Changes nothing where it has not reported itself yet.
   */
  writeReport(instance: { readonly owner: string; readonly report: string }): Statement;
  /**
   * Rows: owner, label, silent_ms (since its last sign of life), report, report_age_ms (NULL:
   * none).
   */
  readReports(): Statement;
  /** The rows of readLeases for every list of topics, with table_name; the table's own first. */
  readEveryLease(): Statement;
  /** Rows: scope, value, reason, author, ends_in_ms. Those that have ended are left out. */
  readSuspensions(): Statement;
}

/** A scan of some topics. */
export interface TopicsRequest extends Pick<ScanRequest, "shards" | "bodyLimit"> {
  readonly topics: readonly TopicScan[];
}

export interface RelayStatements {
  /**
   * Aliases: id shard message_type message_key topic message_body headers content_type ordering_key
   * retry_count delivery_count lock_version resend waiting_ms due body_bytes. At most `dueLimit`
   * + `immediateLimit` rows are examined, whoever owns them (rule: bounded-scan). With `shards`,
   * examined rows of other shards may come back too, with message_body NULL: the flow drops them,
   * and knows from them where to go on. message_body is NULL where it is larger than bodyLimit;
   * body_bytes is its length, 0 for a row of another shard, NULL where the column is NULL.
   */
  scan(request: ScanRequest): Statement;
  /**
   * The same of some topics, each with its limits: reads nothing of the others where the table has
   * an index for it. At least one topic with a limit.
   */
  scanTopics(request: TopicsRequest): Statement;
  /** Aliases: id message_body. */
  readBodies(ids: readonly string[]): Statement;
  /**
   * Alias: topic. For each of these texts the next topic behind it, in the order of the column,
   * that has a waiting row; NULL for none. One look into the index each.
   */
  nextTopics(after: readonly string[]): Statement;
  /**
   * Aliases: ordering_key id state due resend retry_count message_type. Ordered by ordering_key,
   * id.
   */
  keyQueues(request: {
    readonly keys: readonly { readonly orderingKey: string; readonly upToId: string }[];
    readonly failedBlocks: boolean;
  }): Statement;
  /**
   * With `skipLocked`, rows that another transaction holds are passed over instead of waited for:
   * the second try after a conflict.
   */
  claim(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly skipLocked?: boolean | undefined;
  }): Statement;
  /** Alias: id. */
  verifyClaim(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Statement;
  /** Rows as they are now. Aliases: id state delivery_count lock_version. */
  readRows(ids: readonly string[]): Statement;
  /**
   * Alias: id. Locks those of the rows that nobody else holds, without waiting, until the end of
   * the transaction.
   */
  lockFreeRows(ids: readonly string[]): Statement;
  listInFlight(request: {
    readonly fence: Fence;
    readonly idsByShard: readonly { readonly shard: number; readonly ids: readonly string[] }[];
  }): Statement;
  /** Alias: shard. Held shards at their epochs (which of the lists were written). */
  readHeld(fence: Fence): Statement;
  /**
   * All outcomes are `sent`. Rows in `sending` (or `pending` with sendingMark off), or overtaken
   * into `consumed`.
   */
  settleSent(request: {
    readonly fence: Fence;
    readonly outcomes: readonly Outcome[];
    readonly elapsedMs: number;
    readonly from: "sending" | "pending";
  }): Statement;
  /** Instead of `settleSent`, for rows that need not be kept: those in `from` are deleted. */
  deleteSent(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly from: "sending" | "pending";
  }): Statement;
  /** pending or failed outcomes. */
  settleOther(request: {
    readonly fence: Fence;
    readonly outcomes: readonly Outcome[];
    readonly elapsedMs: number;
    readonly from: "sending" | "pending";
  }): Statement;
}

/** A row to be set behind its head, and the instant that says so (sql/behind.ts). */
export interface BehindRow extends RowToken {
  readonly headId: string;
  readonly instant: string;
}

/** `fail_reason` of a row that `failUnreached` fails. Without a quote. */
export const ID_BELOW_ONE =
  "ID_BELOW_ONE: ids begin at 1, and no relay looks below; insert the message again with an id of the column itself";

export interface HousekeepingStatements {
  /** Aliases: id shard delivery_count lock_version topic. */
  listSending(request: { readonly shards: readonly number[] | undefined; readonly limit: number }): Statement;
  /** Rows that somebody else holds are passed over where the engine can. At least one row. */
  recoverRows(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Statement;
  /**
   * Aliases: id shard delivery_count lock_version state message_type message_key topic retry_count
   * age_ms fail_reason.
   */
  listTimed(limit: number): Statement;
  /**
   * One statement for decisions of one transition; token compared. `clearTimer` leaves the state:
   * on `failed` next_retry_at becomes NULL, on `sent` 9999-12-31 (it still waits for its
   * confirmation, so `lockFinished`, which takes `sent` rows with next_retry_at NULL only, passes
   * it over). With `skipLocked`, rows that another transaction holds are passed over instead of
   * waited for, where the engine can. At least one decision.
   */
  applyTimed(request: {
    readonly transition: TimedDecision["transition"];
    readonly decisions: readonly TimedDecision[];
    readonly skipLocked?: boolean | undefined;
  }): Statement;
  /** Alias: id. What the two statements that follow are about; locks nothing. */
  listStrays(limit: number): Statement;
  failUnknownStates(ids: readonly string[]): Statement;
  /** Those of them that are pending and have an id below 1: scans begin at 1. */
  failUnreached(ids: readonly string[]): Statement;
  failPending(request: {
    readonly fence: Fence;
    readonly rows: readonly (RowToken & { readonly failReason: string })[];
    readonly nextRetryInMs: number | null;
  }): Statement;
  suspendPending(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly failReason: string;
    readonly endsInMs: number | null;
  }): Statement;
  park(request: { readonly fence: Fence; readonly rows: readonly RowToken[]; readonly parkMs: number }): Statement;
  /** At least one row. Locks the heads until it has committed; skips what others hold. */
  setBehind(request: { readonly fence: Fence; readonly rows: readonly BehindRow[] }): Statement;
  /**
   * Rows behind these instants (of sql/behind.ts), in the order of instants and ids. At least one.
   */
  bringBack(request: { readonly instants: readonly string[] } & Picked): Statement;
  /** Alias: instant, ISO 8601 text. The next one at which a row is set behind; NULL for none. */
  nextBehind(afterInstant: string): Statement;
  /** The ramp has `limit` steps, and goes on behind those that were `done`. */
  resetBackoff(
    request: { readonly topic: string; readonly limit: number; readonly stepMs: number } & Picked,
  ): Statement;
  /** Alias: now_ms, of the epoch. Reads no table. */
  readClock(): Statement;
  /**
   * Transactions that keep old row versions: at most 5, the worst first; see old-transactions.ts.
   * Undefined where there is no such thing.
   */
  readonly oldTransactions: ((request: OldTransactionsRequest) => Statement) | undefined;
  shortenWaits(request: { readonly beyondMs: number; readonly stepMs: number } & Picked): Statement;
  /**
   * Alias: id. Locks finished rows of this state, old enough, skipping rows that others hold where
   * the engine can. Only rows with next_retry_at NULL: a `sent` row with a time waits for its
   * confirmation. Examines at most `limit` rows, the first by id behind `afterId`.
   */
  lockFinished(request: {
    readonly state: "sent" | "consumed";
    readonly olderThanMs: number;
    readonly afterId: string;
    readonly limit: number;
  }): Statement;
  /** Alias: id. The `rows`-th finished row of the state behind `afterId`; none: there are fewer. */
  passFinished(request: {
    readonly state: "sent" | "consumed";
    readonly afterId: string;
    readonly rows: number;
  }): Statement;
  /** Copies locked rows into the archive. */
  copyToArchive(ids: readonly string[]): Statement;
  deleteRows(ids: readonly string[]): Statement;
  purgeArchive(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
  /**
   * Aliases: topic state count oldest_age_ms. Reads at most `limit` rows of each state, and twice
   * `failedLimit` of the failed ones: the newest of those with a next look, and of those without.
   */
  gauges(limit: number, failedLimit?: number): Statement;
}

export interface AdminStatements {
  /** The changes by hand leave fail_reason as it is, but for the words of a suspension rule. */
  operatorRetry(request: { readonly ids: readonly string[]; readonly action: OperatorAction }): Statement;
  /**
   * Pending rows that wait for their next attempt; not those that are delayed still or set behind
   * another one.
   */
  bringForward(request: { readonly ids: readonly string[]; readonly action: OperatorAction }): Statement;
  suspendRows(request: {
    readonly ids: readonly string[];
    readonly action: OperatorAction;
    readonly untilMs: number | null;
  }): Statement;
  resumeRows(request: { readonly ids: readonly string[]; readonly action: OperatorAction }): Statement;
  putSuspension(rule: SuspensionRule): Statement;
}

/**
 * One numbered step from an empty database to the tables of a layout. Never changed once released:
 * what it did stands in databases.
 */
export interface Migration {
  readonly version: number;
  /** Words for people, such as `local message table`. */
  readonly name: string;
  /**
   * Each can be run again when an earlier run stopped half way (CREATE … IF NOT EXISTS; else
   * `alreadyDone` knows the error).
   */
  readonly statements: readonly string[];
  /**
   * An earlier one, which is in this list no more: where it never ran, tables of these names are
   * somebody else's, and no statement runs.
   */
  readonly undoes?: number;
}

/** An index that finds waiting rows by topic. */
export interface TopicIndex {
  /** CREATE INDEX, for tables without it. */
  readonly create: string;
  /** Indexes that serve: their leading columns, and the condition of a partial one. */
  readonly usable: readonly { readonly columns: readonly string[]; readonly predicate: string | undefined }[];
}

/** What migrate.ts and check-schema.ts need of a dialect. */
export interface SchemaStatements extends ColumnTypeWords {
  /** With the columns that this engine has. */
  readonly layout: TableLayout;
  readonly migrations: readonly Migration[];
  /**
   * True: DDL is transactional; all migrations run in one transaction, with `lock` as its first
   * statement. False: `lock` and `unlock` around them.
   */
  readonly transactional: boolean;
  /**
   * One migration at a time per database. Alias (optional): locked (0 = somebody else holds it, try
   * again). Undefined where BEGIN locks (SQLite).
   */
  readonly lock: Statement | undefined;
  readonly unlock: Statement | undefined;
  /**
   * CREATE TABLE IF NOT EXISTS <companion>_migration (table_name, version, name, checksum,
   * applied_at).
   */
  readonly createVersionTable: Statement;
  /** Aliases: version, checksum. Of this layout's table. */
  readVersions(): Statement;
  recordVersion(migration: Migration, checksum: string): Statement;
  /** Is this error "it is there already", from a statement of a migration that was half done? */
  alreadyDone(error: unknown): boolean;
  /**
   * Aliases: table_name, column_name, type and preset (the default, NULL = none) as the database
   * writes them, collation (NULL where the engine has none), keeps_ms (1: holds instants to the
   * millisecond, beyond the year 3000). Of the message table and the companion tables, in any
   * order.
   */
  columns(): Statement;
  /**
   * Does an enqueue need a unique key over type and key and nothing else (ON CONFLICT)? Else one
   * over one of them does as well.
   */
  readonly needsExactKey: boolean;
  /** The statement that makes one. */
  readonly identityIndex: string;
  /** What makes versions begin anywhere; undefined where no other server can take over. */
  readonly versionStart: string | undefined;
  /**
   * Fails by what is wrong with a table that `columns` does not show: it is not there, or the user
   * has no right on it. Undefined where the catalog shows every table to everybody.
   */
  readonly lookAt?: ((table: string) => Statement) | undefined;
  /**
   * Aliases: index_name, place (from 0), column_name (NULL for an expression), predicate (of a
   * partial index, as the server writes it), is_unique. Of the message table.
   */
  indexes(): Statement;
  /**
   * Aliases: zone, shifts (1: it changes its offset from UTC within a year). Undefined where the
   * instants of the message table are in UTC.
   */
  readonly zone?: (() => Statement) | undefined;
  /** The index for scanTopics. */
  readonly topicIndex: TopicIndex;
  /** Is a key column of this collation compared byte for byte? */
  comparesBytes(collation: string | null): boolean;
}

/** All statements of one dialect for one layout. */
/** What each dialect's `statements.ts` exports. */
export type CreateStatements = (layout: TableLayout, topics?: OwnTopics) => DialectStatements;

export interface DialectStatements {
  readonly facts: DialectFacts;
  readonly schema: SchemaStatements;
  readonly enqueue: EnqueueStatements;
  readonly confirm: ConfirmStatements;
  readonly leases: LeaseStatements;
  readonly relay: RelayStatements;
  readonly housekeeping: HousekeepingStatements;
  readonly admin: AdminStatements;
  /** What the statements that stand once are written with. */
  readonly table: MessageTable;
}
