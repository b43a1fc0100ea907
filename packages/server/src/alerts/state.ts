/** What the evaluators of a table know and have told: JSON in the table `<companion>_alert`. */
import type { Growth } from "./growth.ts";
import type { Condition, Severity } from "./rules.ts";

/** An alert; times ending in `Ms` are of the lifecycle's own clock. */
export interface Alert extends Condition {
  /** `waiting`: it must hold for longer. */
  readonly phase: "waiting" | "firing";
  readonly sinceMs: number;
  /** ISO 8601 UTC. */
  readonly since: string;
  /** When it held last. */
  readonly seenMs: number;
  readonly firedMs: number | null;
  /** When the last notice was made; null: none yet. */
  readonly toldMs: number | null;
  readonly toldSeverity: Severity | null;
  readonly peak: number;
}

/** What a notice says of an alert. */
export interface NoticeItem extends Condition {
  readonly kind: "firing" | "worse" | "still" | "resolved";
  readonly since: string;
  readonly forMs: number;
  readonly peak: number;
}

/** A notice that some channels have not taken yet. */
export interface Notice {
  /** The same for each attempt. */
  readonly id: string;
  readonly at: string;
  readonly items: readonly NoticeItem[];
  /** By channel. */
  readonly deliveries: Readonly<Record<string, { readonly tries: number; readonly nextMs: number }>>;
}

/** How the last notice of a channel went. */
export interface ChannelAnswer {
  readonly at: string;
  readonly ok: boolean;
  readonly answer: string;
}

export interface AlertsState {
  /** The evaluator that wrote it. */
  readonly owner: string;
  readonly clockMs: number;
  readonly alerts: Readonly<Record<string, Alert>>;
  readonly notices: readonly Notice[];
  /** What was, the newest last. */
  readonly history: readonly {
    readonly rule: Condition["rule"];
    readonly subject: string;
    readonly severity: Severity;
    readonly since: string;
    readonly until: string;
    readonly forMs: number;
    readonly peak: number;
  }[];
  /** Failed messages by topic. Null: nobody has looked yet. */
  readonly failed: Growth | null;
  /** Dead letters by `topic/group`. As above. */
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
 * What another version wrote, and lacks a part, is filled up; what it knew beside is left out.
 * Throws for what is no JSON.
 */
export function parseState(text: string | undefined): AlertsState {
  if (text === undefined) return NO_ALERTS;
  const stored = { ...NO_ALERTS, ...(JSON.parse(text) as Partial<AlertsState>) };
  const { channels, clockMs, dead, failed, history, owner } = stored;
  const alerts = Object.entries(stored.alerts).flatMap(([key, alert]): [string, Alert][] => {
    // Earlier versions kept what was over for a while. An end that they still had to tell is told.
    if ((alert.phase as string) !== "ok") return [[key, alert]];
    return alert.toldMs === null ? [] : [[key, { ...alert, phase: "firing" }]];
  });
  const notices = stored.notices.map(({ at, deliveries, id, items }) => ({
    at,
    deliveries,
    id,
    // And told of what came and went in words of its own.
    items: items.map((item) => ((item.kind as string) === "flapping" ? { ...item, kind: "firing" as const } : item)),
  }));
  return { channels, clockMs, dead, failed, history, owner, notices, alerts: Object.fromEntries(alerts) };
}
