/**
 * What a case works with: two instances, a topic of its own, messages of months that are over,
 * members of groups, and other connections that stand in the way.
 */
import assert from "node:assert/strict";
import type { Database } from "../../../src/databases/database.ts";
import type { QueueRooms } from "../../../src/queue/rooms.ts";
import type {
  AppendRequest,
  AppendResult,
  ConsumptionStore,
  QueuedMessage,
  QueueStore,
} from "../../../src/queue/store.ts";
import type { Executor } from "../../../src/transactions/executor.ts";
import { type WhileOpen, waitingForLocks, whileOpen } from "../in-the-way.ts";
import type { RunSql, TestDialect } from "../test-dialect.ts";
import { LOCK_WAIT_MS, type QueueBench, type QueueInstance } from "./bench.ts";
import type { QueueStoreHarness } from "./harness.ts";
import { createMember, type Member, type MemberOptions } from "./member.ts";
import { createOldMonths, type OldMessage } from "./old-months.ts";

/** How {@link QueueCaseContext.append} appends. */
export interface AppendOptions {
  /** Default: the case's topic. */
  readonly topic?: string | undefined;
  /** Default: the first one. */
  readonly instance?: QueueInstance | undefined;
  /** What the partitions were chosen by. Default: all partitions of the case's topic. */
  readonly keyedPartitions?: number | undefined;
}

/** Handed to each case. */
export interface QueueCaseContext extends Omit<QueueRooms, "close"> {
  /** What the suite was called with. */
  readonly harness: QueueStoreHarness;
  /** Its SQL for tests. */
  readonly dialect: TestDialect;
  /** Of the first instance. */
  readonly database: Database;
  /** Of the first instance. */
  readonly store: QueueStore;
  /** A second instance: other sessions, other objects, the same database. */
  readonly other: QueueInstance;
  /** A topic of two partitions, kept for ever, made before the case. */
  readonly topic: string;
  /** Month of the database's clock. */
  readonly month: number;
  /** Runs a statement by hand, on a connection of its own. */
  readonly sql: RunSql;
  /** Rows of a statement by hand, with names in lower case. */
  readonly rows: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Name of a topic that no other case has; it is removed after the case. */
  readonly freshTopic: () => string;
  /** A request for the case's topic; partition 0 unless a message says otherwise. */
  readonly request: (messages: readonly Partial<QueuedMessage>[], options?: AppendOptions) => AppendRequest;
  /** Appends in a transaction of its own, which has to succeed; ids. */
  readonly append: (messages: readonly Partial<QueuedMessage>[], options?: AppendOptions) => Promise<readonly string[]>;
  /** The same in an open transaction. */
  readonly appendIn: (
    tx: Executor,
    messages: readonly Partial<QueuedMessage>[],
    options?: AppendOptions,
  ) => Promise<AppendResult>;
  /** Messages of a month that is over, whose tables are made; ids, in the order of the list. */
  readonly putOld: (month: number, messages: readonly OldMessage[]) => Promise<string[]>;
  /** A group's side; closed after the case. */
  readonly consumption: (group: string, instance?: QueueInstance) => ConsumptionStore;
  /** Joins, and takes the partitions, whoever holds them. */
  readonly member: (options?: MemberOptions) => Promise<Member>;
  /** A third connection does something first in its transaction, and commits later. */
  readonly whileOpen: <T>(first: (run: RunSql) => Promise<unknown>, interleaving: WhileOpen<T>) => Promise<T>;
  /** Resolves when that many connections wait for a lock, or when `unless` says so. */
  readonly waiting: (connections: number, unless?: () => boolean) => Promise<void>;
}

/** A message that is nothing special; changes replace parts of it. */
function plainMessage(changes: Partial<QueuedMessage> = {}): QueuedMessage {
  return {
    partition: 0,
    key: null,
    type: null,
    body: "{}",
    contentType: null,
    headers: null,
    orderingKey: null,
    delayMs: null,
    deliverAtMs: null,
    sourceId: null,
    ...changes,
  };
}

/** Topics are told apart by a number that no other case of this process has. */
let topics = 0;

function freshTopicName(): string {
  topics += 1;
  return `contract_${process.pid}_${topics}`;
}

/** Thrown to roll a transaction back. */
export class ChangedMind extends Error {}

/**
 * Makes the context of one run of one case. What `atEnd` collects is to be called after the case,
 * the last one first.
 */
export async function createQueueContext(
  bench: QueueBench,
  atEnd: (() => Promise<unknown>)[],
): Promise<QueueCaseContext> {
  const { dialect, first, second } = bench;
  const { store } = first;
  const topic = freshTopicName();
  atEnd.push(() => store.topics.remove(topic));
  await store.topics.create({ topic, partitions: 2, retentionMonths: null });

  function consumption(group: string, instance = first, of = topic): ConsumptionStore {
    const opened = instance.store.consumption({ topic: of, group }, { lockWaitTimeoutMs: LOCK_WAIT_MS });
    atEnd.push(() => opened.close());
    return opened;
  }

  const request: QueueCaseContext["request"] = (messages, { topic: of = topic, keyedPartitions = 2 } = {}) => ({
    topic: of,
    messages: messages.map(plainMessage),
    keyedPartitions,
    producer: { group: "contract", ip: "10.0.0.7", port: 4711 },
  });

  const appendIn: QueueCaseContext["appendIn"] = async (tx, messages, options) =>
    (options?.instance ?? first).store.beginAppend(tx).append(request(messages, options));

  return {
    harness: bench.harness,
    dialect,
    topic,
    sql: bench.sql,
    other: second,
    ...first,
    ...first.rooms,
    month: await store.topics.currentMonth(),
    async rows(text) {
      const { rows } = await bench.sql(text);
      return rows.map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value])),
      );
    },
    freshTopic() {
      const name = freshTopicName();
      atEnd.push(() => store.topics.remove(name));
      return name;
    },
    request,
    appendIn,
    async append(messages, options) {
      const { database } = options?.instance ?? first;
      const result = await database.transaction((tx) => appendIn(tx, messages, options));
      assert.ok("ids" in result, `nothing was appended: ${JSON.stringify(result)}`);
      assert.equal(result.ids.length, messages.length, "an id for each message");
      return result.ids;
    },
    putOld: createOldMonths(bench, topic),
    consumption,
    member: (options) => createMember(options, consumption),
    whileOpen: (work, interleaving) => whileOpen(bench, work, interleaving),
    waiting: (connections, unless) => waitingForLocks(bench, connections, unless),
  };
}

/** Does the work in a transaction that is then rolled back. */
export async function rolledBack(database: Database, work: (tx: Executor) => Promise<unknown>): Promise<void> {
  const transaction = database.transaction(async (tx) => {
    await work(tx);
    throw new ChangedMind();
  });
  await assert.rejects(transaction, ChangedMind);
}
