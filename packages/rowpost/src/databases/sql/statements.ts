/**
 * The statements of a dialect, one per operation, built from the layout. The flow is shared in this
 * folder. Each dialect folder has `scan.ts claim.ts settle.ts leases.ts enqueue.ts confirm.ts
 * unknown.ts housekeeping.ts admin.ts schema.ts`. Statements for people are shared (cold-table.ts).
 *
 * Rows come back under the documented aliases. BIGINTs are text. Instants are ISO 8601 UTC text
 * (`…T…Z`, milliseconds), or differences in milliseconds.
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

/** Facts about a dialect or server that change the flow. */
export interface DialectFacts {
  /**
   * INSERT reports duplicates itself (ON CONFLICT DO NOTHING RETURNING); else a duplicate is an
   * error and is looked up.
   */
  readonly insertReportsDuplicates: boolean;
  /**
   * Allows sendingMark "off". Where a commit is cheap, a list in the lease row costs more than the
   * mark.
   */
  readonly listsInFlight: boolean;
  readonly shardCount: 1 | 16;
}

/** Single-word aliases, because users' handles may convert names to camelCase. */
export interface EnqueueStatements {
  /**
   * Inserts nothing outside the transaction, if the engine can tell. Rows: messagetype, messagekey
   * of inserted messages (facts.insertReportsDuplicates).
   */
  insert(messages: readonly EncodedMessage[], check?: TransactionCheck): Statement;
  /**
   * Rows: messagetype, messagekey as stored, of those identities, by the column's collation. A
   * locking read, so it sees the rows that failed the insert. With a mark, returns an additional
   * row without an identity in another transaction.
   */
  findIdentities(messages: readonly EncodedMessage[], check?: TransactionCheck): Statement;
  /**
   * A plain read before an INSERT that ignores duplicates, where a failed INSERT blocks other
   * transactions. Rows as in findIdentities, which looks them up again; may return none. Absent if
   * the INSERT reports duplicates.
   */
  readonly seeIdentities?: (messages: readonly EncodedMessage[], check?: TransactionCheck) => Statement;
  /** Deletes these identities, to undo a partly inserted call. */
  deleteIdentities(messages: readonly EncodedMessage[], check?: TransactionCheck): Statement;
  /**
   * Rows: databasename, columnname, characters, bytes, charsetname, datatype of the message table.
   * Absent if the server always refuses values that do not fit.
   */
  readonly readRoom?: (check: TransactionCheck) => Statement;
  /** Leaves a mark that ends with the transaction. Absent if there is another way to know. */
  readonly markTransaction?: (mark: string) => Statement;
}

/**
 * How the statements of one enqueue check that the call's transaction has not ended (rule:
 * ended-transaction).
 */
export interface TransactionCheck {
  /**
   * An earlier statement of this call has run, so this one must check. False for the first one if
   * the driver keeps the order, and in our own transactions.
   */
  readonly asked: boolean;
  /** Unique to this call. */
  readonly mark: string;
  /** Set in rowpost's own transaction, which knows when it has ended. */
  readonly isOwn?: boolean;
  /**
   * Database whose table the values were checked against, so that a lenient session may insert them
   * there.
   */
  readonly fitsIn?: string | undefined;
  /**
   * No INSERT of this process has reached the table yet, so a missing unique key must be detected.
   */
  readonly looksForKey?: boolean;
}

/** For a first statement that needs no check. */
export const UNASKED: TransactionCheck = { asked: false, mark: "" };

/** Leases of anything shared among instances: shards of a table, partitions of a group. */
export interface TakingStatements {
  removeInstance(owner: string): Statement;
  /** Deletes registry rows silent for a day, so that restarts do not grow the table. */
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

/** Recovery of an old owner's `sending` rows. */
export interface RecoveryStatements {
  /**
   * Second of a takeover: `sending` rows of these shards back to pending, lock_version + 1,
   * next_retry_at = deliver_at if in the future, else NULL. Skips rows that a user holds where the
   * engine can (rule: watched-sending finds them later).
   */
  recoverShards(shards: readonly number[]): Statement;
  /**
   * sendingMark off: delivery_count + 1 and lock_version + 1 for the ids listed in these shards'
   * lease rows. Skips rows that a user holds where the engine can, uncounted.
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
  /** The instance's own report, as JSON. No effect before its first heartbeat. */
  writeReport(instance: { readonly owner: string; readonly report: string }): Statement;
  /**
   * Rows: owner, label, silent_ms (since its last sign of life), report, report_age_ms (NULL:
   * none).
   */
  readReports(): Statement;
  /** The rows of readLeases for every topic list, with table_name; the table's own first. */
  readEveryLease(): Statement;
  /** Rows: scope, value, reason, author, ends_in_ms, without ended ones. */
  readSuspensions(): Statement;
}

export interface TopicsRequest extends Pick<ScanRequest, "shards" | "bodyLimit"> {
  readonly topics: readonly TopicScan[];
}

export interface RelayStatements {
  /**
   * Aliases: id shard message_type message_key topic message_body headers content_type ordering_key
   * retry_count delivery_count lock_version resend waiting_ms due body_bytes. Examines at most
   * `dueLimit` + `immediateLimit` rows, whoever owns them (rule: bounded-scan). With `shards`, rows
   * of other shards may come back with message_body NULL, which tells the flow where to continue.
   * message_body is NULL if larger than bodyLimit; body_bytes is its length, 0 for a row of another
   * shard, NULL for NULL.
   */
  scan(request: ScanRequest): Statement;
  /**
   * The same for some topics, each with its limits. Reads nothing of the others if the table has an
   * index for it. At least one topic with a limit.
   */
  scanTopics(request: TopicsRequest): Statement;
  /** Aliases: id message_body. */
  readBodies(ids: readonly string[]): Statement;
  /**
   * Alias: topic. For each text the next topic after it, in column order, with a waiting row; NULL
   * for none. One index lookup each.
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
  /** With `skipLocked`, skips locked rows instead of waiting: the second try after a conflict. */
  claim(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly skipLocked?: boolean | undefined;
  }): Statement;
  /** Alias: id. */
  verifyClaim(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Statement;
  /** Current rows. Aliases: id state delivery_count lock_version. */
  readRows(ids: readonly string[]): Statement;
  /** Alias: id. Locks the free ones of these rows without waiting, until the transaction ends. */
  lockFreeRows(ids: readonly string[]): Statement;
  listInFlight(request: {
    readonly fence: Fence;
    readonly idsByShard: readonly { readonly shard: number; readonly ids: readonly string[] }[];
  }): Statement;
  /** Alias: shard. Held shards at their epochs, to see which lists were written. */
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
  /** Instead of `settleSent`, for rows that need not be kept: deletes those in `from`. */
  deleteSent(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly from: "sending" | "pending";
  }): Statement;
  /** Outcomes `pending` or `failed`. */
  settleOther(request: {
    readonly fence: Fence;
    readonly outcomes: readonly Outcome[];
    readonly elapsedMs: number;
    readonly from: "sending" | "pending";
  }): Statement;
}

/** A row to set behind its head, and the instant for it (sql/behind.ts). */
export interface BehindRow extends RowToken {
  readonly headId: string;
  readonly instant: string;
}

/** `fail_reason` written by `failUnreached`. Contains no quote. */
export const ID_BELOW_ONE =
  "ID_BELOW_ONE: ids begin at 1, and no relay looks below; insert the message again with an id of the column itself";

export interface HousekeepingStatements {
  /** Aliases: id shard delivery_count lock_version topic. */
  listSending(request: { readonly shards: readonly number[] | undefined; readonly limit: number }): Statement;
  /** Skips locked rows where the engine can. At least one row. */
  recoverRows(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Statement;
  /**
   * Aliases: id shard delivery_count lock_version state message_type message_key topic retry_count
   * age_ms fail_reason.
   */
  listTimed(limit: number): Statement;
  /**
   * Decisions of one transition; compares the token. `clearTimer` keeps the state: on `failed`
   * next_retry_at becomes NULL, on `sent` 9999-12-31, because `lockFinished` takes `sent` rows with
   * NULL and it still awaits its confirmation. With `skipLocked`, skips locked rows, where the
   * engine can. At least one decision.
   */
  applyTimed(request: {
    readonly transition: TimedDecision["transition"];
    readonly decisions: readonly TimedDecision[];
    readonly skipLocked?: boolean | undefined;
  }): Statement;
  /** Alias: id. Rows for the next two statements. No lock. */
  listStrays(limit: number): Statement;
  failUnknownStates(ids: readonly string[]): Statement;
  /** Those of them that are pending with an id below 1: scans begin at 1. */
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
  /** At least one row. Locks the heads until it commits; skips locked ones. */
  setBehind(request: { readonly fence: Fence; readonly rows: readonly BehindRow[] }): Statement;
  /** Rows behind these instants (of sql/behind.ts), ordered by instant and id. At least one. */
  bringBack(request: { readonly instants: readonly string[] } & Picked): Statement;
  /** Alias: instant, ISO 8601 text. The next one with rows set behind; NULL for none. */
  nextBehind(afterInstant: string): Statement;
  /** The ramp has `limit` steps and continues after `done` of them. */
  resetBackoff(
    request: { readonly topic: string; readonly limit: number; readonly stepMs: number } & Picked,
  ): Statement;
  /** Alias: now_ms, of the epoch. Reads no table. */
  readClock(): Statement;
  /**
   * Transactions that keep old row versions: at most 5, worst first; see old-transactions.ts.
   * Undefined if the engine has none.
   */
  readonly oldTransactions: ((request: OldTransactionsRequest) => Statement) | undefined;
  shortenWaits(request: { readonly beyondMs: number; readonly stepMs: number } & Picked): Statement;
  /**
   * Alias: id. Locks finished rows of this state that are old enough, skipping locked ones where
   * the engine can. Only rows with next_retry_at NULL: a `sent` row with a time awaits its
   * confirmation. Examines at most `limit` rows by id after `afterId`.
   */
  lockFinished(request: {
    readonly state: "sent" | "consumed";
    readonly olderThanMs: number;
    readonly afterId: string;
    readonly limit: number;
  }): Statement;
  /**
   * Alias: id. The `rows`-th finished row of the state after `afterId`; no row if there are fewer.
   */
  passFinished(request: {
    readonly state: "sent" | "consumed";
    readonly afterId: string;
    readonly rows: number;
  }): Statement;
  copyToArchive(ids: readonly string[]): Statement;
  deleteRows(ids: readonly string[]): Statement;
  purgeArchive(request: { readonly olderThanMs: number; readonly limit: number }): Statement;
  /**
   * Aliases: topic state count oldest_age_ms. Reads at most `limit` rows per state, and twice
   * `failedLimit` failed ones: the newest with and without a next attempt.
   */
  gauges(limit: number, failedLimit?: number): Statement;
}

export interface AdminStatements {
  /** The changes by hand keep fail_reason, except for the words of a suspension rule. */
  operatorRetry(request: { readonly ids: readonly string[]; readonly action: OperatorAction }): Statement;
  /** Pending rows that wait for their next attempt, but not delayed rows or rows set behind. */
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
 * databases record it.
 */
export interface Migration {
  readonly version: number;
  /** Words for people, such as `local message table`. */
  readonly name: string;
  /**
   * Each can run again after an interruption (CREATE … IF NOT EXISTS; else `alreadyDone` knows the
   * error).
   */
  readonly statements: readonly string[];
  /**
   * An earlier step, no longer in this list. Where it never ran, such tables belong to others, and
   * no statement runs.
   */
  readonly undoes?: number;
}

export interface TopicIndex {
  /** CREATE INDEX, for tables without it. */
  readonly create: string;
  /** Usable indexes: their leading columns, and the condition of a partial one. */
  readonly usable: readonly { readonly columns: readonly string[]; readonly predicate: string | undefined }[];
}

export interface SchemaStatements extends ColumnTypeWords {
  /** With the columns that this engine has. */
  readonly layout: TableLayout;
  readonly migrations: readonly Migration[];
  /**
   * True: DDL is transactional; all migrations run in one transaction that starts with `lock`.
   * False: `lock` and `unlock` surround them.
   */
  readonly transactional: boolean;
  /**
   * One migration at a time per database. Alias (optional): locked (0 = held elsewhere, try again).
   * Undefined if BEGIN locks (SQLite).
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
  /** Whether this error of a half-done migration means that the object exists already. */
  alreadyDone(error: unknown): boolean;
  /**
   * Aliases: table_name, column_name, type and preset (the default, NULL = none) as the database
   * writes them, collation (NULL if the engine has none), keeps_ms (1: holds milliseconds and years
   * beyond 3000). The message table and its companions, in any order.
   */
  columns(): Statement;
  /**
   * Whether an enqueue needs a unique key over exactly type and key (ON CONFLICT); else one over
   * either is enough.
   */
  readonly needsExactKey: boolean;
  readonly identityIndex: string;
  /** Sets a varying start of versions; undefined if no other server can take over. */
  readonly versionStart: string | undefined;
  /**
   * Fails with the reason why `columns` does not show a table: missing, or no privilege. Undefined
   * if the catalog shows all tables.
   */
  readonly lookAt?: ((table: string) => Statement) | undefined;
  /**
   * Aliases: index_name, place (from 0), column_name (NULL for an expression), predicate (of a
   * partial index, as the server writes it), is_unique. Of the message table.
   */
  indexes(): Statement;
  /**
   * Aliases: zone, shifts (1: its UTC offset changes within a year). Undefined if the message
   * table's instants are in UTC.
   */
  readonly zone?: (() => Statement) | undefined;
  readonly topicIndex: TopicIndex;
  /** Whether a key column with this collation compares byte for byte. */
  comparesBytes(collation: string | null): boolean;
}

/** Export of each dialect's `statements.ts`. */
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
  readonly table: MessageTable;
}
