/** Alerts as an evaluator leaves them. */
import type { Database } from "rowpost";
import { type Alert, type AlertsState, NO_ALERTS } from "../src/alerts/state.ts";
import { putAlerts } from "./alert-bench.ts";

const COMMON: Omit<Alert, "rule" | "subject" | "severity" | "value" | "peak" | "facts"> = {
  phase: "firing",
  sinceMs: 0,
  seenMs: 60_000,
  firedMs: 0,
  toldMs: 15_000,
  toldSeverity: null,
  since: "2026-11-24T03:00:00.000Z",
};

/** Three that fire or wait, one that was, and a channel that was told. */
export async function seedAlerts(database: Database, topic = "orders"): Promise<void> {
  const failed: Alert = {
    ...COMMON,
    rule: "failed",
    subject: topic,
    severity: "warning",
    value: 12,
    peak: 40,
    facts: { count: 12, more: 0 },
  };
  const due: Alert = {
    ...COMMON,
    rule: "oldest-due",
    subject: "",
    severity: "critical",
    value: 4_000_000,
    peak: 4_000_000,
    facts: { id: 1, topic, waitingMs: 4_000_000 },
  };
  const suspended: Alert = {
    ...COMMON,
    phase: "waiting",
    rule: "suspension",
    subject: `topic:${topic}`,
    severity: "info",
    value: 1,
    peak: 1,
    facts: { scope: "topic", name: topic, author: "ann" },
  };
  const state: AlertsState = {
    ...NO_ALERTS,
    clockMs: 60_000,
    alerts: { failed, due, suspended },
    history: [
      {
        rule: "no-relay",
        subject: "",
        severity: "critical",
        forMs: 600_000,
        peak: 1,
        since: "2026-11-24T01:00:00.000Z",
        until: "2026-11-24T01:10:00.000Z",
      },
    ],
    channels: {
      ops: { at: "2026-11-24T03:00:15.000Z", ok: false, answer: "HTTP 200, errcode 310000: sign not match" },
    },
  };
  await putAlerts(database, state);
}
