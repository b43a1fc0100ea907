/**
 * The queue's store port: topics and their month tables, append, consume. Implemented once in
 * databases/sql/queue over whole statements per dialect. Types only.
 */
import type { LeaseStore } from "../relay/store.ts";
import type { Executor } from "../transactions/executor.ts";
import type { GroupKey } from "./group-key.ts";
import type { RelayedStore } from "./producing/relayed-store.ts";

export type { GroupKey };

/** A topic as its row says. */
export interface TopicSettings {
  /** Its name. */
  readonly topic: string;
  /** Partitions, 1 to 64. */
  readonly partitions: number;
  /**
   * Over how many of them messages with an ordering key are spread: as many as there were when
   * nobody had unread messages.
   */
  readonly keyedPartitions: number;
  /** Months that a message table is kept; null = for ever. */
  readonly retentionMonths: number | null;
}

export interface NewTopic {
  readonly topic: string;
  readonly partitions: number;
  readonly retentionMonths: number | null;
}

export interface TopicStore {
  /** The topic with these tables for this month and the next; false: it is there already. */
  create(topic: NewTopic): Promise<boolean>;
  /** All topics, or this one; in order of their names. */
  list(topic?: string): Promise<TopicSettings[]>;
  /**
   * More partitions, or another retention. Keyed messages are spread over the new partitions at
   * once when no group has unread messages, else by a later call.
   */
  alter(change: NewTopic): Promise<void>;
  /** The topic, its groups and all its tables. False: there was none. */
  remove(topic: string): Promise<boolean>;
  /** Months that have a message table, in order. */
  months(topic: string): Promise<number[]>;
  /** Makes the tables of these months, where they are missing. */
  makeMonths(topic: string, months: readonly number[]): Promise<void>;
  /** Month of the database's clock. */
  currentMonth(): Promise<number>;
}

/** A message to be appended, encoded. */
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
  /** A second one with this is not appended; only in transactions of rowpost's own. */
  readonly sourceId: string | null;
}

/** Where messages come from; stands in each row. */
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
  /**
   * Called behind each statement with rows: the server has something to write, and nothing has to
   * be done here until it answers.
   */
  readonly onSent?: (() => void) | undefined;
}

export interface AppendOptions {
  /** True: nobody but the caller has the transaction, and ends it between two statements. */
  readonly own?: boolean | undefined;
}

/**
 * One call's appends in an open transaction. Each of its statements runs in the transaction in
 * which the call was begun or not at all, and then it throws `TransactionRequiredError` (rule:
 * ended-transaction): begun in the turn of the user's call, with nothing awaited before the first
 * one. No promise: the handle is synchronous, and it is done.
 */
export interface AppendCall {
  /** The topic as the transaction sees it. */
  findTopic(topic: string): TopicSettings | undefined | Promise<TopicSettings | undefined>;
  /** Appends in it, all or nothing; a throw and a problem have to be rolled back. */
  append(request: AppendRequest): AppendResult | Promise<AppendResult>;
}

/**
 * What became of an append. `stale`: the topic has another number of partitions for keys now;
 * `missing`: no table for that month. Both have to be rolled back.
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
  /** "" where it was left out. */
  readonly body: string;
  /** Bytes of a body that is longer than the read allows; else undefined. */
  readonly leftOutBytes?: number | undefined;
  readonly contentType: string | null;
  readonly headers: string | null;
  readonly orderingKey: string | null;
  /** Milliseconds until it may be delivered, by the database's clock; 0 or less = now. */
  readonly dueInMs: number;
}

/** A partition's row in message_consumption. */
export interface Progress {
  readonly partition: number;
  /** The lowest id that the group has not finished. */
  readonly nextId: string;
  /** Grows with each rewind: a delivery after it is a new fact, not a duplicate. */
  readonly round: number;
  readonly epoch: string;
}

/** Where a group begins that is not known yet. */
export type GroupStart = "start" | "end" | { readonly id: string };

export interface ReadRequest {
  readonly topic: string;
  readonly month: number;
  readonly partition: number;
  /** From this id on, with it. */
  readonly fromId: string;
  /** Up to this id, with it: what the counter said before. */
  readonly toId: string;
  readonly limit: number;
  /** Longer bodies, in bytes, are left out; undefined: none is. */
  readonly bodyLimit?: number | undefined;
}

/** Who consumed. */
export interface ConsumerPlace {
  readonly ip: string | null;
  readonly port: number | null;
  /** Id of the member's start: the owner in message_consumption. */
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
   * The last three are decisions of a person: with attempt 0, and `redelivered` after n attempts
   * with -(n + 1), since others may follow it.
   */
  readonly result: "consumed" | "failed" | "dead" | "skipped" | "discarded" | "redelivered";
  readonly durationMs: number;
  readonly error: string | null;
}

/** A message that one group gets again, or no more. */
export interface Redelivery {
  readonly id: string;
  /** Attempts so far; 0 = a delayed message. */
  readonly attempt: number;
  readonly state: "waiting" | "dead";
  /** From now; null: when what stands before it in its ordering key is done. */
  readonly dueInMs: number | null;
  readonly failReason: string | null;
  /** Where it holds up its ordering key. */
  readonly orderingKey?: string | null | undefined;
  /** It was out of message_redelivery: nothing is written when it is there no more. */
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
  /** True: it may be written already, by a settle without an answer, and is not refused then. */
  readonly mayBeWritten: boolean;
  readonly records: readonly ConsumptionRecord[];
  /** Put into message_redelivery, or changed there. */
  readonly redeliveries: readonly Redelivery[];
  /** Taken out of message_redelivery: consumed at last. */
  readonly redelivered: readonly string[];
  /** Ordering keys whose first waiting message is due now. */
  readonly released?: readonly string[] | undefined;
}

/** A redelivery that is due. */
export interface DueRedelivery {
  readonly id: string;
  readonly attempt: number;
  /** Attempts that do not count: it was redelivered by hand behind them. */
  readonly firstAttempt: number;
  /** Where it holds up its ordering key. */
  readonly orderingKey: string | null;
}

/** What the counters say, committed. */
export interface Counters {
  /** Last id given in each partition: nothing at or below it comes any more. */
  readonly lastIds: ReadonlyMap<number, string>;
  /** Somebody has paused the group. */
  readonly paused: boolean;
}

/** An attempt that stands in the records. */
export interface RecordedAttempt {
  readonly id: string;
  readonly attempt: number;
  /** Only its begin is known: its error begins with `MEMBER_SILENT`. */
  readonly isSilent: boolean;
}

/** One group's side of the store. Its sessions are shared with those of the same queue. */
export interface ConsumptionStore {
  /** A lease for each partition; `shard` is the partition. */
  readonly leases: LeaseStore;
  /**
   * Makes the group's rows for partitions that lack one. A group that is known already begins a new
   * partition at its start: nobody has read there before.
   */
  join(start: GroupStart): Promise<void>;
  /** Progress of these partitions. */
  progress(partitions: readonly number[]): Promise<Progress[]>;
  /** What they say now; the same object as before, as long as that is the same. */
  counters(): Promise<Counters>;
  /** By partition, in how many milliseconds its first redelivery is due; below 0: it is. */
  firstDue(): Promise<ReadonlyMap<number, number>>;
  /** Of these ordering keys, those that a waiting redelivery holds up. */
  heldUp(partition: number, orderingKeys: readonly string[]): Promise<string[]>;
  /** Messages in order of their ids; undefined: the table of this month is not there. */
  read(request: Omit<ReadRequest, "topic">): Promise<StoredQueueMessage[] | undefined>;
  /** Attempts on these messages that are written in this round of the group. */
  recorded(round: number, ids: readonly string[]): Promise<RecordedAttempt[]>;
  /** Due redeliveries of a partition, the oldest first. */
  due(partition: number, limit: number): Promise<DueRedelivery[]>;
  /** Messages with these ids, in their order; those whose month is gone are left out. */
  readIds(ids: readonly string[]): Promise<StoredQueueMessage[]>;
  /**
   * Writes it all in one transaction, if the partition is still ours at this epoch and stands where
   * the settlement says; false: it does not, and nothing was written. Records of a month whose
   * tables were dropped are left out.
   */
  settle(owner: string, settlement: Settlement, place: ConsumerPlace): Promise<boolean>;
  /**
   * The same within a transaction; false: roll it back. Rejects with `DatabaseConflictError` when a
   * month was dropped meanwhile; its records are left out when the work is done again.
   */
  settleIn(tx: Executor, owner: string, settlement: Settlement, place: ConsumerPlace): Promise<boolean>;
  /** Was another transaction in the way? Looks at the error, and at what it has as its cause. */
  isConflict(error: unknown): error is Error;
  close(): Promise<void>;
}

export interface QueueStore {
  readonly topics: TopicStore;
  readonly relayed: RelayedStore;
  /** In an open transaction, as its last work: the counter stays locked until it ends. */
  beginAppend(tx: Executor, options?: AppendOptions): AppendCall;
  consumption(key: GroupKey, options: { readonly lockWaitTimeoutMs: number }): ConsumptionStore;
  /** Makes the queue's own tables; what was done now. */
  migrate(): Promise<readonly string[]>;
  close(): Promise<void>;
}
