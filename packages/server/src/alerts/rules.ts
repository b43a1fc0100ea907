/** The rules with their defaults, and their evaluation of a look. */
import type { LateMessages, OutboxStatus } from "rowpost/admin";
import { type Growth, gradeOf, growthOf } from "./growth.ts";

/** In rising order. */
export const SEVERITIES = ["info", "warning", "critical"] as const;
export type Severity = (typeof SEVERITIES)[number];

/**
 * Rules and settings. `forMs`: how long a condition must hold before it fires. The rest are
 * thresholds.
 */
export const RULE_DEFAULTS = {
  /** The database does not answer. Sent by the last evaluator; mutes all other rules. */
  database: { forMs: 60_000 },
  /** The tables do not match this version, or a right is missing. */
  schema: { forMs: 0 },
  "no-relay": { forMs: 60_000 },
  /** Some shards have no relay that is alive. */
  "shard-unowned": { forMs: 60_000 },
  /** A relay reports that its broker is away. */
  "broker-away": { forMs: 0, overMs: 120_000 },
  "topic-resting": { forMs: 300_000 },
  failed: { forMs: 0, windowMs: 300_000, criticalFrom: 100 },
  "oldest-due": { forMs: 0, overMs: 300_000, criticalOverMs: 1_800_000 },
  /** Confirmations of a type are overdue, and their action has not been taken. */
  unconfirmed: { forMs: 0, overMs: 60_000 },
  /** Messages of a topic are claimed and not settled. */
  "sending-long": { forMs: 0, overMs: 90_000 },
  suspension: { forMs: 86_400_000 },
  /** A group of the message queue has due messages that are not consumed. */
  "queue-lag": { forMs: 0, overMs: 600_000, criticalOverMs: 3_600_000 },
  /** A group got dead letters within the window. */
  "queue-dead": { forMs: 0, windowMs: 300_000, criticalFrom: 100 },
  "queue-paused": { forMs: 86_400_000 },
  /** A topic lacks the tables of a month, or keeps those of one past its retention. */
  "queue-tables": { forMs: 86_400_000 },
  /** The doctor found something that no other rule covers. */
  doctor: { forMs: 0, except: [] as readonly string[] },
} as const;

export type RuleName = keyof typeof RULE_DEFAULTS;
export const RULE_NAMES = Object.keys(RULE_DEFAULTS) as readonly RuleName[];

/** Settings of a rule; undefined: it is off. */
export interface RuleSettings {
  readonly forMs: number;
  readonly overMs?: number | undefined;
  readonly criticalOverMs?: number | undefined;
  readonly windowMs?: number | undefined;
  readonly criticalFrom?: number | undefined;
  readonly except?: readonly string[] | undefined;
}
export type Rules = Readonly<Partial<Record<RuleName, RuleSettings>>>;

export interface Condition {
  readonly rule: RuleName | "test";
  /** Topic, type, broker or suspension; "" for the whole table. */
  readonly subject: string;
  readonly severity: Severity;
  /** Grows as it gets worse: messages, milliseconds, shards. */
  readonly value: number;
  /** For the texts; never from a message's body or headers. */
  readonly facts: Readonly<Record<string, string | number>>;
}

export interface Look {
  readonly status: OutboxStatus;
  readonly unconfirmed: readonly LateMessages[];
  readonly sending: readonly LateMessages[];
}

const ALL = "";

/** Conditions by these rules. `clockMs`: of the lifecycle. */
export function conditionsOf(
  rules: Rules,
  look: Look,
  { clockMs, failed }: { readonly clockMs: number; readonly failed: Growth | null },
): { readonly conditions: readonly Condition[]; readonly failed: Growth } {
  const { counts } = look.status;
  const isCut = isPart(look.status);
  const seen = counts.filter(({ state, topic }) => state === "failed" && topic !== ALL);
  const growth = growthOf(
    failed,
    seen.map(({ count, topic }) => ({ count, subject: topic })),
    { clockMs, isPart: isCut, windowMs: rules.failed?.windowMs },
  );
  const all: readonly Condition[] = [
    ...relayConditions(look.status),
    ...brokerConditions(rules, look.status),
    ...failedConditions(rules, growth, { clockMs, isCut }),
    ...dueConditions(rules, look.status),
    ...lateConditions("unconfirmed", look.unconfirmed),
    ...lateConditions("sending-long", look.sending),
    ...suspensionConditions(look.status),
  ];
  return { conditions: all.filter(({ rule }) => isOn(rules, rule)), failed: growth };
}

export function isOn(rules: Rules, rule: Condition["rule"]): boolean {
  return rule !== "test" && rules[rule] !== undefined;
}

function relayConditions({ instances, leases }: OutboxStatus): Condition[] {
  const alive = instances.filter((instance) => instance.alive);
  if (alive.length === 0) return [{ rule: "no-relay", subject: ALL, severity: "critical", value: 1, facts: {} }];
  const owners = new Set(alive.map(({ owner }) => owner));
  const orphans = leases.filter(({ owner }) => owner === undefined || !owners.has(owner)).length;
  if (orphans === 0) return [];
  const facts = { count: orphans, of: leases.length };
  return [{ rule: "shard-unowned", subject: ALL, severity: "critical", value: orphans, facts }];
}

function brokerConditions(rules: Rules, { instances }: OutboxStatus): Condition[] {
  const found = new Map<string, Condition>();
  for (const { alive, label, report, reportAgeMs } of instances) {
    if (!alive || report === undefined) continue;
    for (const { awayForMs, name } of report.brokers) {
      // The reported durations count to the report, which is at most seconds old.
      const value = awayForMs ?? 0;
      if (awayForMs === undefined || value <= (rules["broker-away"]?.overMs ?? 0)) continue;
      const known = found.get(`broker ${name}`);
      if (known !== undefined && known.value >= value) continue;
      const facts = { awayMs: value, relay: label, reportAgeMs: reportAgeMs ?? 0 };
      found.set(`broker ${name}`, { rule: "broker-away", subject: name, severity: "critical", value, facts });
    }
    for (const { topic } of report.restingTopics) {
      const facts = { relay: label };
      found.set(`topic ${topic}`, { rule: "topic-resting", subject: topic, severity: "warning", value: 1, facts });
    }
  }
  return [...found.values()];
}

/** There are more failed messages than are looked at, so the rest is unknown. */
function isPart({ counts, totals }: OutboxStatus): boolean {
  return [...counts, ...totals].some(({ atLeast, state }) => state === "failed" && atLeast);
}

function failedConditions(
  rules: Rules,
  growth: Growth,
  { clockMs, isCut }: { readonly clockMs: number; readonly isCut: boolean },
): Condition[] {
  return Object.entries(growth).flatMap(([subject, each]): Condition[] => {
    const grade = gradeOf(each, rules.failed, clockMs);
    if (grade === undefined) return [];
    return [{ rule: "failed", subject, ...grade, facts: { count: grade.value, more: isCut ? 1 : 0 } }];
  });
}

/** During a suspension of everything, as before a take-over, nothing is late. */
function dueConditions(rules: Rules, { oldestDue, suspensions }: OutboxStatus): Condition[] {
  const { criticalOverMs = Number.POSITIVE_INFINITY, overMs = 0 } = rules["oldest-due"] ?? {};
  if (oldestDue === undefined || oldestDue.waitingMs <= overMs) return [];
  if (suspensions.some(({ scope }) => scope === "relay")) return [];
  const { id, topic, waitingMs } = oldestDue;
  const severity = waitingMs > criticalOverMs ? "critical" : "warning";
  return [{ rule: "oldest-due", subject: ALL, severity, value: waitingMs, facts: { id, topic, waitingMs } }];
}

function lateConditions(rule: "unconfirmed" | "sending-long", late: readonly LateMessages[]): Condition[] {
  return late.map(({ count, lateMs, name }) => ({
    rule,
    subject: name,
    severity: "warning",
    value: count,
    facts: { count, lateMs },
  }));
}

function suspensionConditions({ suspensions }: OutboxStatus): Condition[] {
  return suspensions
    .filter(({ endsInMs }) => endsInMs === null)
    .map(({ author, scope, value }) => ({
      rule: "suspension",
      subject: `${scope}:${value}`,
      severity: "info",
      value: 1,
      facts: { scope, name: value, author },
    }));
}
