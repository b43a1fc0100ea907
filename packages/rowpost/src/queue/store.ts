/**
 * Store port of the queue, implemented once in databases/sql/queue over whole statements per
 * dialect. Types only.
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
  /** Returns false when it exists. */
  create(topic: NewTopic): Promise<boolean>;
  list(topic?: string): Promise<TopicSettings[]>;
  /**
   * Keyed messages use new partitions at once when no group has unread messages, else after a later
   * call.
   */
  alter(change: NewTopic): Promise<void>;
  /** Returns false when it does not exist. */
  remove(topic: string): Promise<boolean>;
  /** In order. */
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
  /** Deduplicates appends; only in rowpost's own transactions. */
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
  /** {@link TopicSettings.keyedPartitions} by which the partitions were chosen. */
  readonly keyedPartitions: number;
  readonly producer: ProducerPlace;
  /** The server has rows to write, and this process is idle. */
  readonly onSent?: (() => void) | undefined;
}

export interface AppendOptions {
  /** The caller alone has the transaction and ends it between statements. */
  readonly own?: boolean | undefined;
}

/**
 * The appends of one call. Each statement runs in the transaction in which the call began, or
 * throws `TransactionRequiredError` (rule: ended-transaction). Nothing is awaited before the first
 * one. On a synchronous handle no promise is returned.
 */
export interface AppendCall {
  /** The topic as the transaction sees it. */
  findTopic(topic: string): TopicSettings | undefined | Promise<TopicSettings | undefined>;
  /** After a throw or a problem the transaction must be rolled back. */
  append(request: AppendRequest): AppendResult | Promise<AppendResult>;
}

/**
 * `stale`: the partitions for keys have changed. `missing`: the month has no table. Both must be
 * rolled back.
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
  /** Size in bytes of a body beyond the read's limit. */
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
  /** The counter as read before. */
  readonly toId: string;
  readonly limit: number;
  /** In bytes; undefined: no limit. */
  readonly bodyLimit?: number | undefined;
}

/** The consumer of a record. */
export interface ConsumerPlace {
  readonly ip: string | null;
  readonly port: number | null;
  /** Id of the member: the owner in message_consumption. */
  readonly instance: string;
}

/** For one message, or all of a partition from `id` to `lastId`. */
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
  /** From message_redelivery: not written if it is no longer there. */
  readonly again?: boolean | undefined;
}

export interface Settlement {
  readonly partition: number;
  readonly epoch: string;
  readonly round: number;
  /** The progress as this member knows it. */
  readonly fromId: string;
  /** New progress; undefined: redeliveries only. */
  readonly nextId: string | undefined;
  /** A settle without an answer may have written it. */
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
  /** Not counted: before the last redelivery by hand. */
  readonly firstAttempt: number;
  /** Set where it holds up its ordering key. */
  readonly orderingKey: string | null;
}

/** Committed counters of a topic. */
export interface Counters {
  /** No more messages come at or below it. */
  readonly lastIds: ReadonlyMap<number, string>;
  readonly paused: boolean;
}

export interface RecordedAttempt {
  readonly id: string;
  readonly attempt: number;
  /** Only its begin is known: its error begins with `MEMBER_SILENT`. */
  readonly isSilent: boolean;
}

/** Shares its sessions with other groups of the queue. */
export interface ConsumptionStore {
  /** `shard` is the partition. */
  readonly leases: LeaseStore;
  /** Makes missing partition rows. A known group begins a new partition at its start. */
  join(start: GroupStart): Promise<void>;
  progress(partitions: readonly number[]): Promise<Progress[]>;
  /** The same object while they are unchanged. */
  counters(): Promise<Counters>;
  /** By partition; negative: due. */
  firstDue(): Promise<ReadonlyMap<number, number>>;
  /** Those that a waiting redelivery holds up. */
  heldUp(partition: number, orderingKeys: readonly string[]): Promise<string[]>;
  /** Messages in id order; undefined: the month has no table. */
  read(request: Omit<ReadRequest, "topic">): Promise<StoredQueueMessage[] | undefined>;
  recorded(round: number, ids: readonly string[]): Promise<RecordedAttempt[]>;
  /** Oldest first. */
  due(partition: number, limit: number): Promise<DueRedelivery[]>;
  /** Messages of dropped months are left out. */
  readIds(ids: readonly string[]): Promise<StoredQueueMessage[]>;
  /**
   * Writes all in one transaction if the partition still has this owner, epoch and progress;
   * otherwise returns false with nothing written. Leaves out records of dropped months.
   */
  settle(owner: string, settlement: Settlement, place: ConsumerPlace): Promise<boolean>;
  /**
   * False: roll it back. Rejects with `DatabaseConflictError` when a month was dropped meanwhile; a
   * repetition leaves its records out.
   */
  settleIn(tx: Executor, owner: string, settlement: Settlement, place: ConsumerPlace): Promise<boolean>;
  /** Checks the error and its causes. */
  isConflict(error: unknown): error is Error;
  close(): Promise<void>;
}

export interface QueueStore {
  readonly topics: TopicStore;
  readonly relayed: RelayedStore;
  /** Do it last: the counter stays locked until the transaction ends. */
  beginAppend(tx: Executor, options?: AppendOptions): AppendCall;
  consumption(key: GroupKey, options: { readonly lockWaitTimeoutMs: number }): ConsumptionStore;
  /** Makes the queue's own tables; returns what it did. */
  migrate(): Promise<readonly string[]>;
  close(): Promise<void>;
}
