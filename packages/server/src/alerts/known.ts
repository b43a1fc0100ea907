import type { AlertStore, StoredAlerts } from "rowpost/admin";
import { isMeant, rankOf } from "./lifecycle.ts";
import type { Severity } from "./rules.ts";
import { type AlertsState, parseState } from "./state.ts";

/** Beyond this nobody evaluates: looks come every 15 s, or by cron every minute. */
const FRESH_MS = 150_000;

export interface KnownAlerts {
  readonly state: AlertsState;
  /** Since the last look; undefined: there was none. */
  readonly ageMs: number | undefined;
  readonly isEvaluated: boolean;
}

/** Throws for invalid JSON. */
export function knownAlerts({ nowMs, savedMs, state }: StoredAlerts): KnownAlerts {
  const ageMs = savedMs === undefined ? undefined : Math.max(0, nowMs - savedMs);
  return { state: parseState(state), ageMs, isEvaluated: ageMs !== undefined && ageMs < FRESH_MS };
}

export interface Firing {
  readonly count: number;
  readonly severity: Severity;
}

/** Undefined if nothing fires or nobody evaluates. Reads silences only when something fires. */
export async function readFiring(alerts: Pick<AlertStore, "read" | "silences">): Promise<Firing | undefined> {
  const { isEvaluated, state } = knownAlerts(await alerts.read());
  const firing = Object.values(state.alerts).filter(({ phase }) => phase === "firing");
  if (!isEvaluated || firing.length === 0) return undefined;
  const silences = (await alerts.silences()).filter(({ active }) => active);
  const heard = firing.filter((alert) => !silences.some((silence) => isMeant(silence, alert)));
  const [first] = heard.sort((a, b) => rankOf(b.severity) - rankOf(a.severity));
  return first && { count: heard.length, severity: first.severity };
}
