/** Manages topics and caches their settings. */
import { MOST_PARTITIONS, monthAfter } from "../../message/queue-id.ts";
import { refuseUnknown } from "../../runtime/check-options.ts";
import { ConfigurationError, UnknownTopicError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { NewTopic, TopicSettings, TopicStore } from "../store.ts";
import { checkTopic } from "./names.ts";

/** Options of a topic. */
export interface TopicOptions {
  /** 1 to 31 characters of a-z, 0-9 and _. */
  readonly topic: string;
  /**
   * 1 to 64; default 1. One member of a group reads each at a time, in order. The number can grow
   * but never shrink.
   */
  readonly partitions?: number | undefined;
  /** Months that messages are kept; default null: forever. */
  readonly retentionMonths?: number | null | undefined;
}

export interface Topics {
  create(options: TopicOptions): Promise<{ readonly created: boolean; readonly topic: TopicSettings }>;
  alter(options: TopicOptions): Promise<TopicSettings>;
  list(): Promise<TopicSettings[]>;
  remove(topic: string): Promise<boolean>;
  /** Settings at most {@link FRESH_MS} old. Throws `UnknownTopicError`. */
  settings(topic: string): Promise<TopicSettings>;
  /** Last known settings, of any age. */
  known(topic: string): TopicSettings | undefined;
  /** Drops the cached settings. */
  forget(topic: string): void;
  /** This month's and the next one's. */
  prepare(topic: string, month: number): Promise<void>;
  /** For the database's current month, asked once an hour. */
  prepareNow(topic: string): Promise<void>;
}

/** Tables are made a month ahead. */
const LOOK_AT_MONTH_MS = 3_600_000;

/** Other processes change topics too. */
const FRESH_MS = 5_000;

export function createTopics(store: TopicStore, monotonicMs: () => number): Topics {
  const known = new Map<string, { readonly settings: TopicSettings; readonly atMs: number }>();
  const prepared = new Set<string>();
  const lookedAtMs = new Map<string, number>();

  function remember(settings: TopicSettings): TopicSettings {
    known.set(settings.topic, { settings, atMs: monotonicMs() });
    return settings;
  }

  async function read(topic: string): Promise<TopicSettings> {
    const [settings] = await store.list(topic);
    if (settings === undefined) {
      known.delete(topic);
      throw new UnknownTopicError(topic);
    }
    return remember(settings);
  }

  function forget(topic: string): void {
    known.delete(topic);
    lookedAtMs.delete(topic);
    for (const each of prepared) if (each.startsWith(`${topic} `)) prepared.delete(each);
  }

  async function prepare(topic: string, month: number): Promise<void> {
    const name = `${topic} ${month}`;
    if (prepared.has(name)) return;
    // DDL waits for users of existing tables.
    const there = new Set(await store.months(topic));
    const missing = [month, monthAfter(month)].filter((each) => !there.has(each));
    await store.makeMonths(topic, missing);
    prepared.add(name);
  }

  return {
    forget,
    prepare,
    async prepareNow(topic) {
      const nowMs = monotonicMs();
      const lookedMs = lookedAtMs.get(topic);
      if (lookedMs !== undefined && nowMs - lookedMs < LOOK_AT_MONTH_MS) return;
      await prepare(topic, await store.currentMonth());
      lookedAtMs.set(topic, nowMs);
    },

    async create(options) {
      const topic = checked(options);
      const created = await store.create({
        topic: topic.topic,
        partitions: topic.partitions ?? 1,
        retentionMonths: topic.retentionMonths ?? null,
      });
      lookedAtMs.set(topic.topic, monotonicMs());
      return { created, topic: await read(topic.topic) };
    },

    async alter(options) {
      const { topic, partitions, retentionMonths } = checked(options);
      const before = await read(topic);
      if (partitions !== undefined && partitions < before.partitions) {
        throw new ConfigurationError(
          `topic ${topic} has ${before.partitions} partitions; they may grow, and not shrink to ${partitions}: the messages in them would have no reader`,
        );
      }
      await store.alter({
        topic,
        partitions: partitions ?? before.partitions,
        retentionMonths: retentionMonths === undefined ? before.retentionMonths : retentionMonths,
      });
      return await read(topic);
    },

    list: () => store.list(),

    async remove(topic) {
      const removed = await store.remove(checkTopic(topic));
      forget(topic);
      return removed;
    },

    known: (topic) => known.get(checkTopic(topic))?.settings,

    async settings(topic) {
      const seen = known.get(checkTopic(topic));
      return seen !== undefined && monotonicMs() - seen.atMs < FRESH_MS ? seen.settings : await read(topic);
    },
  };
}

type CheckedTopic = Pick<TopicOptions, "partitions" | "retentionMonths"> & Pick<NewTopic, "topic">;

function checked(options: TopicOptions): CheckedTopic {
  const { topic, partitions, retentionMonths } = options;
  checkTopic(topic);
  refuseUnknown("a topic", options, ["topic", "partitions", "retentionMonths"]);
  if (partitions !== undefined) wholeNumber("a topic: partitions", partitions, 1, MOST_PARTITIONS);
  // Null: forever.
  if (retentionMonths !== undefined && retentionMonths !== null) {
    wholeNumber("a topic: retentionMonths", retentionMonths, 1);
  }
  return { topic, partitions, retentionMonths };
}
