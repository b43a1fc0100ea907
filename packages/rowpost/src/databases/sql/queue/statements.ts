/**
 * What a dialect supplies for the queue. Each dialect has the same files: `schema.ts topics.ts
 * append.ts consume.ts redelivery.ts leases.ts`, and those of the `…-statements.ts` files here.
 * Rows come back under the aliases that the comments name; ids as text. Aliases of what runs on
 * handles of users have no underscore.
 */
import type {
  AppendRequest,
  ConsumerPlace,
  GroupKey,
  GroupStart,
  NewTopic,
  QueuedMessage,
  ReadRequest,
  Settlement,
} from "../../../queue/store.ts";
import type { Statement } from "../../../transactions/executor.ts";
import type { EnqueueStatements, HoldingStatements, SchemaStatements, TransactionCheck } from "../statements.ts";
import type { GroupStatements } from "./groups-statements.ts";
import type { TOPIC_TABLES } from "./names.ts";
import type { RetentionStatements } from "./retention-statements.ts";
import type { RewindStatements } from "./rewind-statements.ts";
import type { SearchStatements } from "./search-statements.ts";
import type { VerifyStatements } from "./verify-statements.ts";

/** DDL and rows of topics. */
export interface TopicStatements {
  /**
   * CREATE TABLE IF NOT EXISTS of a month's two tables. The messages' comes behind the records':
   * whoever finds it looks for no other.
   */
  createMonth(topic: string, month: number): readonly string[];
  /** DROP TABLE IF EXISTS. */
  dropTable(table: string): string;
  /** Aliases: name. Tables whose name begins like those of the topic; more than these, perhaps. */
  monthTables(topic: string): Statement;
  /** Aliases: nowms. Epoch milliseconds of the server's clock. */
  now(): Statement;
  /** Inserts nothing when the topic is there. */
  insertTopic(topic: NewTopic): Statement;
  /** The counters of all partitions below `partitions`; those that are there stay as they are. */
  insertCounters(topic: NewTopic): Statement;
  /** Aliases: topic partitions keyedpartitions retentionmonths. One topic, or all. */
  readTopics(topic: string | undefined): Statement;
  updateTopic(topic: NewTopic): Statement;
  /** Aliases: partitionno. Waits for appends under way and keeps the next ones waiting. */
  lockCounters(topic: string): Statement;
  /**
   * Aliases: unread. 1 when some group has not read all of the topic, or gets a message again that
   * holds up its ordering key.
   */
  isUnread(topic: string): Statement;
  /** Keyed messages go to all partitions from now on. */
  spreadKeys(topic: string): Statement;
  /** The rows of the topic in one of the queue's own tables. */
  deleteTopic(table: (typeof TOPIC_TABLES)[number], topic: string): Statement;
}

/** A statement of a call in a user's transaction, which finds out that it is still that one. */
export type CheckedStatement = (check: TransactionCheck) => Statement;

/**
 * Runs on handles of users, whose settings are not ours. Each fails where the transaction of the
 * call has ended, or finds nothing to do and answers a row of NULLs.
 */
export interface AppendStatements extends Pick<EnqueueStatements, "markTransaction"> {
  /**
   * Appends of several calls at once in one transaction go one after the other: `advance` is more
   * than one statement, and reads what the last one has written.
   */
  readonly takesTurns: boolean;
  /** Aliases as those of `readTopics`: the topic as the transaction sees it. */
  findTopic(topic: string): CheckedStatement;
  /**
   * Takes the next ids: last_id = max(last_id + 1, clock << 16) + n - 1, in order of the
   * partitions. Aliases of the last one: partitionno lastid keyedpartitions. On PostgreSQL it
   * rings, too.
   */
  advance(
    topic: string,
    counts: readonly (readonly [partition: number, messages: number])[],
  ): readonly CheckedStatement[];
  /** How many rows the next INSERT takes, of so many that are left: as few texts as may be. */
  rowsOfInsert(left: number): number;
  /**
   * One INSERT into the table of one month, sent right behind `advance` or another one. Alias, if
   * it answers a row: appended, how many.
   */
  insertMessages(request: {
    readonly topic: string;
    readonly month: number;
    readonly rows: readonly { readonly id: string; readonly message: QueuedMessage }[];
    readonly producer: AppendRequest["producer"];
  }): CheckedStatement;
}

/** What was appended under a source id. In transactions of rowpost's own. */
export interface SourceStatements {
  /**
   * Takes note of these, where they are not known; waits for whoever is about to. Aliases of the
   * last one: sourceid messageid, of all of them as they stand now.
   */
  putSources(topic: string, sources: readonly NewSource[]): readonly Statement[];
  /** Deletes some that are older than this. */
  forgetSources(olderThanMs: number, limit: number): Statement;
  /** Fails where the queue's tables are missing. */
  seeTables(): Statement;
}

export interface NewSource {
  readonly sourceId: string;
  /** Of the message that is about to be appended. */
  readonly messageId: string;
}

export interface ConsumeStatements {
  /** Rows of the group for partitions that have none. */
  insertProgress(key: GroupKey, start: GroupStart): Statement;
  /** Aliases: partitionno nextid round epoch. */
  readProgress(key: GroupKey): Statement;
  /** Aliases: partitionno lastid (the counter) paused. */
  readCounters(key: GroupKey): Statement;
  /**
   * A range of the primary key, in its order. Aliases: id message_key message_type message_data
   * content_type headers ordering_key due_in_ms; and left_out_bytes, beside which message_data is
   * NULL.
   */
  readMessages(request: Required<ReadRequest>): Statement;
  /** The same of single ids, all of one month, in their order. */
  readIds(request: { readonly topic: string; readonly month: number; readonly ids: readonly string[] }): Statement;
  /** 1 row when the partition is this owner's at this epoch and stands at `fromId`, else none. */
  moveProgress(key: GroupKey, request: ProgressRequest): Statement;
  /**
   * Records of a group in a round, of ids of one month. Locks nothing: only the owner of the
   * partition writes them, and an owner that lost it is fenced out by the epoch when it settles.
   * Aliases: id attempt silent (0 or 1).
   */
  readRecorded(
    key: GroupKey,
    request: { readonly month: number; readonly round: number; readonly ids: readonly string[] },
  ): Statement;
  /** One INSERT into the records of one month. */
  insertRecords(
    key: GroupKey,
    request: {
      readonly month: number;
      readonly round: number;
      readonly place: ConsumerPlace;
      readonly records: Settlement["records"];
    },
  ): Statement;
}

export interface ProgressRequest {
  readonly partition: number;
  readonly owner: string;
  readonly epoch: string;
  readonly fromId: string;
  /** Undefined: only looks and locks, wherever the progress stands. */
  readonly nextId: string | undefined;
  readonly month: number;
  /** Does as well as `fromId`. */
  readonly orId: string;
}

export interface RedeliveryStatements {
  /** Inserted, or changed where they are. */
  putRedeliveries(key: GroupKey, partition: number, redeliveries: Settlement["redeliveries"]): Statement;
  /** Changes those that are there as they were when they were taken: one attempt less. */
  changeRedeliveries(key: GroupKey, partition: number, redeliveries: Settlement["redeliveries"]): Statement;
  deleteRedeliveries(key: GroupKey, partition: number, ids: readonly string[]): Statement;
  /** The first waiting message of each of these ordering keys is due now, if it waited behind. */
  releaseKeys(key: GroupKey, partition: number, orderingKeys: readonly string[]): Statement;
  /** Aliases: orderingkey. Those of these that have a waiting message. */
  heldUpKeys(key: GroupKey, partition: number, orderingKeys: readonly string[]): Statement;
  /** Aliases: id attempt firstattempt orderingkey. */
  dueRedeliveries(key: GroupKey, partition: number, limit: number): Statement;
}

/** All statements of the queue in one dialect. */
export interface QueueStatements {
  readonly groups: GroupStatements;
  schema(): SchemaStatements;
  readonly topics: TopicStatements;
  readonly append: AppendStatements;
  readonly sources: SourceStatements;
  readonly consume: ConsumeStatements;
  readonly redelivery: RedeliveryStatements;
  readonly search: SearchStatements;
  readonly verify: VerifyStatements;
  readonly rewind: RewindStatements;
  readonly retention: RetentionStatements;
  /** Leases of a group; `shard` is the partition. */
  holding(key: GroupKey): HoldingStatements;
}
