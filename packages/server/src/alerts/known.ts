/** What is known of the alerts of a table, to who does not evaluate them. */
import type { StoredAlerts } from "rowpost";
import { rankOf } from "./lifecycle.ts";
import { type AlertsState, parseState } from "./state.ts";

/** A look that is older was nobody's: they come every 15 s, or by cron every minute. */
const FRESH_MS = 150_000;

export interface KnownAlerts {
  readonly state: AlertsState;
  /** Since the last look; undefined: there was none. */
  readonly ageMs: number | undefined;
  /** A process evaluates. */
  readonly isEvaluated: boolean;
}

/** Throws for a state that is no JSON. */
export function knownAlerts({ nowMs, savedMs, state }: StoredAlerts): KnownAlerts {
  const ageMs = savedMs === undefined ? undefined : Math.max(0, nowMs - savedMs);
  return { state: parseState(state), ageMs, isEvaluated: ageMs !== undefined && ageMs < FRESH_MS };
}

/** Alerts that fire, the gravest first; undefined: none, or nobody knows. */
export function firingOf(stored: StoredAlerts) {
  const { isEvaluated, state } = knownAlerts(stored);
  const firing = Object.values(state.alerts).filter(({ phase }) => phase === "firing");
  const [first] = firing.sort((a, b) => rankOf(b.severity) - rankOf(a.severity));
  return first === undefined || !isEvaluated ? undefined : { count: firing.length, severity: first.severity };
}
