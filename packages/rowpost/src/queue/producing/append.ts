/**
 * Appends in a transaction shared with concurrent calls, repeated when a month's table was missing,
 * or in one of the user's.
 */
import type { QueueDatabase } from "../../databases/database.ts";
import {
  DatabaseUnavailableError,
  InvalidMessageError,
  RowpostError,
  UnknownTopicError,
} from "../../runtime/errors.ts";
import { grouped } from "../../runtime/grouped.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import { activeTraceHeaders, loadTelemetry } from "../../runtime/trace-context.ts";
import type { Executor } from "../../transactions/executor.ts";
import type { AppendOptions, AppendResult, ProducerPlace, QueueStore, TopicSettings } from "../store.ts";
import type { Topics } from "../topics/topics.ts";
import { encodeQueueMessage, type Item, partitionOf, placed, type QueueMessage } from "./encode.ts";
import { createGather, type Gather, type Round } from "./gather.ts";

export interface AppenderOptions {
  readonly store: Pick<QueueStore, "beginAppend">;
  readonly topics: Topics;
  readonly producer: ProducerPlace;
  readonly doorbell: QueueDatabase["doorbell"];
  readonly metrics: Metrics;
  readonly besideServer: boolean;
  /** Longest wait of an append without a transaction, in ms. */
  readonly timeoutMs: number;
  readonly transaction: <T>(work: (tx: Executor) => Promise<T>) => Promise<T>;
}

export interface Appender {
  /** All or nothing, with ids in order. After a throw the transaction must be rolled back. */
  appendIn(
    tx: Executor,
    items: readonly Item[],
    how?: AppendOptions & { readonly round?: Round | undefined },
  ): Promise<string[]>;
  /** Runs it again after creating what was missing. */
  mending<T>(topics: ReadonlySet<string>, run: () => Promise<T>): Promise<T>;
  /** `own`: headers set by rowpost. */
  append(
    messages: readonly QueueMessage[],
    tx: Executor | undefined,
    own?: Readonly<Record<string, string>>,
  ): Promise<string[]>;
}

/** One more each for a new month and changed partitions. */
const TRIES = 4;

/** Holds its counters for about 50 ms. */
const GATHERED_MESSAGES = 1_000;

interface Call {
  readonly items: readonly Item[];
  ids: readonly string[];
}

export function createAppender(options: AppenderOptions): Appender {
  const { besideServer, metrics, store, topics, producer, doorbell, timeoutMs, transaction } = options;
  let turn = 0;
  const underWay = new Set<string>();
  /** Per set of topics, so that waiting for their counters delays no others. */
  const gathers = new Map<string, Gather<Call>>();

  function gatherOf(names: Iterable<string>): Gather<Call> {
    const topic = [...names].join(" ");
    const known = gathers.get(topic);
    if (known !== undefined) return known;
    const made = createGather<Call>({
      commit,
      besideServer,
      withinMs: timeoutMs,
      most: GATHERED_MESSAGES,
      partitionsOf: ({ items }) => {
        const settings = topics.known(topic);
        const keyed = items.filter(({ message }) => message.orderingKey !== null);
        // With several topics, calls wait for each other.
        if (settings === undefined) return keyed.length === 0 ? [] : [-1];
        return keyed.map(({ message }) => partitionOf(message, settings, 0));
      },
      sizeOf: ({ items }) => items.length,
      // After a COMMIT without an answer, another append could append twice.
      leftNothing: (error) => !(error instanceof DatabaseUnavailableError),
    });
    gathers.set(topic, made);
    return made;
  }

  async function commit(calls: readonly Call[], round: Round): Promise<void> {
    const items = calls.flatMap((call) => call.items);
    // Its callers were told that the outcome is unknown, so it must not commit.
    const unlessOver = (): void => {
      if (round.isOver) throw new DatabaseUnavailableError("append: it was given up");
    };
    const ids = await mended(() =>
      transaction(async (tx) => {
        unlessOver();
        const appended = await appendIn(tx, items, { own: true, round });
        unlessOver();
        return appended;
      }),
    );
    let next = 0;
    for (const call of calls) {
      call.ids = ids.slice(next, next + call.items.length);
      next += call.items.length;
    }
  }

  /**
   * Topics in order of names, as everything that locks several counters. Awaits nothing before the
   * first statement, nor on a synchronous handle, because the user continues and may end the
   * transaction (rule: ended-transaction).
   */
  async function appendIn(...[tx, items, how = {}]: Parameters<Appender["appendIn"]>): Promise<string[]> {
    const { own, round } = how;
    const call = store.beginAppend(tx, { own });
    const ids: string[] = [];
    const byTopic = grouped(items.entries(), ([, { topic }]) => topic);
    for (const [topic, entries] of [...byTopic].sort(([left], [right]) => (left < right ? -1 : 1))) {
      const reading = topics.known(topic) ?? call.findTopic(topic);
      const settings = (reading instanceof Promise ? await reading : reading) ?? (await unseen(topic));
      const { keyedPartitions } = settings;
      const next = nextTurn(settings, round);
      const messages = entries.map(([, { message }]) => placed(message, partitionOf(message, settings, next)));
      if (round !== undefined) for (const { partition } of messages) round.holds.add(partition);
      const appending = call.append({ topic, messages, producer, keyedPartitions, onSent: round?.onSent });
      const result = appending instanceof Promise ? await appending : appending;
      if (!("ids" in result)) throw new NotAppended(topic, result);
      for (const [place, [index]] of entries.entries()) ids[index] = result.ids[place] ?? "";
    }
    return ids;
  }

  /** Skips partitions held up by slow rounds, unless all are. */
  function nextTurn({ partitions }: TopicSettings, round: Round | undefined): number {
    for (let tried = 0; tried < partitions; tried += 1) {
      turn = (turn + 1) % 0x40000000;
      if (round?.avoid.has(turn % partitions) !== true) break;
    }
    return turn;
  }

  /** Missing, or newer than the transaction's snapshot. */
  async function unseen(topic: string): Promise<never> {
    await topics.settings(topic);
    throw new NotAppended(topic, { problem: "stale partitions" });
  }

  async function prepare(names: Iterable<string>): Promise<void> {
    for (const topic of names) {
      await topics.settings(topic);
      await topics.prepareNow(topic);
    }
  }

  /**
   * The user's transaction may hold SQLite's lock or block an ALTER. So tables are made in
   * parallel, for later appends.
   */
  async function appendBeside(tx: Executor, names: ReadonlySet<string>, items: readonly Item[]): Promise<string[]> {
    const appending = appendIn(tx, items);
    for (const topic of names) beside(topic, () => prepare([topic]));
    try {
      return await appending;
    } catch (error) {
      if (error instanceof NotAppended) {
        const { topic, problem } = error;
        topics.forget(topic);
        if (problem.problem === "missing month") {
          beside(`${topic} ${problem.month}`, () => topics.prepare(topic, problem.month));
        }
      }
      throw error;
    }
  }

  function count(items: readonly Item[]): void {
    for (const [topic, those] of grouped(items, (item) => item.topic))
      metrics.increment("rowpost_appended_total", { topic }, those.length);
  }

  /** One at a time per name; the next append retries a failure. */
  function beside(name: string, work: () => Promise<void>): void {
    if (underWay.has(name)) return;
    underWay.add(name);
    void work()
      .catch(() => undefined)
      .finally(() => underWay.delete(name));
  }

  async function mended<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const result = await run();
        doorbell.ring();
        return result;
      } catch (error) {
        if (!(error instanceof NotAppended)) throw error;
        await mend(error);
        if (attempt >= TRIES) throw error;
      }
    }
  }

  /** DDL would commit the append's transaction. */
  async function mend({ topic, problem }: NotAppended): Promise<void> {
    topics.forget(topic);
    if (problem.problem === "unknown topic") {
      await topics.settings(topic);
      return;
    }
    if (problem.problem === "missing month") await topics.prepare(topic, problem.month);
  }

  return {
    appendIn,
    async mending(names, run) {
      await prepare(names);
      return await mended(run);
    },
    async append(messages, tx, own) {
      const loading = loadTelemetry();
      // Nothing is awaited before the user's first statement.
      if (tx === undefined && loading !== undefined) await loading;
      const trace = activeTraceHeaders();
      const added = trace === undefined ? own : { ...trace, ...own };
      const items = messages.map((message) => encodeQueueMessage(message, added));
      const names = new Set(items.map(({ topic }) => topic).sort());
      if (tx === undefined) {
        await prepare(names);
        const call: Call = { items, ids: [] };
        if (names.size > 0) await gatherOf(names).run(call);
        count(items);
        return [...call.ids];
      }
      if (items.some(({ message }) => message.sourceId !== null)) {
        throw new InvalidMessageError(
          "sourceId is for appends without a transaction of yours: in yours, what is done once is appended once",
        );
      }
      const ids = await appendBeside(tx, names, items);
      count(items);
      return ids;
    },
  };
}

/** Reaches the user's transaction too, which must be rolled back. */
class NotAppended extends RowpostError {
  readonly topic: string;
  readonly problem: Exclude<AppendResult, { readonly ids: readonly string[] }>;

  constructor(topic: string, problem: NotAppended["problem"]) {
    const unknown = problem.problem === "unknown topic" ? new UnknownTopicError(topic).message : undefined;
    super(
      "NOT_APPENDED",
      unknown ?? `topic ${topic} has changed meanwhile (${problem.problem}): roll back and run the transaction again`,
      { retriable: unknown === undefined },
    );
    this.topic = topic;
    this.problem = problem;
  }
}
