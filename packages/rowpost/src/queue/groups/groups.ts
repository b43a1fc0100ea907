/** Inspects consumer groups, pauses them, and skips a message that holds one up. */
import { checkQueueId, UnknownGroupError } from "../../message/queue-errors.ts";
import { monthOf, partitionOfId, queueIdMs } from "../../message/queue-id.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { GroupKey } from "../store.ts";
import { checkGroup, checkTopic } from "../topics/names.ts";
import { CannotSkipError, GroupInUseError } from "./errors.ts";
import type { Groups } from "./looking.ts";
import type { HandNote, StoredGroupPartition } from "./requests.ts";

/** A count with an upper limit. */
export interface CountUpTo {
  /** The count, at most the limit. */
  readonly count: number;
  /** True when there may be more. */
  readonly atLeast: boolean;
}

/** A partition as one group sees it. */
export interface GroupPartition {
  /** Partition, from 0. */
  readonly partition: number;
  /** The group's lowest unfinished id. */
  readonly nextId: string;
  /** Unfinished messages, without redeliveries. */
  readonly lag: CountUpTo;
  /** Age of the first unfinished message, or 0. */
  readonly lagMs: number;
  /** The first unfinished message, if any. */
  readonly head:
    | { readonly id: string; readonly key: string | undefined; readonly type: string | undefined }
    | undefined;
  /** Time since the group's last write here; undefined: never. */
  readonly movedMsAgo: number | undefined;
  /** Failed messages that come again. */
  readonly waiting: CountUpTo;
  /** Those of `waiting` behind another message of their ordering key. */
  readonly behind: CountUpTo;
  /** Messages given up after their last attempt. */
  readonly dead: CountUpTo;
  /** The oldest waiting message with its last error. */
  readonly oldestWaiting:
    | {
        readonly id: string;
        readonly attempt: number;
        readonly error: string | undefined;
        readonly nextAttemptAt: string | undefined;
      }
    | undefined;
  /** Age of the oldest message neither consumed nor dead, or 0. */
  readonly oldestUnfinishedMs: number;
  /** Holder of the partition, if any. */
  readonly member:
    | {
        readonly owner: string;
        readonly label: string | undefined;
        readonly since: string | undefined;
        /** Time since its last heartbeat; undefined after it signed off. */
        readonly seenMsAgo: number | undefined;
      }
    | undefined;
}

/** A consumer group of a topic. */
export interface GroupStatus {
  /** Topic that it reads. */
  readonly topic: string;
  /** Name of the group. */
  readonly group: string;
  /** Author, time and reason of a pause; undefined while it runs. */
  readonly paused: { readonly at: string; readonly author: string; readonly reason: string } | undefined;
  /** Sum over its partitions. */
  readonly lag: CountUpTo;
  /** Maximum over its partitions. */
  readonly lagMs: number;
  /** Age of the oldest message neither consumed nor dead, or 0. */
  readonly oldestUnfinishedMs: number;
  /** Failed messages that come again. */
  readonly waiting: CountUpTo;
  /** Messages given up after their last attempt. */
  readonly dead: CountUpTo;
  /** Ordered by number. */
  readonly partitions: readonly GroupPartition[];
}

/** Options of `queue.groups`. */
export interface GroupsOptions {
  /** The topic. */
  readonly topic: string;
  /** Only this group. */
  readonly group?: string | undefined;
  /** Limit of exact counts per partition. Default 10,000. */
  readonly countUpTo?: number | undefined;
  /** The same for `lag` alone. Default: `countUpTo`. */
  readonly lagUpTo?: number | undefined;
}

/** Author and reason of a change, stored with it. */
export interface HandOptions {
  /** The topic. */
  readonly topic: string;
  /** The consumer group. */
  readonly group: string;
  /** Author, 1 to 64 characters. */
  readonly author: string;
  /** Reason, 1 to 255 characters. */
  readonly reason: string;
}

/** Options of `queue.skip`. */
export interface SkipOptions extends HandOptions {
  /** Id of the message. */
  readonly id: string;
}

const LONGEST_AUTHOR = 64;
const LONGEST_REASON = 255;

/** Options of every change by hand; {@link checkedHand} checks names and texts. */
export const HAND: OptionKinds<HandOptions> = { topic: "any", group: "any", author: "any", reason: "any" };

/** Throws `ConfigurationError`, `InvalidNameError`. */
export function checkedHand(
  options: HandOptions,
  ip: string | null,
): { readonly key: GroupKey; readonly note: HandNote } {
  const { topic, group } = options;
  return { key: { topic: checkTopic(topic), group: checkGroup(group) }, note: { ...checkedNote(options), ip } };
}

/** Throws `ConfigurationError`. */
export function checkedNote({ author, reason }: Pick<HandOptions, "author" | "reason">): Omit<HandNote, "ip"> {
  return { author: note("author", author, LONGEST_AUTHOR), reason: note("reason", reason, LONGEST_REASON) };
}

function note(name: string, value: unknown, longest: number): string {
  const text = typeof value === "string" ? value.replaceAll("\0", "").trim() : "";
  if (text !== "" && text.length <= longest && text.isWellFormed()) return text;
  throw new ConfigurationError(`${name} is 1 to ${longest} characters: it is kept for whoever asks later`);
}

/** Ordered by name. */
export async function groupsOf(parts: GroupParts, options: GroupsOptions): Promise<GroupStatus[]> {
  const { store } = parts;
  checkOptions("groups", options, { topic: "any", group: "any", countUpTo: "number", lagUpTo: "number" });
  const { topic, group, countUpTo = 10_000, lagUpTo = countUpTo } = options;
  checkTopic(topic);
  if (group !== undefined) checkGroup(group);
  wholeNumber("groups: countUpTo", countUpTo, 1);
  wholeNumber("groups: lagUpTo", lagUpTo, 1);
  await parts.requireTopic(topic);
  const rows = await store.partitions(topic, group);
  if (group !== undefined && rows.length === 0) throw new UnknownGroupError(topic, group);
  const nowMs = await store.nowMs();
  // Read after the partitions, so that their months are included.
  const months = await store.months(topic);
  const found = new Map<string, { readonly row: StoredGroupPartition; readonly partitions: GroupPartition[] }>();
  for (const row of rows) {
    const seen = found.get(row.group) ?? { row, partitions: [] };
    found.set(row.group, seen);
    seen.partitions.push(await partitionStatus(store, { topic, months, row, nowMs, countUpTo, lagUpTo }));
  }
  return [...found.values()].map(({ row, partitions }) => groupStatus(topic, row, partitions));
}

interface PartitionRequest {
  readonly topic: string;
  readonly months: readonly number[];
  readonly row: StoredGroupPartition;
  readonly nowMs: number;
  readonly countUpTo: number;
  readonly lagUpTo: number;
}

async function partitionStatus(
  store: Groups,
  { topic, months, row, nowMs, countUpTo, lagUpTo }: PartitionRequest,
): Promise<GroupPartition> {
  const { partition, nextId, lastId } = row;
  const key = { topic, group: row.group };
  // Reads one more than the limit to see whether there are more.
  const range = { partition, fromId: nextId, toId: lastId };
  const { messages, first } = await store.unread(topic, months, range, lagUpTo + 1);
  const again = await store.redeliveries(key, partition, countUpTo + 1);
  const [oldest] =
    again.oldest === null ? [] : await store.page(key, { partition, id: String(BigInt(again.oldest) - 1n) }, 1);
  const ageOf = (id: string | undefined): number => (id === undefined ? 0 : Math.max(0, nowMs - queueIdMs(id)));
  const more = again.waiting + again.dead > countUpTo;
  const upTo = (count: number): CountUpTo => ({ count, atLeast: more });
  return {
    partition,
    nextId,
    lag: { count: Math.min(messages, lagUpTo), atLeast: messages > lagUpTo },
    lagMs: ageOf(first?.id),
    head:
      first === undefined ? undefined : { id: first.id, key: first.key ?? undefined, type: first.type ?? undefined },
    movedMsAgo: row.movedMs ?? undefined,
    waiting: upTo(again.waiting),
    behind: upTo(again.behind),
    dead: upTo(again.dead),
    oldestWaiting:
      oldest === undefined || oldest.state !== "waiting"
        ? undefined
        : {
            id: oldest.id,
            attempt: oldest.attempt,
            error: oldest.failReason ?? undefined,
            nextAttemptAt: oldest.nextAttemptAt ?? undefined,
          },
    oldestUnfinishedMs: Math.max(ageOf(first?.id), ageOf(again.oldest ?? undefined)),
    member:
      row.owner === null
        ? undefined
        : {
            owner: row.owner,
            label: row.label ?? undefined,
            since: row.heldSince ?? undefined,
            seenMsAgo: row.seenMs ?? undefined,
          },
  };
}

function groupStatus(topic: string, row: StoredGroupPartition, partitions: readonly GroupPartition[]): GroupStatus {
  const sum = (of: (partition: GroupPartition) => CountUpTo): CountUpTo => ({
    count: partitions.reduce((total, each) => total + of(each).count, 0),
    atLeast: partitions.some((each) => of(each).atLeast),
  });
  return {
    topic,
    group: row.group,
    paused:
      row.pausedAt === null
        ? undefined
        : { at: row.pausedAt, author: row.pausedBy ?? "", reason: row.pauseReason ?? "" },
    lag: sum(({ lag }) => lag),
    lagMs: Math.max(0, ...partitions.map(({ lagMs }) => lagMs)),
    oldestUnfinishedMs: Math.max(0, ...partitions.map(({ oldestUnfinishedMs }) => oldestUnfinishedMs)),
    waiting: sum(({ waiting }) => waiting),
    dead: sum(({ dead }) => dead),
    partitions,
  };
}

export interface GroupParts {
  readonly store: Groups;
  /** Throws `UnknownTopicError`. */
  readonly requireTopic: (topic: string) => Promise<unknown>;
}

/** Throws `UnknownTopicError`, `UnknownGroupError`. */
export async function requireGroup(
  { store, requireTopic }: GroupParts,
  { topic, group }: GroupKey,
): Promise<StoredGroupPartition[]> {
  await requireTopic(topic);
  const rows = await store.partitions(topic, group);
  if (rows.length === 0) throw new UnknownGroupError(topic, group);
  return rows;
}

/** Longer than the heartbeat interval at usual lease lengths. */
export const SILENT_MS = 30_000;

/** Throws `GroupInUseError`. */
export async function deleteGroup(
  { store, requireTopic }: GroupParts,
  options: { readonly topic: string; readonly group: string },
): Promise<boolean> {
  checkOptions("deleteGroup", options, { topic: "any", group: "any" });
  const key = { topic: checkTopic(options.topic), group: checkGroup(options.group) };
  await requireTopic(key.topic);
  const outcome = await store.deleteGroup(key, SILENT_MS);
  if (typeof outcome !== "string") throw new GroupInUseError(key.topic, key.group, outcome, SILENT_MS);
  return outcome === "deleted";
}

/** Removes its redelivery, or passes it as the group's first unfinished message. */
export async function skip(parts: GroupParts, options: SkipOptions, ip: string | null): Promise<void> {
  const { store } = parts;
  checkOptions("skip", options, { ...HAND, id: "any" });
  const { key, note: why } = checkedHand(options, ip);
  const id = checkQueueId("id", options.id);
  const rows = await requireGroup(parts, key);
  const partition = partitionOfId(id);
  const row = rows.find((each) => each.partition === partition);
  if (row === undefined)
    throw new CannotSkipError(`there is no message ${id}: topic ${key.topic} has no partition ${partition}`);
  const removal = { ids: [id], from: "waiting or dead", result: "skipped", note: why } as const;
  const [result] = await store.remove(key, partition, removal);
  if (result?.result === "changed") return;
  const outcome = await store.skipHead(key, id, why);
  if (outcome === "skipped") return;
  const head = `${monthOf(queueIdMs(row.nextId))}, id ${row.nextId}`;
  throw new CannotSkipError(
    {
      finished: `group ${key.group} has finished message ${id} already, or it is set aside by a rewind`,
      "no message": `there is no message ${id} in topic ${key.topic}`,
      "not the first": `message ${id} is not the first that group ${key.group} has not finished in partition ${partition} (its progress: ${head}), and it waits for no redelivery`,
    }[outcome],
  );
}
