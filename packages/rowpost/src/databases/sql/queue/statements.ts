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
  QueuedMessage,
  ReadRequest,
  Settlement,
} from "../../../queue/store.ts";
import type { HeldShard } from "../../../relay/store.ts";
import type { Statement } from "../../../transactions/executor.ts";
import type { EnqueueStatements, SchemaStatements, TakingStatements, TransactionCheck } from "../statements.ts";

/** The tables of topics. */
export interface TopicStatements {
  /**
   * CREATE TABLE IF NOT EXISTS of a month's two tables. The messages' comes behind the records':
   * whoever finds it looks for no other.
   */
  createMonth(topic: string, month: number): readonly string[];
  /** Aliases: name. Tables whose name begins like those of the topic; more than these, perhaps. */
  monthTables(topic: string): Statement;
  /** Aliases: nowms. Epoch milliseconds of the server's clock. */
  now(): Statement;
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
  insertRecords(key: GroupKey, recorded: NewRecords): Statement;
  /**
   * Both in one, where a dialect can. As many rows as records when the partition is this owner's,
   * else none.
   */
  readonly moveAndRecord?: (key: GroupKey, request: ProgressRequest, recorded: NewRecords) => Statement;
}

export interface NewRecords {
  readonly month: number;
  readonly round: number;
  readonly place: ConsumerPlace;
  readonly records: Settlement["records"];
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
  /** Aliases: topic groupid partitionno dueinms, of the first that waits; none: nothing waits. */
  firstDue(keys: readonly GroupKey[]): Statement;
}

/** A member's sign of life, and what it holds. */
export interface MemberBeat {
  readonly key: GroupKey;
  readonly owner: string;
  readonly label: string;
  readonly leaseMs: number;
  readonly held: readonly HeldShard[];
}

/** Signs of life, each of many members at once. */
export interface BeatStatements {
  reportMembers(members: readonly MemberBeat[]): Statement;
  /**
   * lease_until = now + leaseMs for what they hold at its epoch. Rows that others have locked are
   * waited for, or left as they are where the engine can.
   */
  renewPartitions(members: readonly MemberBeat[], locked: "wait" | "skip"): Statement;
  /** Aliases: topic groupid, and those of `readLeases`. */
  readPartitions(keys: readonly GroupKey[]): Statement;
  /** Aliases: topic groupid owner label silent_ms, by the server's clock; it may be below 0. */
  readMembers(keys: readonly GroupKey[]): Statement;
}

export type HoldingStatements = Omit<TakingStatements, "removeInstance" | "forgetInstances">;

/** All statements of the queue in one dialect. */
export interface QueueStatements {
  readonly schema: () => SchemaStatements;
  readonly topics: TopicStatements;
  readonly append: AppendStatements;
  readonly sources: SourceStatements;
  readonly consume: ConsumeStatements;
  readonly redelivery: RedeliveryStatements;
  /** Leases of a group; `shard` is the partition. */
  holding(key: GroupKey): HoldingStatements;
  readonly beats: BeatStatements;
}
