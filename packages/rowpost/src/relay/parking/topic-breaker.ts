/**
 * Circuit breaker per topic: a topic that cannot be sent must neither use up its messages' attempts
 * at full speed nor fill the window.
 *
 *            all refused, a retry can mend it               its rest is over
 *   well  ────────────────────────────────────►  resting  ─────────────────►  probing
 *    ▲       away, throttled, or no answer          ▲                            │
 *    │                                              └────────────────────────────┤ again
 *    └───────────────────────────────────────────────────────────────────────────┘ one was sent
 *
 * - When the *destination* is throttled, away or gave no answer, the topic rests for a growing time
 *   and is then probed with one message.
 * - When every message failed with scope *message* and a retry can help (the topic does not exist
 *   or has the wrong type), it is slowed to {@link MESSAGE_PROBE} messages a second. These attempts
 *   count, so the messages do reach `failed`.
 */
import { backoffCeilingMs } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Messages that probe a topic after counted failures. */
export const MESSAGE_PROBE = 100;
/** Longest rest after counted failures, so that attempts get used up. */
const REFUSING_REST_MS = 1_000;
/**
 * Longest rest after destination failures or missing answers, from 200 ms doubled, unless the
 * broker named a time.
 */
const AWAY_REST_MS = 30_000;
/** One-off topics must not grow the map forever. */
const FORGET_MS = 600_000;

export interface TopicReport {
  readonly topic: string;
  readonly sent: number;
  readonly destination: number;
  readonly unknown: number;
  /** Scope `message`, fixable by a retry. */
  readonly retriable: number;
  readonly retryAfterMs: number | undefined;
  /** Of the last failure. */
  readonly reason: string;
}

export interface TopicBreaker {
  /** Infinity when it is well, 0 while it rests. */
  allowance(topic: string): number;
  /** A claim uses up a probe. */
  taken(topic: string, count: number): void;
  /** Undefined: the breaker did not change. */
  report(report: TopicReport): "opened" | "closed" | undefined;
  /** 0 when it is not resting. */
  restMs(topic: string): number;
  /** Throttled or away long enough for its messages to be postponed. */
  wasAway(topic: string): boolean;
  open(): IterableIterator<string>;
  /** `restsForMs` 0: the probe is due or under way. */
  resting(): readonly { readonly topic: string; readonly restsForMs: number; readonly reason: string }[];
}

/**
 * After this many failed publishes a destination counts as having been away. By then it rested 0.2,
 * 0.4 and 0.8 s, or more than a minute without an answer (a single unanswered message must not cut
 * its own backoff short).
 */
const AWAY_FAILURES = { away: 3, silent: 10, refusing: Number.POSITIVE_INFINITY } as const;

interface OpenBreaker {
  /** `silent`: no answer came. `refusing`: every message fails for its own reason. */
  kind: "away" | "silent" | "refusing";
  failures: number;
  wasAway: boolean;
  openUntilMs: number;
  probe: number;
  probing: number;
  reason: string;
}

export function createTopicBreaker(clock: Clock): TopicBreaker {
  const open = new Map<string, OpenBreaker>();

  function restMs(topic: string): number {
    const breaker = open.get(topic);
    // Rests go into statements as whole milliseconds.
    return breaker === undefined ? 0 : Math.max(0, Math.ceil(breaker.openUntilMs - clock.monotonicMs()));
  }

  return {
    restMs,
    allowance(topic) {
      const breaker = open.get(topic);
      if (breaker === undefined) return Number.POSITIVE_INFINITY;
      return restMs(topic) > 0 ? 0 : Math.max(0, breaker.probe - breaker.probing);
    },
    taken(topic, count) {
      const breaker = open.get(topic);
      if (breaker !== undefined) breaker.probing += count;
    },
    report({ topic, sent, destination, unknown, retriable, retryAfterMs, reason }) {
      const known = open.get(topic);
      if (sent > 0) {
        open.delete(topic);
        return known === undefined ? undefined : "closed";
      }
      const kind = destination > 0 ? "away" : unknown > 0 ? "silent" : "refusing";
      if (kind === "refusing" && retriable === 0) {
        // A permanent error or an outage proves nothing: the next probe decides.
        if (known !== undefined) known.probing = 0;
        return undefined;
      }
      if (kind !== "refusing" && known !== undefined && known.kind !== "refusing" && restMs(topic) > 0) {
        // A call from before the rest proves nothing. Otherwise a full window would lead to the
        // longest rest at once.
        known.probing = 0;
        if (Number.isFinite(retryAfterMs)) {
          known.openUntilMs = Math.max(known.openUntilMs, clock.monotonicMs() + Number(retryAfterMs));
        }
        return undefined;
      }
      const failures = (known?.failures ?? 0) + 1;
      const longest = kind === "refusing" ? REFUSING_REST_MS : AWAY_REST_MS;
      const wait =
        (Number.isFinite(retryAfterMs) ? retryAfterMs : undefined) ??
        backoffCeilingMs({ attempt: failures, baseMs: 200, factor: 2, maxMs: longest });
      const now = clock.monotonicMs();
      open.set(topic, {
        kind,
        failures,
        openUntilMs: now + wait,
        reason,
        wasAway: known?.wasAway === true || failures >= AWAY_FAILURES[kind],
        probe: kind === "refusing" ? MESSAGE_PROBE : 1,
        probing: 0,
      });
      for (const [name, breaker] of open) if (now - breaker.openUntilMs > FORGET_MS) open.delete(name);
      return known === undefined ? "opened" : undefined;
    },
    wasAway: (topic) => open.get(topic)?.wasAway === true,
    open: () => open.keys(),
    resting: () => [...open].map(([topic, { reason }]) => ({ topic, restsForMs: restMs(topic), reason })),
  };
}
