/** The message queue stored in SQL: topics, producers, consumers. */
import { networkInterfaces } from "node:os";
import type { Database } from "../databases/database.ts";
import { checkOptions, databaseWith, type OptionKinds } from "../runtime/check-options.ts";
import { systemClock } from "../runtime/clock.ts";
import { type Consumer, startConsumer } from "./consuming/consumer.ts";
import type { TailedMessage } from "./consuming/message.ts";
import { type ConsumeOptions, consumerSettings } from "./consuming/options.ts";
import { type GroupCalls, groupCalls } from "./groups/calls.ts";
import type { DeadLetterParts } from "./groups/dead-letters.ts";
import { createAppender } from "./producing/append.ts";
import type { QueueMessage } from "./producing/encode.ts";
import { createRelayedAppends, type RelayedAppends } from "./producing/relayed.ts";
import { checkedTail, type TailOptions, tail } from "./reading/tail.ts";
import { keepHouse } from "./retention/housekeeping.ts";
import {
  applyRetention,
  type DropMonthOptions,
  dropMonth,
  type MonthDropped,
  type RetentionOutcome,
} from "./retention/retention.ts";
import {
  type RewindOptions,
  type RewindReport,
  rewindGroup,
  rewindLog,
  type UndoRewindOptions,
  undoRewind,
} from "./rewinding/rewind.ts";
import type { RewindEntry } from "./rewinding/store.ts";
import {
  type QueueMessageDetail,
  type QueueSearch,
  type QueueSearchAnswer,
  searchQueue,
  showMessage,
} from "./searching/search.ts";
import type { TopicSettings } from "./store.ts";
import { checkGroup } from "./topics/names.ts";
import { createTopics, type TopicOptions } from "./topics/topics.ts";
import { type VerifyAnswer, type VerifyOptions, verifyQueue } from "./verifying/verify.ts";

/** Options of {@link createQueue}. */
export interface QueueOptions {
  /** Where the queue's tables are: what `mysql()`, `postgres()` and the like make. */
  readonly database: Database;
  /** Name of the producing system; stands in each message's row. */
  readonly producerGroup?: string | undefined;
  /** Address of this process in rows. Default: the first of the host's that is not the loopback. */
  readonly ip?: string | undefined;
  /** Port of this process in rows, for instance the one that it serves on. */
  readonly port?: number | undefined;
}

/** What {@link createQueue} makes. */
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
  consume(options: ConsumeOptions): Promise<Consumer>;
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

const monotonicMs = (): number => systemClock.monotonicMs();

/** Makes a queue on a database. Connects to nothing yet. */
export function createQueue(options: QueueOptions): Queue {
  const { database, producerGroup, port } = checkedOptions(options);
  const store = database.queue.store();
  const searching = store.searching();
  const rewinding = store.rewinding();
  const retention = store.retention();
  const verifying = store.verifying();
  const topics = createTopics(store.topics, monotonicMs);
  const ip = options.ip ?? ownAddress();
  const appender = createAppender({
    store,
    topics,
    producer: { group: producerGroup ?? null, ip, port: port ?? null },
    doorbell: database.queue.doorbell,
    transaction: (work) => database.transaction(work),
  });

  async function append(first: unknown, second?: readonly QueueMessage[]): Promise<string[]> {
    if (second === undefined) {
      return await appender.append(
        Array.isArray(first) ? (first as QueueMessage[]) : [first as QueueMessage],
        undefined,
      );
    }
    const executor = database.executor(first);
    const appending = appender.append(second, executor);
    return await (executor.watch?.(appending) ?? appending);
  }

  async function consume(given: ConsumeOptions): Promise<Consumer> {
    const settings = consumerSettings(given);
    const { topic, group, lockWaitTimeoutMs } = settings;
    await topics.settings(topic);
    const consumer = await startConsumer({
      settings,
      store: store.consumption({ topic, group }, { lockWaitTimeoutMs }),
      topics: store.topics,
      place: { ip, port: port ?? null },
      database: database.queue,
      transaction: (work) => database.transaction(work),
    });
    const stopping = new AbortController();
    void keepHouse(
      {
        ...{ topic, clock: settings.clock, logger: settings.logger, store: retention },
        prepareMonths: () => topics.prepareNow(topic),
        applyRetention: () => retain({ topic }),
      },
      stopping.signal,
    );
    return {
      owner: consumer.owner,
      get partitions() {
        return consumer.partitions;
      },
      stop() {
        stopping.abort();
        return consumer.stop();
      },
    };
  }

  const retain: Queue["applyRetention"] = (given) =>
    applyRetention({ store: retention, topics: store.topics, nowMs: () => systemClock.wallMs() }, given);

  async function* follow(given: TailOptions): AsyncGenerator<TailedMessage> {
    const { topic } = checkedTail(given);
    await topics.settings(topic);
    const reading = store.consumption({ topic, group: "" }, { lockWaitTimeoutMs: 1_000 });
    yield* tail(given, { store: reading, topics: store.topics, database: database.queue });
  }

  const groups = store.groups();
  const byHand: DeadLetterParts = {
    store: groups,
    requireTopic: (topic) => topics.settings(topic),
    messages: (topic) => store.consumption({ topic, group: "" }, { lockWaitTimeoutMs: 1_000 }),
    ip,
    transaction: (work) => database.transaction(work),
    prepare: (topic) => topics.prepareNow(topic),
    append: (messages, tx, own) => appender.append(messages, tx, own),
    wake: () => database.queue.doorbell.ring(),
  };
  return {
    relayed: createRelayedAppends({ database, appender, producerGroup, store: store.relayed, monotonicMs }),
    ...groupCalls(byHand),
    consume,
    tail: follow,
    search: (search) => searchQueue(searching, search),
    async message(topic, id) {
      await topics.settings(topic);
      return await showMessage(searching, topic, id);
    },
    dropMonth: (given) => dropMonth(retention, given),
    applyRetention: retain,
    verify: (given) =>
      verifyQueue(
        { store: verifying, rewinds: rewinding, requireTopic: (topic) => topics.settings(topic), monotonicMs },
        given,
      ),
    async rewind(given) {
      const report = await rewindGroup(rewinding, given);
      database.queue.doorbell.ring();
      return report;
    },
    undoRewind: (given) => undoRewind(rewinding, given),
    rewinds: (topic, group) => rewindLog(rewinding, topic, group),
    migrate: () => store.migrate(),
    createTopic: (topic) => topics.create(topic),
    alterTopic: (topic) => topics.alter(topic),
    topics: () => topics.list(),
    deleteTopic: (topic) => topics.remove(topic),
    append,
    wake: () => database.queue.doorbell.ring(),
    async close() {
      await groups.close();
      await searching.close();
      await rewinding.close();
      await retention.close();
      await verifying.close();
      await store.close();
    },
  };
}

const KINDS: OptionKinds<QueueOptions> = {
  database: databaseWith("queue"),
  producerGroup: "string",
  ip: "string",
  port: "number",
};

function checkedOptions(options: QueueOptions): QueueOptions {
  checkOptions("createQueue", options, KINDS);
  const { producerGroup } = options;
  if (producerGroup !== undefined) checkGroup(producerGroup);
  return options;
}

function ownAddress(): string | null {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? null;
}
