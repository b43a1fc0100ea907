/** Rewinds a group (回拨): checks the request and shapes the answer. */
import { checkQueueId, MonthDroppedError, RewindRefusedError, UnknownGroupError } from "../../message/queue-errors.ts";
import { MOST_PARTITIONS, queueIdOfDate } from "../../message/queue-id.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import { checkGroup, checkTopic } from "../topics/names.ts";
import type { RewindEntry, RewindRefusal, RewindRequest, RewindTarget, RewoundPartition } from "./requests.ts";
import type { Rewinding } from "./rewinding.ts";

/**
 * New position of a group. `end`: after the last message. `time`: the first message appended then
 * or later. `id`: this message, and in every partition the first one not before it. `group`: the
 * position of that group. `back`: this many messages before, in each partition.
 */
export type RewindPosition =
  | "start"
  | "end"
  | { readonly time: Date }
  | { readonly id: string }
  | { readonly group: string }
  | { readonly back: number };

/** Options of `queue.rewind`. */
export interface RewindOptions {
  /** The topic. */
  readonly topic: string;
  /** The consumer group. */
  readonly group: string;
  /** New position of the group. */
  readonly to: RewindPosition;
  /** Author, kept in the log. */
  readonly author: string;
  /** Reason, kept in the log. */
  readonly reason: string;
  /** Only counts the messages that would be replayed. */
  readonly dryRun?: boolean | undefined;
  /** `partitions` of a dry run: refused when the group has moved since. */
  readonly expected?: readonly Pick<RewoundPartition, "from" | "partition">[] | undefined;
  /** Only these partitions. Default: all. */
  readonly partitions?: readonly number[] | undefined;
  /** Messages of dropped months cannot come again. Default `refuse`; `skip`: begin after them. */
  readonly droppedMonths?: "refuse" | "skip" | undefined;
}

/** Options of `queue.undoRewind`. */
export type UndoRewindOptions = Pick<RewindOptions, "topic" | "group" | "author" | "reason" | "dryRun" | "expected">;

/** Result of a rewind or a dry run. */
export interface RewindReport {
  /** True when nothing was changed. */
  readonly dryRun: boolean;
  /** Number in the log. Undefined for a dry run, or when nothing moved. */
  readonly rewind: number | undefined;
  /** Partitions that move. A dry run counts the messages in between and those already consumed. */
  readonly partitions: readonly (RewoundPartition & { readonly messages?: number; readonly consumed?: number })[];
  /** Messages that come again or are passed over. Undefined without `dryRun`. */
  readonly messages: number | undefined;
  /** Those the group has already consumed. Undefined without `dryRun`. */
  readonly consumed: number | undefined;
  /** Dropped months left out, such as 202611. */
  readonly droppedMonths: readonly number[];
  /** Redeliveries and dead letters set aside, because their messages come again. */
  readonly setAside: number;
  /** Those of an earlier rewind restored, because their messages do not come again. */
  readonly restored: number;
}

const UNDO: OptionKinds<UndoRewindOptions> = {
  topic: "any",
  group: "any",
  author: "any",
  reason: "any",
  dryRun: "boolean",
  expected: "array",
};
const REWIND: OptionKinds<RewindOptions> = { ...UNDO, to: "any", partitions: "array", droppedMonths: "any" };

export async function rewindGroup(store: Rewinding, options: RewindOptions): Promise<RewindReport> {
  checkOptions("rewind", options, REWIND);
  return await run(store, checked("rewind", options, targetOf(options.to)), options.dryRun === true);
}

export async function undoRewind(store: Rewinding, options: UndoRewindOptions): Promise<RewindReport> {
  checkOptions("undoRewind", options, UNDO);
  return await run(store, checked("undoRewind", options, { kind: "undo" }), options.dryRun === true);
}

export async function rewindLog(store: Rewinding, topic: string, group: string, limit = 100): Promise<RewindEntry[]> {
  return await store.log({ topic: checkTopic(topic), group: checkGroup(group) }, limit);
}

async function run(store: Rewinding, request: RewindRequest, dryRun: boolean): Promise<RewindReport> {
  if (dryRun) {
    const plan = await store.plan(request);
    if ("refused" in plan) throw refusal(request, plan);
    const sum = (of: "consumed" | "messages"): number => plan.partitions.reduce((total, each) => total + each[of], 0);
    const counted = { messages: sum("messages"), consumed: sum("consumed") };
    return { dryRun, rewind: undefined, ...plan, ...counted, setAside: 0, restored: 0 };
  }
  const done = await store.rewind(request);
  if ("refused" in done) throw refusal(request, done);
  return { dryRun, ...done, messages: undefined, consumed: undefined };
}

function refusal({ topic, group }: RewindRequest, refused: RewindRefusal): Error {
  const what = `group ${group} of topic ${topic} was not moved`;
  switch (refused.refused) {
    case "unknown group":
      return new UnknownGroupError(topic, refused.group);
    case "dropped months":
      return new MonthDroppedError(what, refused.months, 'With droppedMonths: "skip" it begins behind them.');
    case "ahead":
      return new RewindRefusedError(`${what}: the id is ahead of the last message, ${refused.lastId}`);
    case "nothing to undo":
      return new RewindRefusedError(`${what}: its last rewind was an undo, or it was never rewound`);
    case "moved": {
      const places = refused.partitions.map(({ partition, at }) => `partition ${partition} is at ${at}`).join(", ");
      return new RewindRefusedError(`${what}: it has moved on since (${places}); look again with dryRun`);
    }
  }
}

function checked(name: string, options: RewindOptions | UndoRewindOptions, target: RewindTarget): RewindRequest {
  const { partitions, droppedMonths = "refuse", expected } = options as RewindOptions;
  if (droppedMonths !== "refuse" && droppedMonths !== "skip") {
    throw new ConfigurationError(`${name}: droppedMonths must be "refuse" or "skip"`);
  }
  for (const partition of partitions ?? []) wholeNumber(`${name}: partitions`, partition, 0, MOST_PARTITIONS - 1);
  return {
    topic: checkTopic(options.topic),
    group: checkGroup(options.group),
    target,
    partitions,
    expected: expected?.map(({ partition, from }) => ({
      partition: wholeNumber(`${name}: expected`, partition, 0, MOST_PARTITIONS - 1),
      from: checkQueueId("expected", from),
    })),
    overDroppedMonths: droppedMonths === "skip",
    author: said("author", options.author, 64),
    reason: said("reason", options.reason, 255),
  };
}

function targetOf(to: RewindPosition): RewindTarget {
  if (to === "start" || to === "end") return { kind: to };
  if (typeof to === "object" && to !== null) {
    if ("id" in to) return { kind: "id", id: checkQueueId("to.id", to.id) };
    if ("group" in to) return { kind: "group", group: checkGroup(to.group) };
    const id = "time" in to ? queueIdOfDate(to.time) : undefined;
    if (id !== undefined) return { kind: "time", id };
    if ("back" in to) return { kind: "back", messages: wholeNumber("rewind: back", to.back, 1) };
  }
  throw new ConfigurationError(
    'rewind: to is "start", "end", { time: Date }, { id }, { group } or { back: how many messages }',
  );
}

/** Author and reason are required. */
export function said(name: string, value: unknown, most: number): string {
  if (typeof value === "string" && value.trim() !== "" && value.length <= most && !value.includes("\0")) return value;
  throw new ConfigurationError(`${name} is a text of 1 to ${most} characters: it stands in the log`);
}
