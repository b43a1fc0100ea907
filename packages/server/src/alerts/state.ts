/** What the evaluators of a table know and have told: JSON in the table `<companion>_alert`. */
import type { DoctorMemory } from "./doctor-rule.ts";
import type { QueueMemory } from "./queue-rules.ts";
import type { Condition, FailedMemory, Severity } from "./rules.ts";

/** `waiting`: it must hold for longer; `ok`: it is over, and remembered for a while. */
export type Phase = "waiting" | "firing" | "ok";

/** An alert; times ending in `Ms` are of the lifecycle's own clock. */
export interface Alert extends Condition {
  readonly phase: Phase;
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
  /** When it began and ended to fire, lately. */
  readonly changes: readonly number[];
  readonly isFlapping: boolean;
}

/** What a notice says of an alert. */
export interface NoticeItem extends Condition {
  readonly kind: "firing" | "worse" | "still" | "flapping" | "resolved";
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
  /** A channel has given up, and its fallback was asked. */
  readonly isFallback?: boolean | undefined;
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
  /** Null: nobody has looked yet. */
  readonly failed: FailedMemory | null;
  /** As above. */
  readonly queue: QueueMemory | null;
  /** As above. */
  readonly doctor: DoctorMemory | null;
  readonly channels: Readonly<Record<string, ChannelAnswer>>;
}

export const NO_ALERTS: AlertsState = {
  ...{ owner: "", clockMs: 0, alerts: {}, notices: [], history: [], failed: null, channels: {} },
  ...{ queue: null, doctor: null },
};

/** What another version wrote, and lacks a part, is filled up. Throws for what is no JSON. */
export function parseState(text: string | undefined): AlertsState {
  if (text === undefined) return NO_ALERTS;
  return { ...NO_ALERTS, ...(JSON.parse(text) as Partial<AlertsState>) };
}
