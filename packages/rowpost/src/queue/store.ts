/**
 * Store port of the queue: topics and their month tables, appends, consumption. Implemented once in
 * databases/sql/queue over whole statements per dialect. Types only.
 */
import type { LeaseStore } from "../relay/store.ts";
import type { Executor } from "../transactions/executor.ts";
import type { GroupKey } from "./group-key.ts";
import type { RelayedStore } from "./producing/relayed-store.ts";

export type { GroupKey };

/** A topic with its settings. */
export interface TopicSettings {
  /** Name of the topic. */
  readonly topic: string;
  /** Partitions, 1 to 64. */
  readonly partitions: number;
  /**
   * Partitions over which messages with an ordering key are spread: the number when no group last
   * had unread messages.
   */
  readonly keyedPartitions: number;
  /** Months that messages are kept; null: forever. */
  readonly retentionMonths: number | null;
}

export interface NewTopic {
  readonly topic: string;
  readonly partitions: number;
  readonly retentionMonths: number | null;
}

export interface TopicStore {
  /** Creates the topic with tables for this month and the next. Returns false when it exists. */
  create(topic: NewTopic): Promise<boolean>;
  /** All topics or this one, ordered by name. */
  list(topic?: string): Promise<TopicSettings[]>;
  /**
   * Adds partitions or changes the retention. Keyed messages use the new partitions at once when no
   * group has unread messages, else after a later call.
   */
  alter(change: NewTopic): Promise<void>;
  /** Removes the topic with its groups and tables. Returns false when it does not exist. */
  remove(topic: string): Promise<boolean>;
  /** Months that have a message table, in order. */
  months(topic: string): Promise<number[]>;
  /** Makes the missing tables of these months. */
  makeMonths(topic: string, months: readonly number[]): Promise<void>;
  /** Month of the database's clock. */
  currentMonth(): Promise<number>;
}

/** An encoded message to append. */
export interface QueuedMessage {
  readonly partition: number;
  readonly key: string | null;
  readonly type: string | null;
  readonly body: string;
  readonly contentType: string | null;
  readonly headers: string | null;
  readonly orderingKey: string | null;
  readonly delayMs: number | null;
  readonly deliverAtMs: number | null;
  /** A second message with this id is not appended; only in rowpost's own transactions. */
  readonly sourceId: string | null;
}

/** Origin of messages, stored in each row. */
export interface ProducerPlace {
  readonly group: string | null;
  readonly ip: string | null;
  readonly port: number | null;
}

export interface AppendRequest {
  readonly topic: string;
  readonly messages: readonly QueuedMessage[];
  /** What the messages' partitions were chosen by: {@link TopicSettings.keyedPartitions}. */
  readonly keyedPartitions: number;
  readonly producer: ProducerPlace;
  /** Called after each statement with rows, while the server writes and this process is idle. */
  readonly onSent?: (() => void) | undefined;
}

export interface AppendOptions {
  /** The caller alone has the transaction and does not end it during a statement. */
  readonly own?: boolean | undefined;
}

/**
 * The appends of one call in an open transaction. Each statement runs in the transaction in which
 * the call began, or throws `TransactionRequiredError` (rule: ended-transaction). It begins in the
 * turn of the user's call, with nothing awaited before the first statement. On a synchronous handle
 * it returns no promise and is done.
 */
export interface AppendCall {
  /** The topic as the transaction sees it. */
  findTopic(topic: string): TopicSettings | undefined | Promise<TopicSettings | undefined>;
  /** Appends all or nothing; a throw or a problem must be rolled back. */
  append(request: AppendRequest): AppendResult | Promise<AppendResult>;
}

/**
 * `stale`: the number of partitions for keys has changed. `missing`: the month has no table. Both
 * must be rolled back.
 */
export type AppendResult =
  | { readonly ids: readonly string[] }
  | { readonly problem: "unknown topic" | "stale partitions" }
  | { readonly problem: "missing month"; readonly month: number };

/** A message as a consumer reads it. */
export interface StoredQueueMessage {
  readonly id: string;
  readonly partition: number;
  readonly key: string | null;
  readonly type: string | null;
  /** "" when left out. */
  readonly body: string;
  /** Size in bytes of a body beyond the limit of the read. */
  readonly leftOutBytes?: number | undefined;
  readonly contentType: string | null;
  readonly headers: string | null;
  readonly orderingKey: string | null;
  /** Milliseconds until delivery by the database's clock; 0 or less: now. */
  readonly dueInMs: number;
}

/** A row of message_consumption. */
export interface Progress {
  readonly partition: number;
  /** The group's lowest unfinished id. */
  readonly nextId: string;
  /** Grows with each rewind: a delivery after it is no duplicate. */
  readonly round: number;
  readonly epoch: string;
}

/** Where a new group begins. */
export type GroupStart = "start" | "end" | { readonly id: string };

export interface ReadRequest {
  readonly topic: string;
  readonly month: number;
  readonly partition: number;
  /** First id, inclusive. */
  readonly fromId: string;
  /** Last id, inclusive: the counter as read before. */
  readonly toId: string;
  readonly limit: number;
  /** Leaves out bodies longer than this, in bytes; undefined: no limit. */
  readonly bodyLimit?: number | undefined;
}

/** The consumer of a record. */
export interface ConsumerPlace {
  readonly ip: string | null;
  readonly port: number | null;
  /** Id of the member: the owner in message_consumption. */
  readonly instance: string;
}

/** One attempt at one message, or at all messages of a partition from `id` to `lastId`. */
export interface ConsumptionRecord {
  readonly id: string;
  readonly lastId: string | null;
  readonly messages: number;
  readonly key: string | null;
  readonly attempt: number;
  /**
   * The last three are decisions of a person with attempt 0; `redelivered` after n attempts has -(n
   * + 1), since others may follow.
   */
  readonly result: "consumed" | "failed" | "dead" | "skipped" | "discarded" | "redelivered";
  readonly durationMs: number;
  readonly error: string | null;
}

/** A redelivery or dead letter of one group. */
export interface Redelivery {
  readonly id: string;
  /** Attempts so far; 0: a delayed message. */
  readonly attempt: number;
  readonly state: "waiting" | "dead";
  /** From now; null while it waits behind another message of its ordering key. */
  readonly dueInMs: number | null;
  readonly failReason: string | null;
  /** Set where it holds up its ordering key. */
  readonly orderingKey?: string | null | undefined;
  /** Came from message_redelivery: nothing is written if it is no longer there. */
  readonly again?: boolean | undefined;
}

/** What a member has finished in one partition. */
export interface Settlement {
  readonly partition: number;
  readonly epoch: string;
  readonly round: number;
  /** The progress as this member knows it. */
  readonly fromId: string;
  /** New progress; undefined: redeliveries only. */
  readonly nextId: string | undefined;
  /** A settle without an answer may have written it already; then it is not refused. */
  readonly mayBeWritten: boolean;
  readonly records: readonly ConsumptionRecord[];
  /** Inserted into message_redelivery, or updated there. */
  readonly redeliveries: readonly Redelivery[];
  /** Consumed and deleted from message_redelivery. */
  readonly redelivered: readonly string[];
  /** Ordering keys whose first waiting message becomes due. */
  readonly released?: readonly string[] | undefined;
}

export interface DueRedelivery {
  readonly id: string;
  readonly attempt: number;
  /** Attempts before the last redelivery by hand, which do not count. */
  readonly firstAttempt: number;
  /** Set where it holds up its ordering key. */
  readonly orderingKey: string | null;
}

/** Committed counters of a topic. */
export interface Counters {
  /** Last id of each partition: no more messages come at or below it. */
  readonly lastIds: ReadonlyMap<number, string>;
  readonly paused: boolean;
}

export interface RecordedAttempt {
  readonly id: string;
  readonly attempt: number;
  /** Only its begin is known: its error begins with `MEMBER_SILENT`. */
  readonly isSilent: boolean;
}

/** One group's side of the store. Shares its sessions with others of the same queue. */
export interface ConsumptionStore {
  /** One lease per partition; `shard` is the partition. */
  readonly leases: LeaseStore;
  /**
   * Makes the group's missing partition rows. A known group begins a new partition at its start,
   * since it has not read there.
   */
  join(start: GroupStart): Promise<void>;
  progress(partitions: readonly number[]): Promise<Progress[]>;
  /** Current counters; returns the same object while they are unchanged. */
  counters(): Promise<Counters>;
  /** Milliseconds until the first redelivery of each partition; negative: due. */
  firstDue(): Promise<ReadonlyMap<number, number>>;
  /** Those of the ordering keys that a waiting redelivery holds up. */
  heldUp(partition: number, orderingKeys: readonly string[]): Promise<string[]>;
  /** Messages in id order; undefined: the month has no table. */
  read(request: Omit<ReadRequest, "topic">): Promise<StoredQueueMessage[] | undefined>;
  /** Recorded attempts on these messages in this round of the group. */
  recorded(round: number, ids: readonly string[]): Promise<RecordedAttempt[]>;
  /** Oldest first. */
  due(partition: number, limit: number): Promise<DueRedelivery[]>;
  /** Messages in id order; those of dropped months are left out. */
  readIds(ids: readonly string[]): Promise<StoredQueueMessage[]>;
  /**
   * Writes everything in one transaction if the partition still has this owner, epoch and progress.
   * Returns false otherwise, with nothing written. Records of dropped months are left out.
   */
  settle(owner: string, settlement: Settlement, place: ConsumerPlace): Promise<boolean>;
  /**
   * The same within a transaction; false: roll it back. Rejects with `DatabaseConflictError` when a
   * month was dropped meanwhile; a repetition leaves its records out.
   */
  settleIn(tx: Executor, owner: string, settlement: Settlement, place: ConsumerPlace): Promise<boolean>;
  /** Whether the error, or one of its causes, is a conflict with another transaction. */
  isConflict(error: unknown): error is Error;
  close(): Promise<void>;
}

export interface QueueStore {
  readonly topics: TopicStore;
  readonly relayed: RelayedStore;
  /** The last work of an open transaction: the counter stays locked until it ends. */
  beginAppend(tx: Executor, options?: AppendOptions): AppendCall;
  consumption(key: GroupKey, options: { readonly lockWaitTimeoutMs: number }): ConsumptionStore;
  /** Makes the queue's own tables; returns what it did. */
  migrate(): Promise<readonly string[]>;
  close(): Promise<void>;
}
