/**
 * What the rules of the message queue make of what was seen of it, which is kept between looks.
 */
import type { GroupPartition, GroupStatus } from "rowpost/queue";
import type { Condition, Rules } from "./rules.ts";

/** A group that has something to be told of; the others are left out. */
export interface GroupSeen {
  readonly group: string;
  /** Of the partition where a message is due for longest; 0: for no longer than the rule allows. */
  readonly lateMs: number;
  readonly partition: number;
  /** That message. */
  readonly id: string;
  /** Who holds the partition; "": nobody. */
  readonly member: string;
  readonly dead: number;
  /** There are more. */
  readonly more: boolean;
  /** When dead letters came last, by the lifecycle's clock. */
  readonly roseMs: number | null;
  /** Who has paused it. */
  readonly pausedBy: string | null;
}

/** Months such as 202611. */
export interface TablesSeen {
  /** When that was, by the lifecycle's clock. */
  readonly lookedMs: number;
  readonly missing: number | null;
  /** The first that is past the retention. */
  readonly late: number | null;
}

export interface TopicSeen {
  readonly topic: string;
  readonly groups: readonly GroupSeen[];
  readonly tables: TablesSeen;
}

/** What is known of the queue; a part of it is looked at anew by each look. */
export interface QueueMemory {
  /** By the lifecycle's clock. */
  readonly lookedMs: number;
  /** False: there is none, or it may not be read. */
  readonly isThere: boolean;
  /** The next look goes on behind this topic; "": from the first one on. */
  readonly after: string;
  readonly topics: readonly TopicSeen[];
}

/** What a replay is named by default; it reads what is old. */
const REPLAY = /@replay$/;
const DAY_MS = 86_400_000;
/** Of a topic that nobody consumes from, the next month's tables may be missing until then. */
const MONTH_ENDS_MS = 3 * DAY_MS;

/** What is kept of a group; undefined: there is nothing to be told. */
export function groupSeen(
  status: GroupStatus,
  before: TopicSeen | undefined,
  { clockMs, nowMs, rules }: { readonly clockMs: number; readonly nowMs: number; readonly rules: Rules },
): GroupSeen | undefined {
  const { dead, group, partitions, paused } = status;
  const known = before?.groups.find((each) => each.group === group);
  // Nobody has looked at this topic before: what there is may be old.
  const hasRisen = before !== undefined && dead.count > (known?.dead ?? 0);
  const isMeant = paused === undefined && !REPLAY.test(group);
  const worst = isMeant ? longest(partitions, nowMs) : undefined;
  const isLate = worst !== undefined && worst.lateMs > (rules["queue-lag"]?.overMs ?? Number.POSITIVE_INFINITY);
  if (!isLate && dead.count === 0 && paused === undefined) return undefined;
  return {
    ...{ group, lateMs: 0, partition: 0, id: "", member: "", ...(isLate ? worst : {}) },
    ...{ dead: dead.count, more: dead.atLeast, roseMs: hasRisen ? clockMs : (known?.roseMs ?? null) },
    pausedBy: paused?.author ?? null,
  };
}

type Late = Pick<GroupSeen, "lateMs" | "partition" | "id" | "member">;

function longest(partitions: readonly GroupPartition[], nowMs: number): Late | undefined {
  return partitions.map((each) => lateness(each, nowMs)).sort((a, b) => b.lateMs - a.lateMs)[0];
}

/** What is delayed, or tried again later, is late when its time has come. */
function lateness({ head, lagMs, member, oldestWaiting, partition }: GroupPartition, nowMs: number): Late {
  const dueAt = oldestWaiting?.nextAttemptAt;
  const waitsMs = dueAt === undefined ? 0 : nowMs - Date.parse(dueAt);
  const place = { partition, member: member === undefined ? "" : (member.label ?? member.owner) };
  return waitsMs > lagMs
    ? { ...place, lateMs: waitsMs, id: oldestWaiting?.id ?? "" }
    : { ...place, lateMs: lagMs, id: head?.id ?? "" };
}

/** What is wrong about a topic's months. */
export function tablesSeen(
  { groups, months, retentionMonths }: TablesRead,
  { clockMs, nowMs }: { readonly clockMs: number; readonly nowMs: number },
): TablesSeen {
  const now = new Date(nowMs);
  const current = monthOf(now.getUTCFullYear(), now.getUTCMonth());
  const next = monthOf(now.getUTCFullYear(), now.getUTCMonth() + 1);
  const endsMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) - nowMs;
  const isConsumed = groups.some(({ partitions }) => partitions.some(({ member }) => member !== undefined));
  // Without a consumer an append makes the tables of its month, where it may.
  const wanted = isConsumed ? [current, next] : months.includes(current) && endsMs < MONTH_ENDS_MS ? [next] : [];
  const oldest = retentionMonths === null ? 0 : monthOf(now.getUTCFullYear(), now.getUTCMonth() - retentionMonths);
  return {
    lookedMs: clockMs,
    missing: wanted.find((month) => !months.includes(month)) ?? null,
    late: months.find((month) => month < oldest) ?? null,
  };
}

export interface TablesRead {
  readonly groups: readonly GroupStatus[];
  readonly months: readonly number[];
  readonly retentionMonths: number | null;
}

/** Of a month that may lie outside of 0 to 11. */
function monthOf(year: number, month: number): number {
  const date = new Date(Date.UTC(year, month, 1));
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}

/** What holds by these rules. */
export function queueConditions(rules: Rules, { topics }: QueueMemory, clockMs: number): Condition[] {
  return topics.flatMap(({ groups, tables, topic }) => [
    ...groups.flatMap((each) => groupConditions(rules, topic, each, clockMs)),
    ...tableConditions(topic, tables),
  ]);
}

function groupConditions(rules: Rules, topic: string, seen: GroupSeen, clockMs: number): Condition[] {
  const { dead, group, id, lateMs, member, more, partition, pausedBy, roseMs } = seen;
  const { criticalOverMs = Number.POSITIVE_INFINITY } = rules["queue-lag"] ?? {};
  const { criticalFrom = 100, windowMs = 300_000 } = rules["queue-dead"] ?? {};
  const subject = `${topic}/${group}`;
  const names = { topic, group };
  const found: Condition[] = [];
  if (lateMs > 0) {
    const severity = lateMs > criticalOverMs ? "critical" : "warning";
    const facts = { ...names, lateMs, partition, id, member };
    found.push({ rule: "queue-lag", subject, severity, value: lateMs, facts });
  }
  const isNew = roseMs !== null && clockMs - roseMs < windowMs;
  if (dead > 0 && (isNew || dead >= criticalFrom)) {
    const severity = dead >= criticalFrom ? "critical" : "warning";
    found.push({ rule: "queue-dead", subject, severity, value: dead, facts: { ...names, dead, more: more ? 1 : 0 } });
  }
  if (pausedBy !== null) {
    const facts = { ...names, author: pausedBy };
    found.push({ rule: "queue-paused", subject, severity: "info", value: 1, facts });
  }
  return found;
}

function tableConditions(topic: string, { late, missing }: TablesSeen): Condition[] {
  const month = missing ?? late;
  if (month === null) return [];
  const facts = { topic, month, kind: missing === null ? "late" : "missing" };
  return [{ rule: "queue-tables", subject: topic, severity: "warning", value: 1, facts }];
}
