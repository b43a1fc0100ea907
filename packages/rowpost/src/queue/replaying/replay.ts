/**
 * Reads a range of a topic again in a shadow group, `group@replay`. No other group moves, so it is
 * safer than a rewind.
 */
import { checkQueueId } from "../../message/queue-errors.ts";
import { queueIdOfDate } from "../../message/queue-id.ts";
import { refuseUnknown } from "../../runtime/check-options.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { ConfigurationError, RowpostError } from "../../runtime/errors.ts";
import type { Consumer } from "../consuming/consumer.ts";
import {
  CONSUME_OPTIONS,
  type ConsumerSettings,
  consumerSettings,
  type QueueConsumeOptions,
} from "../consuming/options.ts";
import { GroupExistsError } from "../groups/errors.ts";
import { SILENT_MS } from "../groups/groups.ts";
import type { Groups } from "../groups/looking.ts";
import type { GroupStart } from "../store.ts";

/** Options of `queue.replay`: those of `queue.consume`, and the range. */
export interface ReplayOptions extends Omit<QueueConsumeOptions, "broadcast" | "from"> {
  /** Group to replay for; its progress stays. */
  readonly group: string;
  /** The shadow group is `group@name`. Default `replay`. */
  readonly name?: string | undefined;
  /** First message: the oldest, the first appended at this time or later, or this id. */
  readonly from: "start" | { readonly time: Date } | { readonly id: string };
  /**
   * End of the range: all current messages (default), those appended before this time, or up to and
   * including this id.
   */
  readonly until?: "end" | { readonly time: Date } | { readonly id: string } | undefined;
  /**
   * Continues an existing shadow group of this name, or shares its work as one more member. Default
   * false: refused.
   */
  readonly resume?: boolean | undefined;
  /** Stops the replay; the shadow group stays, for a replay with `resume`. */
  readonly signal?: AbortSignal | undefined;
}

/** Result of a replay. */
export interface ReplayReport {
  /** Name of the shadow group. */
  readonly group: string;
  /** False when the signal stopped it before the end. */
  readonly complete: boolean;
  /** Messages handled by this call without an error. */
  readonly handled: number;
  /** Messages given up after their last attempt. The shadow group keeps them for `deadLetters`. */
  readonly dead: number;
}

export interface ReplayParts {
  readonly store: Groups;
  readonly join: (settings: ConsumerSettings) => Promise<Consumer>;
  /** Last id of each partition. Throws `UnknownTopicError`. */
  readonly lastIds: (topic: string) => Promise<readonly string[]>;
}

const OWN = ["name", "until", "resume", "signal"];
const OPTIONS = [...CONSUME_OPTIONS.filter((name) => name !== "broadcast"), ...OWN];
const LOOK_MS = 500;
/** Limit of counting dead letters in a partition. */
const MOST_COUNTED = 10_000;

export async function replay(parts: ReplayParts, options: ReplayOptions): Promise<ReplayReport> {
  refuseUnknown("replay", options, OPTIONS);
  const { name = "replay", from, until = "end", resume = false, signal, handler, ...rest } = options;
  const settings = consumerSettings({ ...rest, handler, broadcast: { instance: name }, from: startOf(from) });
  let handled = 0;
  const counting: ConsumerSettings["handler"] = async (...given) => {
    await settings.handler(...given);
    handled += 1;
  };
  const range = { topic: settings.topic, group: settings.group };
  const untilId = until === "end" ? await lastOf(parts, settings.topic) : endOf(until);
  if (!resume && (await parts.store.partitions(range.topic, range.group)).length > 0)
    throw new GroupExistsError(range.topic, range.group);
  const consumer = await parts.join({ ...settings, handler: counting, untilId });
  let dead: number | undefined;
  try {
    while (dead === undefined && signal?.aborted !== true) {
      await settings.clock.sleep(LOOK_MS, signal);
      dead = await deadAtTheEnd(parts.store, range, untilId).catch(whileItIsAway);
    }
  } finally {
    await consumer.stop();
  }
  // A running member would create it again.
  if (dead === 0) await parts.store.deleteGroup(range, SILENT_MS);
  return { group: range.group, complete: dead !== undefined, handled, dead: dead ?? 0 };
}

/** The progress check survives an outage, like the consumer. */
function whileItIsAway(error: unknown): undefined {
  if (!(error instanceof RowpostError && error.retriable)) throw error;
}

/** Undefined while anything else of the range is left. */
async function deadAtTheEnd(
  store: Groups,
  { topic, group }: { readonly topic: string; readonly group: string },
  untilId: string,
): Promise<number | undefined> {
  let dead = 0;
  const months = await store.months(topic);
  for (const { partition, nextId } of await store.partitions(topic, group)) {
    if (compareIds(nextId, untilId) <= 0) {
      const { messages } = await store.unread(topic, months, { partition, fromId: nextId, toId: untilId }, 1);
      if (messages > 0) return undefined;
    }
    const again = await store.redeliveries({ topic, group }, partition, MOST_COUNTED);
    if (again.waiting > 0) return undefined;
    dead += again.dead;
  }
  return dead;
}

async function lastOf(parts: ReplayParts, topic: string): Promise<string> {
  return (await parts.lastIds(topic)).toSorted(compareIds).at(-1) ?? "0";
}

function startOf(from: ReplayOptions["from"]): GroupStart {
  if (from === "start") return from;
  const id = idOf(from);
  if (id !== undefined) return { id };
  throw new ConfigurationError('replay: from is "start", { time: Date } or { id }, the first message of the range');
}

/** Highest id of the range. */
function endOf(until: Exclude<ReplayOptions["until"], "end" | undefined>): string {
  const id = idOf(until);
  if (id === undefined) throw new ConfigurationError('replay: until is "end", { time: Date } or { id }');
  return "time" in until ? String(BigInt(id) - 1n) : id;
}

function idOf(place: unknown): string | undefined {
  if (typeof place !== "object" || place === null) return undefined;
  if ("id" in place) return checkQueueId("replay: id", place.id);
  return "time" in place ? queueIdOfDate(place.time) : undefined;
}
