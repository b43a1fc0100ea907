/** Assembles the message queue stored in SQL. */
import { networkInterfaces } from "node:os";
import { checkOptions, databaseWith, type OptionKinds } from "../runtime/check-options.ts";
import { systemClock } from "../runtime/clock.ts";
import { guardedMetrics, loggerOf } from "../runtime/guarded-ports.ts";
import type { Metrics } from "../runtime/metrics.ts";
import { loadTelemetry } from "../runtime/trace-context.ts";
import { wholeNumber } from "../runtime/whole-number.ts";
import type { Queue, QueueOptions } from "./api.ts";
import { startBatches } from "./consuming/batches.ts";
import { type Consumer, startConsumer } from "./consuming/consumer.ts";
import type { Lanes } from "./consuming/lanes.ts";
import type { TailedMessage } from "./consuming/message.ts";
import { observed } from "./consuming/observed.ts";
import { type ConsumerSettings, consumerSettings } from "./consuming/options.ts";
import { createPoolShare } from "./consuming/pool-share.ts";
import { startPuller } from "./consuming/puller.ts";
import { createWatch } from "./consuming/watch.ts";
import { groupCalls } from "./groups/calls.ts";
import type { DeadLetterParts } from "./groups/dead-letters.ts";
import { createAppender } from "./producing/append.ts";
import type { QueueMessage } from "./producing/encode.ts";
import { createRelayedAppends } from "./producing/relayed.ts";
import { checkedTail, type TailOptions, tail } from "./reading/tail.ts";
import { recallMessage } from "./recalling/recall.ts";
import { replay } from "./replaying/replay.ts";
import { keepHouse } from "./retention/housekeeping.ts";
import { applyRetention, dropMonth } from "./retention/retention.ts";
import { rewindGroup, rewindLog, undoRewind } from "./rewinding/rewind.ts";
import { openRooms } from "./rooms.ts";
import { searchQueue, showMessage } from "./searching/search.ts";
import type { ConsumptionStore } from "./store.ts";
import { checkGroup, checkTopic } from "./topics/names.ts";
import { createTopics } from "./topics/topics.ts";
import { verifyQueue } from "./verifying/verify.ts";

const monotonicMs = (): number => systemClock.monotonicMs();

/** Creates a queue on a database. Does not connect yet. */
export function createQueue(options: QueueOptions): Queue {
  const { appendTimeoutMs, database, metrics, producerGroup, port } = checkedOptions(options);
  const [store, share, watch] = [database.queue.store(), createPoolShare(database), createWatch(database.queue)];
  const { groups, recalling, searching, rewinding, retention, verifying, ...rooms } = openRooms(database.queue.sql);
  const topics = createTopics(store.topics, monotonicMs);
  const ip = options.ip ?? ownAddress();
  const appender = createAppender({
    store,
    topics,
    producer: { group: producerGroup ?? null, ip, port: port ?? null },
    doorbell: database.queue.doorbell,
    metrics,
    timeoutMs: appendTimeoutMs,
    besideServer: database.dialect !== "sqlite",
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

  async function join(settings: ConsumerSettings, lanes?: Lanes): Promise<Consumer> {
    const { topic, group, lockWaitTimeoutMs } = settings;
    const { partitions } = await topics.settings(topic);
    await loadTelemetry();
    const consumer = await startConsumer({
      store: store.consumption({ topic, group }, { lockWaitTimeoutMs }),
      ...observed(settings, metrics),
      topics: store.topics,
      place: { ip, port: port ?? null },
      lanes,
      watch,
      transaction: share.transaction,
    });
    const stopping = new AbortController();
    if (settings.transactional) await share.join(partitions, settings, stopping.signal);
    void keepHouse(
      {
        topic,
        clock: settings.clock,
        logger: settings.logger,
        store: retention,
        rewinding,
        prepareMonths: () => topics.prepareNow(topic),
        applyRetention: () => retain({ topic }),
        verify,
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
        settings.batches?.close();
        return consumer.stop();
      },
    };
  }

  const readingOf = (topic: string): ConsumptionStore =>
    store.consumption({ topic, group: "" }, { lockWaitTimeoutMs: 1_000 });

  const retain: Queue["applyRetention"] = (given) =>
    applyRetention({ store: retention, topics: store.topics, nowMs: () => systemClock.wallMs() }, given);

  const verify: Queue["verify"] = (given) =>
    verifyQueue(
      { store: verifying, rewinds: rewinding, requireTopic: (topic) => topics.settings(topic), monotonicMs },
      given,
    );

  async function* follow(given: TailOptions): AsyncGenerator<TailedMessage> {
    const { topic } = checkedTail(given);
    await topics.settings(topic);
    const reading = readingOf(topic);
    yield* tail(given, { store: reading, topics: store.topics, database: database.queue });
  }

  async function lastIds(topic: string): Promise<readonly string[]> {
    await topics.settings(topic);
    const reading = readingOf(topic);
    try {
      return [...(await reading.counters()).lastIds.values()];
    } finally {
      await reading.close();
    }
  }

  const byHand: DeadLetterParts = {
    store: groups,
    requireTopic: (topic) => topics.settings(topic),
    messages: readingOf,
    ip,
    transaction: (work) => database.transaction(work),
    prepare: (topic) => topics.prepareNow(topic),
    append: (messages, tx, own) => appender.append(messages, tx, own),
    wake: () => database.queue.doorbell.ring(),
  };
  return {
    relayed: createRelayedAppends({ database, appender, producerGroup, store: store.relayed, monotonicMs }),
    ...groupCalls(byHand),
    consume: async (given) => await join(consumerSettings(given)),
    consumeBatches: (given) => startBatches(join, given),
    pull: (given) => startPuller(join, given),
    replay: (given) => replay({ store: groups, join, lastIds }, given),
    tail: follow,
    search: (search) => searchQueue(searching, search),
    async message(topic, id) {
      await topics.settings(topic);
      return await showMessage(searching, topic, id);
    },
    recall: (given) => recallMessage({ recalling, searching, requireTopic: (topic) => topics.settings(topic) }, given),
    dropMonth: (given) => dropMonth(retention, given),
    applyRetention: retain,
    verify,
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
    months: (topic) => store.topics.months(checkTopic(topic)),
    deleteTopic: (topic) => topics.remove(topic),
    append,
    wake: () => database.queue.doorbell.ring(),
    async close() {
      await rooms.close();
      await store.close();
    },
  };
}

const KINDS: OptionKinds<QueueOptions> = {
  database: databaseWith("queue"),
  producerGroup: "string",
  ip: "string",
  port: "number",
  metrics: "object",
  appendTimeoutMs: "number",
};

const APPEND_TIMEOUT_MS = 30_000;

function checkedOptions(
  options: QueueOptions,
): QueueOptions & { readonly metrics: Metrics; readonly appendTimeoutMs: number } {
  checkOptions("createQueue", options, KINDS);
  const { appendTimeoutMs = APPEND_TIMEOUT_MS, producerGroup } = options;
  if (producerGroup !== undefined) checkGroup(producerGroup);
  wholeNumber("createQueue: appendTimeoutMs", appendTimeoutMs, 1);
  return { ...options, appendTimeoutMs, metrics: guardedMetrics(options.metrics, loggerOf(undefined)) };
}

function ownAddress(): string | null {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? null;
}
