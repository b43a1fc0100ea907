/** The rules of the message queue. */
import type { GroupPartition, GroupStatus } from "rowpost/queue";
import { type Counted, type Growth, gradeOf } from "./growth.ts";
import type { Condition, Rules } from "./rules.ts";

/** Default name of a replay, which reads old messages. */
const REPLAY = /@replay$/;
const DAY_MS = 86_400_000;
/** Until then a topic without consumers may lack the next month's tables. */
const MONTH_ENDS_MS = 3 * DAY_MS;

/** Data read of a topic. Months are such as 202611. */
export interface TopicRead {
  readonly topic: string;
  readonly groups: readonly GroupStatus[];
  readonly months: readonly number[];
  readonly retentionMonths: number | null;
}

export function deadLetters(groups: readonly GroupStatus[]): Counted[] {
  return groups
    .filter(({ dead }) => dead.count > 0)
    .map(({ dead, group, topic }) => ({ subject: `${topic}/${group}`, count: dead.count }));
}

export function queueConditions(
  rules: Rules,
  read: TopicRead,
  { clockMs, dead, nowMs }: { readonly clockMs: number; readonly dead: Growth; readonly nowMs: number },
): Condition[] {
  const groups = read.groups.flatMap((status): Condition[] => {
    const { dead: count, group, paused, topic } = status;
    const subject = `${topic}/${group}`;
    const names = { topic, group };
    const grown = dead[subject];
    const found = lagConditions(rules, subject, status, nowMs);
    const grade = grown && gradeOf(grown, rules["queue-dead"], clockMs);
    if (grade !== undefined) {
      const facts = { ...names, dead: grade.value, more: count.atLeast ? 1 : 0 };
      found.push({ rule: "queue-dead", subject, ...grade, facts });
    }
    if (paused !== undefined) {
      const facts = { ...names, author: paused.author };
      found.push({ rule: "queue-paused", subject, severity: "info", value: 1, facts });
    }
    return found;
  });
  return [...groups, ...tableConditions(read, nowMs)];
}

function lagConditions(rules: Rules, subject: string, status: GroupStatus, nowMs: number): Condition[] {
  const { group, partitions, paused, topic } = status;
  const { criticalOverMs = Number.POSITIVE_INFINITY, overMs = Number.POSITIVE_INFINITY } = rules["queue-lag"] ?? {};
  if (paused !== undefined || REPLAY.test(group)) return [];
  const [worst] = partitions.map((each) => lateness(each, nowMs)).sort((a, b) => b.lateMs - a.lateMs);
  if (worst === undefined || worst.lateMs <= overMs) return [];
  const severity = worst.lateMs > criticalOverMs ? "critical" : "warning";
  return [{ rule: "queue-lag", subject, severity, value: worst.lateMs, facts: { topic, group, ...worst } }];
}

/** `id`: the message. `member`: owner of the partition; "" if none. */
interface Late {
  readonly lateMs: number;
  readonly partition: number;
  readonly id: string;
  readonly member: string;
}

/** A delayed or retried message is late once it is due. */
function lateness({ head, lagMs, member, oldestWaiting, partition }: GroupPartition, nowMs: number): Late {
  const dueAt = oldestWaiting?.nextAttemptAt;
  const waitsMs = dueAt === undefined ? 0 : nowMs - Date.parse(dueAt);
  const place = { partition, member: member === undefined ? "" : (member.label ?? member.owner) };
  return waitsMs > lagMs
    ? { ...place, lateMs: waitsMs, id: oldestWaiting?.id ?? "" }
    : { ...place, lateMs: lagMs, id: head?.id ?? "" };
}

function tableConditions({ groups, months, retentionMonths, topic }: TopicRead, nowMs: number): Condition[] {
  const now = new Date(nowMs);
  const current = monthOf(now.getUTCFullYear(), now.getUTCMonth());
  const next = monthOf(now.getUTCFullYear(), now.getUTCMonth() + 1);
  const endsMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) - nowMs;
  const isConsumed = groups.some(({ partitions }) => partitions.some(({ member }) => member !== undefined));
  // Without a consumer an append creates the tables of its month, if it has the right.
  const wanted = isConsumed ? [current, next] : months.includes(current) && endsMs < MONTH_ENDS_MS ? [next] : [];
  const oldest = retentionMonths === null ? 0 : monthOf(now.getUTCFullYear(), now.getUTCMonth() - retentionMonths);
  const missing = wanted.find((each) => !months.includes(each));
  const month = missing ?? months.find((each) => each < oldest);
  if (month === undefined) return [];
  const facts = { topic, month, kind: missing === undefined ? "late" : "missing" };
  return [{ rule: "queue-tables", subject: topic, severity: "warning", value: 1, facts }];
}

/** Accepts months outside of 0 to 11. */
function monthOf(year: number, month: number): number {
  const date = new Date(Date.UTC(year, month, 1));
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}
