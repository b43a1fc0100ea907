/**
 * Looks at the message queue beside a message table, where there is one: once a minute, some topics
 * at a time. A partition of a group costs one statement that reads nothing when all is consumed,
 * and else up to five, which read 1,000 entries of a primary key at most.
 */
import { type AlertStore, type Database, describeError, type Logger, RowpostError } from "rowpost";
import { createQueue, type Queue, UnknownTopicError } from "rowpost/queue";
import { isMissingTable } from "../database-url.ts";
import { groupSeen, type QueueMemory, type TablesSeen, type TopicSeen, tablesSeen } from "./queue-rules.ts";
import type { RuleName, Rules } from "./rules.ts";

const EVERY_MS = 60_000;
/** Where there is no queue, or none that may be read. */
const ABSENT_MS = 300_000;
const TABLES_MS = 600_000;
/** The look ends behind the topic with which it has seen so many partitions, one for each group. */
const MOST_PARTITIONS = 256;
/** And when it took so long: the lease of alerts must not end meanwhile. */
const LONGEST_MS = 10_000;
/** Dead letters of a partition, and redeliveries before them, that are counted. */
const COUNT_UP_TO = 1_000;

const RULES: readonly RuleName[] = ["queue-lag", "queue-dead", "queue-paused", "queue-tables"];

export interface QueueLookOptions {
  /** Name of the source. */
  readonly name: string;
  readonly database: Database;
  readonly alerts: Pick<AlertStore, "hasQueue">;
  readonly rules: Rules;
  readonly logger: Logger;
  readonly monotonicMs: () => number;
}

/** `clockMs`: of the lifecycle. `nowMs`: epoch, by the database. */
export interface Instant {
  readonly clockMs: number;
  readonly nowMs: number;
}

export interface QueueLook {
  /** What is known now. Never rejects: what is wrong with the queue keeps no other rule from it. */
  look(before: QueueMemory | null, at: Instant): Promise<QueueMemory | null>;
  close(): Promise<void>;
}

/** Makes it. Nothing is opened where there is no queue. */
export function createQueueLook(options: QueueLookOptions): QueueLook {
  const { alerts, database, logger, name, rules } = options;
  const isWanted = RULES.some((rule) => rules[rule] !== undefined);
  let queue: Queue | undefined;
  let problem: string | undefined;

  async function looked(before: QueueMemory | null, at: Instant): Promise<QueueMemory> {
    if (before?.isThere !== true && !(await alerts.hasQueue())) return absent(at.clockMs);
    queue ??= createQueue({ database });
    return await lookAtQueue(queue, before, { ...options, ...at });
  }

  return {
    async look(before, at) {
      if (!isWanted) return null;
      const waitMs = before?.isThere === true ? EVERY_MS : ABSENT_MS;
      if (before !== null && at.clockMs - before.lookedMs < waitMs) return before;
      try {
        const seen = await looked(before, at);
        problem = undefined;
        return seen;
      } catch (error) {
        if (isMissingTable(error)) return absent(at.clockMs);
        // A right that is missing is one line, not one for each look.
        const text = describeError(error);
        if (text !== problem) logger.warn("the message queue cannot be looked at", { source: name, error: text });
        problem = text;
        // Who cannot look for a moment forgets nothing: it would count as over.
        const isPassing = error instanceof RowpostError && error.retriable && before !== null;
        return isPassing ? { ...before, lookedMs: at.clockMs } : absent(at.clockMs);
      }
    },
    async close() {
      await queue?.close();
    },
  };
}

function absent(clockMs: number): QueueMemory {
  return { lookedMs: clockMs, isThere: false, after: "", topics: [] };
}

/** As many topics as the look may take, those that waited for longest first. */
async function lookAtQueue(
  queue: Queue,
  before: QueueMemory | null,
  options: Instant & Pick<QueueLookOptions, "monotonicMs" | "rules">,
): Promise<QueueMemory> {
  const { clockMs, monotonicMs } = options;
  const startMs = monotonicMs();
  const settings = await queue.topics();
  const known = new Map((before?.topics ?? []).map((each) => [each.topic, each]));
  const after = before?.after ?? "";
  const order = [...settings.filter(({ topic }) => topic > after), ...settings.filter(({ topic }) => topic <= after)];
  const seen = new Map(settings.flatMap(({ topic }) => known.get(topic) ?? []).map((each) => [each.topic, each]));
  let partitions = 0;
  let count = 0;
  for (const { retentionMonths, topic } of order) {
    if (partitions >= MOST_PARTITIONS || monotonicMs() - startMs > LONGEST_MS) break;
    count += 1;
    const found = await lookAtTopic(queue, { topic, retentionMonths, known: known.get(topic) }, options);
    if (found === undefined) seen.delete(topic);
    else seen.set(topic, found.seen);
    partitions += found?.partitions ?? 1;
  }
  const isAll = count === order.length;
  return {
    ...{ lookedMs: clockMs, isThere: true, after: isAll ? "" : (order[count - 1]?.topic ?? "") },
    topics: [...seen.values()],
  };
}

interface TopicRequest {
  readonly topic: string;
  readonly retentionMonths: number | null;
  readonly known: TopicSeen | undefined;
}

/** Undefined: it was deleted meanwhile. */
async function lookAtTopic(
  queue: Queue,
  { known, retentionMonths, topic }: TopicRequest,
  options: Instant & Pick<QueueLookOptions, "rules">,
): Promise<{ readonly seen: TopicSeen; readonly partitions: number } | undefined> {
  try {
    const groups = await queue.groups({ topic, countUpTo: COUNT_UP_TO, lagUpTo: 1 });
    const isFresh = known !== undefined && options.clockMs - known.tables.lookedMs < TABLES_MS;
    const tables: TablesSeen = isFresh
      ? known.tables
      : tablesSeen({ groups, months: await queue.months(topic), retentionMonths }, options);
    return {
      seen: { topic, groups: groups.flatMap((each) => groupSeen(each, known, options) ?? []), tables },
      partitions: groups.reduce((sum, each) => sum + each.partitions.length, 1),
    };
  } catch (error) {
    if (error instanceof UnknownTopicError) return undefined;
    throw error;
  }
}
