/**
 * The gate before a broker. While it is unreachable, claims are futile. So the gate closes at the
 * first such failure, and one message at a time probes the broker, at least once a second and
 * without counting an attempt.
 *
 * A missing answer does not close the gate, because one hanging endpoint says nothing about the
 * others; the topic's breaker handles it.
 */
import { backoffMs } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Longest interval of probes, even unanswered ones. */
const PROBE_EVERY_MS = 1_000;

export interface ConnectionGate {
  /** Infinity when open, 1 when a probe is due, else 0. */
  allowance(): number;
  /** Time until the next probe; 0 when open or due. */
  waitMs(): number;
  /** A claimed message is the probe while the gate is closed. */
  taken(): void;
  /** The broker answered, even with a refusal. Returns true when that opened the gate. */
  answered(): boolean;
  /** Returns true when that closed the gate. */
  unreachable(reason: string): boolean;
  readonly open: boolean;
  /** Undefined: open. `sinceMs` is monotonic. */
  readonly away: { readonly sinceMs: number; readonly reason: string } | undefined;
}

export function createConnectionGate(clock: Clock): ConnectionGate {
  let failures = 0;
  let probeAtMs = 0;
  let away: ConnectionGate["away"];

  function waitMs(): number {
    return failures === 0 ? 0 : Math.max(0, probeAtMs - clock.monotonicMs());
  }

  return {
    waitMs,
    get open() {
      return failures === 0;
    },
    get away() {
      return away;
    },
    allowance() {
      if (failures === 0) return Number.POSITIVE_INFINITY;
      return waitMs() > 0 ? 0 : 1;
    },
    taken() {
      // If a probe hangs, another topic's goes.
      if (failures > 0) probeAtMs = clock.monotonicMs() + PROBE_EVERY_MS;
    },
    answered() {
      const opened = failures > 0;
      failures = 0;
      away = undefined;
      return opened;
    },
    unreachable(reason) {
      failures += 1;
      away = { sinceMs: away?.sinceMs ?? clock.monotonicMs(), reason };
      // Jitter keeps two relays from probing in step.
      probeAtMs =
        clock.monotonicMs() + 50 + backoffMs({ attempt: failures, baseMs: 100, factor: 2, maxMs: PROBE_EVERY_MS - 50 });
      return failures === 1;
    },
  };
}
