/**
 * Evaluates the alerts of one message table. A turn takes the lease, looks, decides, saves pending
 * notices, sends them and saves the result. If the process dies between the last two steps, the
 * next evaluator sends them again; one that lost the lease sends nothing.
 */
import { randomUUID } from "node:crypto";
import { type Database, describeError, type Logger, type Metrics, RowpostError, type TableLayout } from "rowpost";
import type { AlertStore, MessageAdmin, StoredAlerts } from "rowpost/admin";
import type { Channel } from "./channels/send.ts";
import { deliver, hasDue } from "./delivery.ts";
import { createDoctorLook } from "./doctor-rule.ts";
import { type StepInput, step } from "./lifecycle.ts";
import { createQueueLook } from "./queue-look.ts";
import { type Condition, conditionsOf, isOn, type Look, RULE_NAMES, type Rules } from "./rules.ts";
import { type AlertsState, NO_ALERTS, parseState } from "./state.ts";

/** Much longer than a turn, which sends for at most five seconds. */
const LEASE_MS = 60_000;
/** Between two evaluators the time comes from the database's clock, which may have been set. */
const MOST_GAP_MS = 600_000;
const STATEMENT_TIMEOUT_MS = 5_000;

export interface EvaluatorOptions {
  readonly name: string;
  readonly database: Database;
  readonly layout: TableLayout;
  readonly rules: Rules;
  readonly channels: readonly Channel[];
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly monotonicMs: () => number;
}

export interface Evaluator {
  /**
   * One turn. Resolves to the state; undefined if another process evaluates. Never rejects: an
   * unreachable database is an alert.
   */
  turn(): Promise<AlertsState | undefined>;
  close(): Promise<void>;
}

export function createEvaluator(options: EvaluatorOptions): Evaluator {
  const { channels, database, layout, logger, metrics, monotonicMs, name, rules } = options;
  const tools = { layout, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
  const parts = { alerts: database.alerts(tools), admin: database.messageAdmin(tools) };
  const queueLook = createQueueLook({ ...options, alerts: parts.alerts });
  const doctorLook = createDoctorLook(options);
  const owner = randomUUID();
  /** When this process last saved; undefined if it does not evaluate. */
  let savedMs: number | undefined;
  const away = createAwayWatch(options, owner);

  function elapsedSince({ nowMs, savedMs: storedMs }: StoredAlerts, state: AlertsState, startMs: number): number {
    if (savedMs !== undefined && state.owner === owner) return startMs - savedMs;
    return Math.min(MOST_GAP_MS, Math.max(0, nowMs - (storedMs ?? nowMs)));
  }

  async function save(state: AlertsState): Promise<boolean> {
    return await parts.alerts.save({ owner, leaseMs: LEASE_MS, state: JSON.stringify(state) });
  }

  /** Undefined if another process has the lease. */
  async function evaluate(): Promise<AlertsState | undefined> {
    const startMs = monotonicMs();
    const stored = await parts.alerts.take({ owner, leaseMs: LEASE_MS });
    if (stored === undefined) return undefined;
    const before = parseState(stored.state);
    const elapsedMs = elapsedSince(stored, before, startMs);
    const look = await lookAt(parts, rules);
    const clockMs = before.clockMs + elapsedMs;
    const { conditions, failed } = conditionsOf(rules, look, { clockMs, failed: before.failed });
    const queue = await queueLook.look(before.dead, { clockMs, nowMs: stored.nowMs });
    const all = [...conditions, ...queue.conditions, ...(await doctorLook())];
    const silences = (await parts.alerts.silences()).filter(({ active }) => active);
    const input = { ...stepInput(options, all), elapsedMs, silences };
    const decided: AlertsState = { ...step(before, input), failed, dead: queue.dead, owner };
    // Saved as pending before sending: if this process dies now, the next one sends it.
    if (!(await save(decided))) return undefined;
    savedMs = startMs;
    if (!hasDue(decided)) return decided;
    const told = await deliver(decided, { source: name, channels, logger, metrics });
    if (told !== decided && !(await save(told))) savedMs = undefined;
    return told;
  }

  async function turn(): Promise<AlertsState | undefined> {
    try {
      const state = await evaluate();
      if (state === undefined) savedMs = undefined;
      await away.back();
      return state;
    } catch (error) {
      logger.warn("alerts could not be evaluated", { source: name, error: describeError(error) });
      return await away.failed(error);
    }
  }

  return {
    async turn() {
      const state = await turn();
      measure(metrics, name, state);
      return state;
    },
    async close() {
      try {
        if (savedMs !== undefined) await parts.alerts.release(owner);
      } catch (error) {
        logger.debug("the lease of alerts ends by itself", { source: name, error: describeError(error) });
      } finally {
        await Promise.all([...Object.values(parts), queueLook].map((each) => each.close()));
      }
    },
  };
}

/** All 0 in processes that do not evaluate, so the maximum over all processes is right. */
function measure(metrics: Metrics, source: string, known: AlertsState | undefined): void {
  const alerts = Object.values(known?.alerts ?? {});
  for (const rule of RULE_NAMES) {
    for (const state of ["firing", "waiting"] as const) {
      const count = alerts.filter((alert) => alert.rule === rule && alert.phase === state).length;
      metrics.gauge("rowpost_alerts", { source, rule, state }, count);
    }
  }
}

interface AwayWatch {
  back(): Promise<void>;
  failed(error: unknown): Promise<AlertsState>;
}

/**
 * Alerts about the database itself cannot be stored in it. They stay in this process, and each
 * evaluating process sends them once.
 */
function createAwayWatch(options: EvaluatorOptions, owner: string): AwayWatch {
  const { channels, logger, metrics, monotonicMs, name } = options;
  let state: AlertsState = { ...NO_ALERTS, owner };
  let lastMs = monotonicMs();

  async function turn(conditions: readonly Condition[]): Promise<AlertsState> {
    const nowMs = monotonicMs();
    const input = { ...stepInput(options, conditions), elapsedMs: nowMs - lastMs, silences: [] };
    lastMs = nowMs;
    state = step(state, input);
    state = hasDue(state) ? await deliver(state, { source: name, channels, logger, metrics }) : state;
    return state;
  }

  return {
    async back() {
      if (Object.keys(state.alerts).length > 0 || state.notices.length > 0) await turn([]);
      else lastMs = monotonicMs();
    },
    failed: (error) => turn(isUnfit(error) ? [about("schema")] : [about("database")]),
  };

  function about(rule: "schema" | "database"): Condition {
    return { rule, subject: "", severity: "critical", value: 1, facts: {} };
  }
}

function isUnfit(error: unknown): boolean {
  return error instanceof RowpostError && (error.code === "SCHEMA" || error.code === "PERMISSION");
}

function stepInput(
  { channels, rules }: EvaluatorOptions,
  conditions: readonly Condition[],
): Omit<StepInput, "elapsedMs" | "silences"> {
  return {
    at: new Date().toISOString(),
    noticeId: `alert_${randomUUID()}`,
    rules,
    conditions: conditions.filter(({ rule }) => isOn(rules, rule)),
    channels: channels.map(({ config: { from, name } }) => ({ name, from })),
  };
}

async function lookAt(
  { admin, alerts }: { readonly admin: MessageAdmin; readonly alerts: AlertStore },
  rules: Rules,
): Promise<Look> {
  const unconfirmedMs = rules.unconfirmed?.overMs ?? 60_000;
  const sendingMs = rules["sending-long"]?.overMs ?? 90_000;
  const status = await admin.status();
  const late = await alerts.late({ unconfirmedMs, sendingMs });
  return { status, ...late };
}
