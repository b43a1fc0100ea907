/** Stored state of a table's alerts: JSON in the table `<companion>_alert`. */
import type { Growth } from "./growth.ts";
import type { Condition, Severity } from "./rules.ts";

/** An alert; times ending in `Ms` are of the lifecycle's clock. */
export interface Alert extends Condition {
  /** `waiting`: it must hold for longer. */
  readonly phase: "waiting" | "firing";
  readonly sinceMs: number;
  /** ISO 8601 UTC. */
  readonly since: string;
  readonly seenMs: number;
  readonly firedMs: number | null;
  readonly toldMs: number | null;
  readonly toldSeverity: Severity | null;
  readonly peak: number;
}

export interface NoticeItem extends Condition {
  readonly kind: "firing" | "worse" | "still" | "resolved";
  readonly since: string;
  readonly forMs: number;
  readonly peak: number;
}

export interface Notice {
  readonly id: string;
  readonly at: string;
  readonly items: readonly NoticeItem[];
  readonly deliveries: Readonly<Record<string, { readonly tries: number; readonly nextMs: number }>>;
}

export interface ChannelAnswer {
  readonly at: string;
  readonly ok: boolean;
  readonly answer: string;
}

export interface AlertsState {
  readonly owner: string;
  readonly clockMs: number;
  readonly alerts: Readonly<Record<string, Alert>>;
  readonly notices: readonly Notice[];
  readonly history: readonly {
    readonly rule: Condition["rule"];
    readonly subject: string;
    readonly severity: Severity;
    readonly since: string;
    readonly until: string;
    readonly forMs: number;
    readonly peak: number;
  }[];
  readonly failed: Growth | null;
  readonly dead: Growth | null;
  readonly channels: Readonly<Record<string, ChannelAnswer>>;
}

export const NO_ALERTS: AlertsState = {
  owner: "",
  clockMs: 0,
  alerts: {},
  notices: [],
  history: [],
  failed: null,
  dead: null,
  channels: {},
};

/**
 * Fills in parts missing in another version's state and drops unknown ones. Throws for invalid
 * JSON.
 */
export function parseState(text: string | undefined): AlertsState {
  if (text === undefined) return NO_ALERTS;
  const stored = { ...NO_ALERTS, ...(JSON.parse(text) as Partial<AlertsState>) };
  const { channels, clockMs, dead, failed, history, owner } = stored;
  const alerts = Object.entries(stored.alerts).flatMap(([key, alert]): [string, Alert][] => {
    // Earlier versions kept ended alerts for a while. An end not yet sent is sent.
    if ((alert.phase as string) !== "ok") return [[key, alert]];
    return alert.toldMs === null ? [] : [[key, { ...alert, phase: "firing" }]];
  });
  const notices = stored.notices.map(({ at, deliveries, id, items }) => ({
    at,
    deliveries,
    id,
    // Earlier versions had a separate kind for flapping.
    items: items.map((item) => ((item.kind as string) === "flapping" ? { ...item, kind: "firing" as const } : item)),
  }));
  return { channels, clockMs, dead, failed, history, owner, notices, alerts: Object.fromEntries(alerts) };
}
