/**
 * Turns current conditions into alerts (waiting, firing, over) and notices. A pure function of the
 * state stored in the database.
 *
 * It has its own clock, which advances by the evaluator's monotonic clock, and when evaluators
 * change, by the database's clock within bounds. So a clock that is set neither repeats nor
 * suppresses a notice.
 */
import { type Condition, type Rules, SEVERITIES, type Severity } from "./rules.ts";
import type { Alert, AlertsState, Notice, NoticeItem } from "./state.ts";

/** A condition that is gone for less still holds, so a flapping one alerts once. */
const KEEP_FIRING_MS = 120_000;
const GATHER_MS = 15_000;
const REPEAT_MS = 4 * 3_600_000;
const KEPT_HISTORY = 50;

/** Consequences of a missing relay, which add nothing. */
const FOLLOWS_FROM_NO_RELAY: readonly Condition["rule"][] = ["oldest-due", "unconfirmed", "sending-long"];

export interface StepInput {
  /** Since the last step. */
  readonly elapsedMs: number;
  /** The wall clock for texts: ISO 8601 UTC. */
  readonly at: string;
  readonly conditions: readonly Condition[];
  readonly rules: Rules;
  readonly silences: readonly { readonly rule?: string | undefined; readonly subject?: string | undefined }[];
  readonly channels: readonly { readonly name: string; readonly from: Severity }[];
  readonly noticeId: string;
}

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
    const about = condition ?? before;
    if (about === undefined) continue;
    const isMuted = hasNoRelay && FOLLOWS_FROM_NO_RELAY.includes(about.rule);
    if (isMuted) {
      if (before !== undefined) alerts[key] = { ...before, seenMs: clockMs };
      continue;
    }
    const alert = move(before, condition, { ...input, clockMs });
    const isSilenced = input.silences.some((silence) => isMeant(silence, about));
    if (alert === undefined) {
      if (before?.phase !== "firing") continue;
      history.push(past(before, input.at));
      const isTold = before.toldMs !== null && !isSilenced;
      if (isTold) items.push({ ...itemOf(before, before.seenMs), kind: "resolved" });
      continue;
    }
    const kind = isSilenced ? undefined : kindOf(alert, clockMs);
    if (kind !== undefined) items.push({ ...itemOf(alert, clockMs), kind });
    alerts[key] = kind === undefined ? alert : { ...alert, toldMs: clockMs, toldSeverity: alert.severity };
  }
  const notices = [...state.notices, ...noticeOf(items, input)];
  return { ...state, clockMs, alerts, notices, history: history.slice(-KEPT_HISTORY) };
}

function keyOf({ rule, subject }: Pick<Condition, "rule" | "subject">): string {
  return `${rule}|${subject}`;
}

function move(
  before: Alert | undefined,
  condition: Condition | undefined,
  { at, clockMs, rules }: StepInput & { readonly clockMs: number },
): Alert | undefined {
  if (condition === undefined) {
    const isKept = before?.phase === "firing" && clockMs - before.seenMs < KEEP_FIRING_MS;
    return isKept ? before : undefined;
  }
  const { facts, rule, severity, subject, value } = condition;
  const alert: Alert =
    before === undefined
      ? {
          rule,
          subject,
          facts,
          severity,
          value,
          peak: value,
          phase: "waiting",
          sinceMs: clockMs,
          since: at,
          seenMs: clockMs,
          firedMs: null,
          toldMs: null,
          toldSeverity: null,
        }
      : {
          ...before,
          facts,
          value,
          peak: Math.max(before.peak, value),
          seenMs: clockMs,
          severity: graver(severity, before.severity),
        };
  if (alert.phase === "firing" || clockMs - alert.sinceMs < forMsOf(rules, rule)) return alert;
  return { ...alert, phase: "firing", firedMs: clockMs };
}

function kindOf(
  { firedMs, phase, severity, toldMs, toldSeverity }: Alert,
  clockMs: number,
): NoticeItem["kind"] | undefined {
  if (phase !== "firing") return undefined;
  if (toldMs === null) return clockMs - (firedMs ?? clockMs) >= GATHER_MS ? "firing" : undefined;
  if (toldSeverity !== null && rankOf(severity) > rankOf(toldSeverity)) return "worse";
  return clockMs - toldMs >= REPEAT_MS ? "still" : undefined;
}

function itemOf(alert: Alert, untilMs: number): Omit<NoticeItem, "kind"> {
  const { facts, peak, rule, severity, since, sinceMs, subject, value } = alert;
  return { rule, subject, severity, since, forMs: untilMs - sinceMs, value, peak, facts };
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

export function isMeant(
  { rule, subject }: StepInput["silences"][number],
  alert: Pick<Alert, "rule" | "subject">,
): boolean {
  return (rule === undefined || rule === alert.rule) && (subject === undefined || subject === alert.subject);
}

export function rankOf(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}

function graver(left: Severity, right: Severity): Severity {
  return rankOf(left) > rankOf(right) ? left : right;
}
