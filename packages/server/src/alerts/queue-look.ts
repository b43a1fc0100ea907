/**
 * Looks at the message queue beside a message table once a minute. A group's partition costs one
 * statement that reads nothing when all is consumed, and otherwise up to five that read at most
 * 1,000 entries of a primary key.
 */
import { type Database, describeError, type Logger, RowpostError } from "rowpost";
import type { AlertStore } from "rowpost/admin";
import { createQueue, type Queue, UnknownTopicError } from "rowpost/queue";
import { isMissingTable } from "../database-url.ts";
import { type Growth, growthOf } from "./growth.ts";
import { deadLetters, queueConditions, type TopicRead } from "./queue-rules.ts";
import { type Condition, RULE_NAMES, type Rules } from "./rules.ts";

const EVERY_MS = 60_000;
/** Interval if there is no queue or a right is missing. */
const ABSENT_MS = 300_000;
/** Must stay below the lease of alerts. Topics left over come first in the next look. */
const LONGEST_MS = 10_000;
/** Dead letters of a partition, and redeliveries before them, that are counted. */
const COUNT_UP_TO = 1_000;

export interface QueueLookOptions {
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

export interface QueueSeen {
  readonly conditions: readonly Condition[];
  readonly dead: Growth | null;
}

export interface QueueLook {
  /** Never rejects, so that a faulty queue does not stop the other rules. */
  look(dead: Growth | null, at: Instant): Promise<QueueSeen>;
  close(): Promise<void>;
}

/** Opens nothing if there is no queue. */
export function createQueueLook(options: QueueLookOptions): QueueLook {
  const { alerts, database, logger, monotonicMs, name, rules } = options;
  const isWanted = RULE_NAMES.some((rule) => rule.startsWith("queue-") && rules[rule] !== undefined);
  const seen = new Map<string, readonly Condition[]>();
  let queue: Queue | undefined;
  let dueMs = Number.NEGATIVE_INFINITY;
  let problem: string | undefined;

  async function absent(): Promise<null> {
    dueMs = monotonicMs() + ABSENT_MS;
    seen.clear();
    await queue?.close();
    queue = undefined;
    return null;
  }

  async function lookAt(of: Queue, before: Growth | null, at: Instant): Promise<Growth> {
    const topics = await of.topics();
    const isThere = new Set(topics.map(({ topic }) => topic));
    for (const topic of seen.keys()) if (!isThere.has(topic)) seen.delete(topic);
    const places = [...seen.keys()];
    // The first look starts at a random topic, so that all get their turn even if each look is a
    // new process.
    const first = Math.floor(Math.random() * topics.length);
    const order = [...topics.slice(first), ...topics.slice(0, first)];
    order.sort((a, b) => places.indexOf(a.topic) - places.indexOf(b.topic));
    const endsMs = monotonicMs() + LONGEST_MS;
    const read: TopicRead[] = [];
    for (const { retentionMonths, topic } of order) {
      if (monotonicMs() > endsMs) break;
      const found = await readTopic(of, topic, retentionMonths);
      if (found !== undefined) read.push(found);
    }
    const isRead = new Set(read.map(({ topic }) => topic));
    const unread = Object.entries(before ?? {}).filter(([subject]) => {
      const topic = subject.slice(0, subject.indexOf("/"));
      return isThere.has(topic) && !isRead.has(topic);
    });
    const counted = read.flatMap(({ groups }) => deadLetters(groups));
    const grown = growthOf(before, counted, { clockMs: at.clockMs, isPart: false });
    const dead = { ...Object.fromEntries(unread), ...grown };
    for (const topic of read) {
      seen.delete(topic.topic);
      seen.set(topic.topic, queueConditions(rules, topic, { ...at, dead }));
    }
    return dead;
  }

  async function look(before: Growth | null, at: Instant): Promise<Growth | null> {
    if (monotonicMs() < dueMs) return before;
    dueMs = monotonicMs() + EVERY_MS;
    try {
      if (queue === undefined && !(await alerts.hasQueue())) return await absent();
      queue ??= createQueue({ database });
      const dead = await lookAt(queue, before, at);
      problem = undefined;
      return dead;
    } catch (error) {
      if (isMissingTable(error)) return await absent();
      // Logs a missing right once, not at each look.
      const text = describeError(error);
      if (text !== problem) logger.warn("the message queue cannot be looked at", { source: name, error: text });
      problem = text;
      if (!(error instanceof RowpostError && error.retriable)) dueMs = monotonicMs() + ABSENT_MS;
      // Keeps the previous conditions, which would otherwise count as over.
      return before;
    }
  }

  return {
    async look(before, at) {
      const dead = isWanted ? await look(before, at) : null;
      return { conditions: [...seen.values()].flat(), dead };
    },
    async close() {
      await queue?.close();
    },
  };
}

async function readTopic(queue: Queue, topic: string, retentionMonths: number | null): Promise<TopicRead | undefined> {
  try {
    const groups = await queue.groups({ topic, countUpTo: COUNT_UP_TO, lagUpTo: 1 });
    return { topic, groups, months: await queue.months(topic), retentionMonths };
  } catch (error) {
    if (error instanceof UnknownTopicError) return undefined;
    throw error;
  }
}
