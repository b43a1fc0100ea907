/** Everything that a queue offers: what `createQueue` takes, and what it makes. */
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
  /** Where the queue's tables are: what `mysql()`, `postgres()` and the like make. */
  readonly database: Database;
  /** Name of the producing system; stands in each message's row. */
  readonly producerGroup?: string | undefined;
  /** Address of this process in rows. Default: the first of the host's that is not the loopback. */
  readonly ip?: string | undefined;
  /** Port of this process in rows, for instance the one that it serves on. */
  readonly port?: number | undefined;
  /**
   * How long an `append` without a transaction of yours waits for the database and for
   * transactions that hold the counters of its partitions, in ms. Default 30,000. What is begun by
   * then is rejected with `DatabaseUnavailableError`: nobody knows whether it was appended. What
   * waits behind it is rejected with `DatabaseConflictError`, at most as much later: nothing of it
   * was written.
   */
  readonly appendTimeoutMs?: number | undefined;
  /**
   * Takes what its consumers and appends measure; `createMetricsRegistry()` keeps it as Prometheus
   * text. Default: nothing is measured.
   */
  readonly metrics?: Metrics | undefined;
}

/** What `createQueue` makes. */
export interface Queue extends GroupCalls {
  /** Makes the queue's tables, where they are missing. Returns what was done now. */
  migrate(): Promise<readonly string[]>;
  /** Makes a topic and its tables for this month and the next. One that is there stays as it is. */
  createTopic(options: TopicOptions): Promise<{ readonly created: boolean; readonly topic: TopicSettings }>;
  /**
   * More partitions, or another retention. Messages with an ordering key go to new partitions once
   * no group has unread messages (`keyedPartitions` in the answer): call it again then.
   */
  alterTopic(options: TopicOptions): Promise<TopicSettings>;
  /** All topics, in order of their names. */
  topics(): Promise<TopicSettings[]>;
  /** Months of a topic that have tables, such as 202611, in order. */
  months(topic: string): Promise<number[]>;
  /** Removes a topic with its messages, records and groups. False: there was none. */
  deleteTopic(topic: string): Promise<boolean>;
  /**
   * Appends, all or nothing, in a transaction of its own. Resolves to the messages' ids, in their
   * order: decimal texts.
   *
   * Throws, with nothing written: `InvalidMessageError`, `InvalidNameError`, `UnknownTopicError`,
   * and what the database says.
   */
  append(messages: readonly QueueMessage[]): Promise<string[]>;
  append(message: QueueMessage): Promise<string[]>;
  /**
   * Appends in your transaction (what `outbox.enqueue` takes): messages are there if and only if it
   * commits. Do it last: other appends to the same partitions wait until it ends. Call {@link wake}
   * after the commit.
   */
  append(tx: unknown, messages: readonly QueueMessage[]): Promise<string[]>;
  /**
   * Joins a consumer group and calls the handler for each message, until `stop`. Members of a group
   * share the partitions; the partitions of one that dies go on within a second.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError`.
   */
  consume(options: QueueConsumeOptions): Promise<Consumer>;
  /**
   * {@link consume} for a handler that takes many messages at once. Each message has its own
   * outcome, attempts and record, and members of both kinds may share a group.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError`.
   */
  consumeBatches(options: ConsumeBatchesOptions): Promise<Consumer>;
  /**
   * Joins a consumer group for a loop of your own: `receive` gives messages, each is settled by its
   * `settle` or `fail`. All else is as with {@link consume}, and members of both kinds may share a
   * group. A puller holds its partitions while nobody receives, too.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError`.
   */
  pull(options: PullOptions): Promise<Puller>;
  /**
   * Hands a range of a topic to the handler once more, with a shadow group of its own,
   * `group@replay`: no other group moves. Resolves when each message of the range is consumed or a
   * dead letter; without dead letters the shadow group is deleted then.
   *
   * Throws `ConfigurationError`, `GroupExistsError`, `InvalidIdError`, `InvalidNameError`,
   * `UnknownTopicError`.
   */
  replay(options: ReplayOptions): Promise<ReplayReport>;
  /**
   * Follows a topic without a group, in the order of the ids within each partition: nobody's
   * progress moves. Ends with its limit, its signal, or the loop around it.
   *
   * Throws `ConfigurationError`, `InvalidNameError`, `UnknownTopicError` at its first message.
   */
  tail(options: TailOptions): AsyncIterable<TailedMessage>;
  /**
   * Messages of a topic, the newest first, a page at a time. The answer says what was searched, and
   * whether that was all.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `UnknownTopicError`.
   */
  search(search: QueueSearch): Promise<QueueSearchAnswer>;
  /**
   * A message with its body: who consumed it, when, from where, at which attempt, and which groups
   * have it still before them. Undefined: there is none.
   *
   * Throws `InvalidIdError`, `InvalidNameError`, `MonthDroppedError`, `UnknownTopicError`.
   */
  message(topic: string, id: string): Promise<QueueMessageDetail | undefined>;
  /**
   * Takes a message back for all groups: an attempt that begins later is none, and its record says
   * who recalled it and why. A consumer that has read the message before may still handle it.
   * Resolves to the message as it is then, with what each group has done with it; one that is
   * `unread` or `waiting` skips it, unless a member has it in hand. Undefined: there is none.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `MonthDroppedError`,
   * `UnknownTopicError`.
   */
  recall(options: RecallOptions): Promise<QueueMessageDetail | undefined>;
  /**
   * Moves the progress of a group: back, and messages come again, or ahead. Consumers may run. With
   * `dryRun` it counts what would come again.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `MonthDroppedError`,
   * `RewindRefusedError`, `UnknownGroupError`; nothing was changed then.
   */
  rewind(options: RewindOptions): Promise<RewindReport>;
  /**
   * Takes the last rewind of a group back: it goes on where it was before, but what has come again
   * meanwhile does not come once more. Throws as {@link rewind}.
   */
  undoRewind(options: UndoRewindOptions): Promise<RewindReport>;
  /** Who rewound a group, when, from where, to where and why: the newest first, at most 100. */
  rewinds(topic: string, group: string): Promise<RewindEntry[]>;
  /**
   * Drops the tables of a month that is over, archived first when asked, unless a group still needs
   * it.
   *
   * Throws `ArchiveError`, `ConfigurationError`, `InvalidNameError`, `MonthNotDroppedError`.
   */
  dropMonth(options: DropMonthOptions): Promise<MonthDropped>;
  /**
   * Drops every month past its topic's retention, of this topic or of all, and says what became of
   * each. Running consumers do this by themselves, without an archive.
   */
  applyRetention(options?: { readonly topic?: string; readonly archiveTo?: string }): Promise<RetentionOutcome[]>;
  /**
   * Looks for messages that a group has passed without a record, a redelivery or a rewind: there
   * are none, unless somebody changed the tables by hand, or rowpost has lost them.
   *
   * Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`, `UnknownGroupError`,
   * `UnknownTopicError`.
   */
  verify(options: VerifyOptions): Promise<VerifyAnswer>;
  /** Wakes the consumers of this process: something was committed. */
  wake(): void;
  /** What `queueBroker` works with. */
  readonly relayed: RelayedAppends;
  /** Closes what the queue opened; the database object stays open. */
  close(): Promise<void>;
}
