/**
 * A dialect's statements for the queue, in `schema.ts topics.ts append.ts consume.ts redelivery.ts
 * leases.ts` and as in the `…-statements.ts` files here. Rows come back under the documented
 * aliases, ids as text. Aliases on users' handles have no underscore.
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

export interface TopicStatements {
  /**
   * CREATE TABLE IF NOT EXISTS of a month's two tables. Records first: if the message table exists,
   * so does the other.
   */
  createMonth(topic: string, month: number): readonly string[];
  /** Alias: name. Tables whose name begins like the topic's; may include others. */
  monthTables(topic: string): Statement;
  /** Alias: nowms. Epoch milliseconds of the server's clock. */
  now(): Statement;
}

/** A statement in a user's transaction that checks that it is still the call's. */
export type CheckedStatement = (check: TransactionCheck) => Statement;

/**
 * Run on users' handles. If the call's transaction has ended, each fails, or does nothing and
 * returns a row of NULLs.
 */
export interface AppendStatements extends Pick<EnqueueStatements, "markTransaction"> {
  /**
   * Parallel calls in one transaction take turns: `advance` is several statements and reads what
   * the previous one wrote.
   */
  readonly takesTurns: boolean;
  /** Aliases as in `readTopics`: the topic as the transaction sees it. */
  findTopic(topic: string): CheckedStatement;
  /**
   * Takes the next ids: last_id = max(last_id + 1, clock << 16) + n - 1, in partition order.
   * Aliases of the last statement: partitionno lastid keyedpartitions. On PostgreSQL it rings too.
   */
  advance(
    topic: string,
    counts: readonly (readonly [partition: number, messages: number])[],
  ): readonly CheckedStatement[];
  /** Rows of the next INSERT, of so many left. Chosen to keep the number of texts small. */
  rowsOfInsert(left: number): number;
  /**
   * One INSERT into one month's table, sent right after `advance` or another INSERT. Alias, if it
   * returns a row: appended, the count.
   */
  insertMessages(request: {
    readonly topic: string;
    readonly month: number;
    readonly rows: readonly { readonly id: string; readonly message: QueuedMessage }[];
    readonly producer: AppendRequest["producer"];
  }): CheckedStatement;
}

/** Appends recorded by source id. In rowpost's own transactions. */
export interface SourceStatements {
  /**
   * Records unknown source ids, waiting for parallel appends of them. Aliases of the last
   * statement: sourceid messageid, of all of them.
   */
  putSources(topic: string, sources: readonly NewSource[]): readonly Statement[];
  /** Deletes some of those older than this. */
  forgetSources(olderThanMs: number, limit: number): Statement;
  /** Fails if the queue's tables are missing. */
  seeTables(): Statement;
}

export interface NewSource {
  readonly sourceId: string;
  readonly messageId: string;
}

export interface ConsumeStatements {
  /**
   * A range of the primary key, in order. Aliases: id message_key message_type message_data
   * content_type headers ordering_key due_in_ms; and left_out_bytes, with message_data NULL.
   */
  readMessages(request: Required<ReadRequest>): Statement;
  /** The same for single ids of one month, in order. */
  readIds(request: { readonly topic: string; readonly month: number; readonly ids: readonly string[] }): Statement;
  /** Affects 1 row if the partition is this owner's at this epoch and at `fromId`, else none. */
  moveProgress(key: GroupKey, request: ProgressRequest): Statement;
  /**
   * Records of a group in a round, for ids of one month. No lock: only the partition's owner writes
   * them, and the epoch fences a former owner when it settles. Aliases: id attempt silent (0 or 1).
   */
  readRecorded(
    key: GroupKey,
    request: { readonly month: number; readonly round: number; readonly ids: readonly string[] },
  ): Statement;
  insertRecords(key: GroupKey, recorded: NewRecords): Statement;
  /**
   * Both in one, where a dialect can. Affects as many rows as records if the partition is this
   * owner's, else none.
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
  /** Undefined: only checks and locks, at any progress. */
  readonly nextId: string | undefined;
  readonly month: number;
  /** Accepted instead of `fromId`. */
  readonly orId: string;
}

export interface RedeliveryStatements {
  /** Inserts them, or changes existing ones. */
  putRedeliveries(key: GroupKey, partition: number, redeliveries: Settlement["redeliveries"]): Statement;
  /** Changes those still as they were when taken: one attempt less. */
  changeRedeliveries(key: GroupKey, partition: number, redeliveries: Settlement["redeliveries"]): Statement;
  deleteRedeliveries(key: GroupKey, partition: number, ids: readonly string[]): Statement;
  /**
   * Makes the first waiting message of each of these ordering keys due now, if it waited behind
   * another.
   */
  releaseKeys(key: GroupKey, partition: number, orderingKeys: readonly string[]): Statement;
  /** Alias: orderingkey. Those of these keys with a waiting message. */
  heldUpKeys(key: GroupKey, partition: number, orderingKeys: readonly string[]): Statement;
  /**
   * Aliases: topic groupid partitionno dueinms, of the first waiting message; no row if there is
   * none.
   */
  firstDue(keys: readonly GroupKey[]): Statement;
}

/** A member's sign of life with its partitions. */
export interface MemberBeat {
  readonly key: GroupKey;
  readonly owner: string;
  readonly label: string;
  readonly leaseMs: number;
  readonly held: readonly HeldShard[];
}

/** Signs of life, for many members at once. */
export interface BeatStatements {
  reportMembers(members: readonly MemberBeat[]): Statement;
  /**
   * lease_until = now + leaseMs for their partitions at their epoch. Locked rows are waited for, or
   * skipped where the engine can.
   */
  renewPartitions(members: readonly MemberBeat[], locked: "wait" | "skip"): Statement;
  /** Aliases: topic groupid, and those of `readLeases`. */
  readPartitions(keys: readonly GroupKey[]): Statement;
  /** Aliases: topic groupid owner label silent_ms, by the server's clock; may be negative. */
  readMembers(keys: readonly GroupKey[]): Statement;
}

export type HoldingStatements = Omit<TakingStatements, "removeInstance" | "forgetInstances">;

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
