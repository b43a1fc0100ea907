/** Public interface of a queue. */
import type { Database } from "../databases/database.ts";
import type { Metrics } from "../runtime/metrics.ts";
import type { ConsumeBatchesOptions } from "./consuming/batches.ts";
import type { Consumer } from "./consuming/consumer.ts";
import type { TailedMessage } from "./consuming/message.ts";
import type { QueueConsumeOptions } from "./consuming/options.ts";
import type { PullOptions } from "./consuming/pull-options.ts";
import type { Puller } from "./consuming/puller.ts";
import type { GroupCalls } from "./groups/calls.ts";
import type { QueueMessage } from "./producing/encode.ts";
import type { RelayedAppends } from "./producing/relayed.ts";
import type { TailOptions } from "./reading/tail.ts";
import type { RecallOptions } from "./recalling/recall.ts";
import type { ReplayOptions, ReplayReport } from "./replaying/replay.ts";
import type { DropMonthOptions, MonthDropped, RetentionOutcome } from "./retention/retention.ts";
import type { RewindEntry } from "./rewinding/requests.ts";
import type { RewindOptions, RewindReport, UndoRewindOptions } from "./rewinding/rewind.ts";
import type { QueueMessageDetail, QueueSearch, QueueSearchAnswer } from "./searching/search.ts";
import type { TopicSettings } from "./store.ts";
import type { TopicOptions } from "./topics/topics.ts";
import type { VerifyAnswer, VerifyOptions } from "./verifying/verify.ts";

/** Options of `createQueue`. */
export interface QueueOptions {
  /** Database object with the queue's tables, as made by `mysql()`, `postgres()` and the like. */
  readonly database: Database;
  /** Name of the producing system, stored in each message's row. */
  readonly producerGroup?: string | undefined;
  /** Address of this process, stored in rows. Default: the host's first non-loopback address. */
  readonly ip?: string | undefined;
  /** Port of this process, stored in rows, for instance its HTTP port. */
  readonly port?: number | undefined;
  /**
   * Longest wait of an `append` without your transaction for the database and for transactions that
   * hold the counters of its partitions, in ms. Default 30,000. Appends already begun are then
   * rejected with `DatabaseUnavailableError`: whether they took effect is unknown. Appends queued
   * behind them are rejected with `DatabaseConflictError`, at most as much later: nothing of them
   * was written.
   */
  readonly appendTimeoutMs?: number | undefined;
  /**
   * Receives the measurements of consumers and appends; `createMetricsRegistry()` keeps them as
   * Prometheus text. Default: no metrics.
   */
  readonly metrics?: Metrics | undefined;
}

/** A queue, as returned by `createQueue`. */
export interface Queue extends GroupCalls {
  /** Creates the missing tables of the queue. Returns what it did. */
  migrate(): Promise<readonly string[]>;
  /**
   * Creates a topic with its tables for this month and the next. An existing topic is left
   * unchanged.
   */
  createTopic(options: TopicOptions): Promise<{ readonly created: boolean; readonly topic: TopicSettings }>;
  /**
   * Adds partitions or changes the retention. Messages with an ordering key use new partitions only
   * once no group has unread messages (see `keyedPartitions` in the answer): call it again then.
   */
  alterTopic(options: TopicOptions): Promise<TopicSettings>;
  /** Lists all topics, ordered by name. */
  topics(): Promise<TopicSettings[]>;
  /** Lists the months of a topic that have tables, such as 202611, in order. */
  months(topic: string): Promise<number[]>;
  /**
   * Removes a topic with its messages, records and groups. Returns false when it does not exist.
   */
  deleteTopic(topic: string): Promise<boolean>;
  /**
   * Appends all messages or none, in a transaction of its own. Resolves to their ids as decimal
   * strings, in the same order.
   *
   * Throws `InvalidMessageError`, `InvalidNameError`, `UnknownTopicError` or the database's error,
   * with nothing written.
   */
  append(messages: readonly QueueMessage[]): Promise<string[]>;
  append(message: QueueMessage): Promise<string[]>;
  /**
   * Appends in your transaction (as for `outbox.enqueue`): the messages exist if and only if it
   * commits. Do it last, since other appends to the same partitions wait for its end, and call
   * {@link wake} after the commit.
   */
  append(tx: unknown, messages: readonly QueueMessage[]): Promise<string[]>;
  /**
   * Joins a consumer group and calls the handler for each message until `stop`. Members of a group
   * share the partitions; other members take over the partitions of a dead one within a second.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError`.
   */
  consume(options: QueueConsumeOptions): Promise<Consumer>;
  /**
   * {@link consume} with a handler of many messages. Each message has its own outcome, attempts and
   * record; a group may have members of both kinds.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError`.
   */
  consumeBatches(options: ConsumeBatchesOptions): Promise<Consumer>;
  /**
   * Joins a consumer group with a loop of your own: `receive` returns messages, each to be settled
   * by its `settle` or `fail`. Otherwise like {@link consume}; a group may have members of both
   * kinds. A puller keeps its partitions even while nothing calls `receive`.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError`.
   */
  pull(options: PullOptions): Promise<Puller>;
  /**
   * Passes a range of a topic to the handler again, in a shadow group `group@replay`; no other
   * group moves. Resolves when each message of the range is consumed or dead. Without dead letters
   * the shadow group is then deleted.
   *
   * Throws `ConfigurationError`, `GroupExistsError`, `InvalidIdError`, `InvalidNameError`,
   * `UnknownTopicError`.
   */
  replay(options: ReplayOptions): Promise<ReplayReport>;
  /**
   * Follows a topic without a group, in id order within each partition; no progress moves. Ends
   * with its limit, its signal, or the loop around it.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError` at its first message.
   */
  tail(options: TailOptions): AsyncIterable<TailedMessage>;
  /**
   * Finds messages of a topic, newest first, a page at a time. The answer says what was searched
   * and whether the search is complete.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `UnknownTopicError`.
   */
  search(search: QueueSearch): Promise<QueueSearchAnswer>;
  /**
   * Returns a message with its body and its consumption: who consumed it, when, from where, at
   * which attempt, and which groups have yet to read it. Undefined when it does not exist.
   *
   * Throws `InvalidIdError`, `InvalidNameError`, `MonthDroppedError`, `UnknownTopicError`.
   */
  message(topic: string, id: string): Promise<QueueMessageDetail | undefined>;
  /**
   * Recalls a message for all groups: later attempts skip it, and its record says who recalled it
   * and why. A consumer that has already read the message may still handle it. Resolves to the
   * message with its state in each group; a group in which it is `unread` or `waiting` skips it,
   * unless a member is handling it. Undefined when it does not exist.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `MonthDroppedError`,
   * `UnknownTopicError`.
   */
  recall(options: RecallOptions): Promise<QueueMessageDetail | undefined>;
  /**
   * Moves the progress of a group back, so that messages come again, or ahead. Consumers may keep
   * running. With `dryRun` it only counts the messages that would come again.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `MonthDroppedError`,
   * `RewindRefusedError`, `UnknownGroupError`, with nothing changed.
   */
  rewind(options: RewindOptions): Promise<RewindReport>;
  /**
   * Reverts the last rewind of a group. Messages that came again meanwhile do not come once more.
   * Throws as {@link rewind}.
   */
  undoRewind(options: UndoRewindOptions): Promise<RewindReport>;
  /** Lists the rewinds of a group (who, when, from, to, why), newest first, at most 100. */
  rewinds(topic: string, group: string): Promise<RewindEntry[]>;
  /**
   * Drops the tables of a past month unless a group still needs it, archiving them first when
   * asked.
   *
   * Throws `ArchiveError`, `ConfigurationError`, `InvalidNameError`, `MonthNotDroppedError`.
   */
  dropMonth(options: DropMonthOptions): Promise<MonthDropped>;
  /**
   * Drops every month past its topic's retention, for one topic or all, and reports the outcome of
   * each. Running consumers do this by themselves, without an archive.
   */
  applyRetention(options?: { readonly topic?: string; readonly archiveTo?: string }): Promise<RetentionOutcome[]>;
  /**
   * Looks for messages that a group has passed without a record, a redelivery or a rewind. Any
   * found means that the tables were changed by hand or that rowpost lost them.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `UnknownGroupError`,
   * `UnknownTopicError`.
   */
  verify(options: VerifyOptions): Promise<VerifyAnswer>;
  /** Wakes the consumers of this process after a commit. */
  wake(): void;
  /** Used by `queueBroker`. */
  readonly relayed: RelayedAppends;
  /** Closes everything the queue opened; the database object stays open. */
  close(): Promise<void>;
}
