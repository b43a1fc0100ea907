/**
 * From what holds now to what is told: ok, waiting, firing, resolved. A pure function over the
 * state that is kept in the database.
 *
 * Its clock is its own: it grows by what a monotonic clock of the evaluator says, and over a change
 * of evaluators by what the database's clock says, within bounds. So no clock that is set makes a
 * notice come twice, or never.
 */
import { type Condition, type Rules, SEVERITIES, type Severity } from "./rules.ts";
import type { Alert, AlertsState, Notice, NoticeItem } from "./state.ts";

/** A condition that is gone for less is still there: what comes and goes is told once. */
const KEEP_FIRING_MS = 120_000;
/** What fires together is told together. */
const GATHER_MS = 15_000;
const REPEAT_MS = 4 * 3_600_000;
/** So many changes within this time are flapping. */
const FLAPPING_CHANGES = 4;
const FLAPPING_MS = 1_800_000;
const KEPT_HISTORY = 50;

/** Without a relay these hold too, and say nothing new. */
const FOLLOWS_FROM_NO_RELAY: readonly Condition["rule"][] = ["oldest-due", "unconfirmed", "sending-long"];
/** Something that happened: it is not told when it is over. */
const HAPPENED: readonly Condition["rule"][] = ["operation-failed"];

export interface StepInput {
  /** Since the last step. */
  readonly elapsedMs: number;
  /** The wall clock, for people: ISO 8601 UTC. */
  readonly at: string;
  readonly conditions: readonly Condition[];
  readonly rules: Rules;
  readonly silences: readonly { readonly rule?: string | undefined; readonly subject?: string | undefined }[];
  readonly channels: readonly { readonly name: string; readonly from: Severity }[];
  /** Of the notice, if there is one. */
  readonly noticeId: string;
}

/** The next state. What is to be told is in its notices, for each channel. */
export function step(state: AlertsState, input: StepInput): AlertsState {
  const clockMs = state.clockMs + Math.max(0, input.elapsedMs);
  const holds = new Map(input.conditions.map((condition) => [keyOf(condition), condition]));
  const hasNoRelay = input.conditions.some(({ rule }) => rule === "no-relay");
  const alerts: Record<string, Alert> = {};
  const history = [...state.history];
  const items: NoticeItem[] = [];
  for (const key of new Set([...Object.keys(state.alerts), ...holds.keys()])) {
    const before = state.alerts[key];
    const condition = holds.get(key);
    const rule = condition?.rule ?? before?.rule;
    if (rule === undefined) continue;
    const isMuted = hasNoRelay && FOLLOWS_FROM_NO_RELAY.includes(rule);
    if (isMuted) {
      if (before !== undefined) alerts[key] = { ...before, seenMs: clockMs };
      continue;
    }
    const moved = move(before, condition, { ...input, clockMs });
    if (moved === undefined) continue;
    const isSilenced = input.silences.some((silence) => isMeant(silence, moved));
    const { alert, item } = tell(before, moved, { clockMs, isSilenced });
    if (before?.phase === "firing" && alert.phase === "ok") history.push(past(before, input.at));
    if (item !== undefined) items.push(item);
    if (alert.phase !== "ok" || alert.changes.length > 0) alerts[key] = alert;
  }
  const notices = [...state.notices, ...noticeOf(items, input)];
  return { ...state, clockMs, alerts, notices, history: history.slice(-KEPT_HISTORY) };
}

function keyOf({ rule, subject }: Pick<Condition, "rule" | "subject">): string {
  return `${rule}|${subject}`;
}

/** Where it goes by its condition alone; undefined: there is nothing to remember. */
function move(
  before: Alert | undefined,
  condition: Condition | undefined,
  { at, clockMs, rules }: StepInput & { readonly clockMs: number },
): Alert | undefined {
  const changes = (before?.changes ?? []).filter((changedMs) => clockMs - changedMs < FLAPPING_MS);
  if (condition === undefined) {
    if (before === undefined) return undefined;
    const isOver = before.phase === "firing" && clockMs - before.seenMs >= KEEP_FIRING_MS;
    if (isOver) return { ...before, phase: "ok", changes: [...changes, clockMs] };
    return before.phase === "waiting" ? { ...before, phase: "ok", changes } : { ...before, changes };
  }
  const isNew = before === undefined || before.phase === "ok";
  const { facts, rule, severity, subject, value } = condition;
  const alert: Alert = isNew
    ? {
        ...{ rule, subject, facts, severity, value, peak: value, changes, phase: "waiting" },
        ...{ sinceMs: clockMs, since: at, seenMs: clockMs, firedMs: null },
        ...{ toldMs: before?.isFlapping === true ? before.toldMs : null, toldSeverity: null },
        isFlapping: before?.isFlapping ?? false,
      }
    : {
        ...before,
        ...{ facts, value, changes, peak: Math.max(before.peak, value), seenMs: clockMs },
        severity: graver(severity, before.severity),
      };
  if (alert.phase !== "waiting" || clockMs - alert.sinceMs < forMsOf(rules, rule)) return alert;
  return { ...alert, phase: "firing", firedMs: clockMs, changes: [...changes, clockMs] };
}

/** What is told of it now, if anything. */
function tell(
  before: Alert | undefined,
  moved: Alert,
  { clockMs, isSilenced }: { readonly clockMs: number; readonly isSilenced: boolean },
): { readonly alert: Alert; readonly item: NoticeItem | undefined } {
  const isFlapping = moved.changes.length >= FLAPPING_CHANGES || (moved.isFlapping && moved.changes.length > 0);
  const alert = { ...moved, isFlapping };
  const kind = isSilenced ? undefined : kindOf(before, alert, clockMs);
  if (kind === undefined) return { alert, item: undefined };
  const item = { ...itemOf(alert, clockMs), kind };
  const isDone = kind === "resolved";
  return { alert: { ...alert, toldMs: isDone ? null : clockMs, toldSeverity: isDone ? null : alert.severity }, item };
}

function kindOf(before: Alert | undefined, alert: Alert, clockMs: number): NoticeItem["kind"] | undefined {
  const { firedMs, isFlapping, phase, severity, toldMs, toldSeverity } = alert;
  if (isFlapping && before?.isFlapping !== true) return "flapping";
  if (phase === "ok") {
    const isOver = toldMs !== null && !isFlapping && !HAPPENED.includes(alert.rule);
    return isOver && (before?.phase === "firing" || before?.isFlapping === true) ? "resolved" : undefined;
  }
  if (phase !== "firing") return undefined;
  if (toldMs === null) return clockMs - (firedMs ?? clockMs) >= GATHER_MS ? "firing" : undefined;
  if (toldSeverity !== null && rankOf(severity) > rankOf(toldSeverity)) return "worse";
  return clockMs - toldMs >= REPEAT_MS ? "still" : undefined;
}

function itemOf(alert: Alert, clockMs: number): Omit<NoticeItem, "kind"> {
  const { facts, peak, phase, rule, seenMs, severity, since, sinceMs, subject, value } = alert;
  const forMs = (phase === "ok" ? seenMs : clockMs) - sinceMs;
  return { rule, subject, severity, since, forMs, value, peak, facts };
}

function past(alert: Alert, until: string): AlertsState["history"][number] {
  const { peak, rule, seenMs, severity, since, sinceMs, subject } = alert;
  return { rule, subject, severity, since, until, forMs: seenMs - sinceMs, peak };
}

function noticeOf(items: readonly NoticeItem[], { at, channels, noticeId }: StepInput): readonly Notice[] {
  const meant = channels.filter(({ from }) => items.some(({ severity }) => rankOf(severity) >= rankOf(from)));
  if (meant.length === 0) return [];
  const deliveries = Object.fromEntries(meant.map(({ name }) => [name, { tries: 0, nextMs: 0 }]));
  return [{ id: noticeId, at, items: [...items].sort((a, b) => rankOf(b.severity) - rankOf(a.severity)), deliveries }];
}

function forMsOf(rules: Rules, rule: Condition["rule"]): number {
  return rule === "test" ? 0 : (rules[rule]?.forMs ?? 0);
}

/** Does the silence mean this alert? */
export function isMeant({ rule, subject }: StepInput["silences"][number], alert: Alert): boolean {
  return (rule === undefined || rule === alert.rule) && (subject === undefined || subject === alert.subject);
}

export function rankOf(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}

function graver(left: Severity, right: Severity): Severity {
  return rankOf(left) > rankOf(right) ? left : right;
}
