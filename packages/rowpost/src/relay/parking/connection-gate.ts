/**
 * The gate before a broker. While the broker is unreachable, claims are futile: each message would
 * be marked, refused and given back. So the gate closes at the first such failure, everything
 * waits, and one message at a time probes the broker, at least once a second and without counting
 * an attempt, so that full speed soon returns.
 *
 * A missing answer does not close the gate; the topic's breaker handles it, because one hanging
 * endpoint says nothing about the others.
 */
import { backoffMs } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Longest wait between two probes, and for an answer before the next may go. */
const PROBE_EVERY_MS = 1_000;

export interface ConnectionGate {
  /** Messages that may be claimed now: Infinity when open, 1 when a probe is due, else 0. */
  allowance(): number;
  /** Milliseconds until the next probe; 0 when open or due. */
  waitMs(): number;
  /** A message was claimed; while the gate is closed it is the probe. */
  taken(): void;
  /**
   * The broker answered with a receipt or a refusal, so it is there. Returns true when that opened
   * the gate.
   */
  answered(): boolean;
  /** The broker was unreachable. Returns true when that closed the gate. */
  unreachable(reason: string): boolean;
  readonly open: boolean;
  /** Undefined: open. `sinceMs` is monotonic; the reason is the last probe's. */
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
      // A probe may hang with its own endpoint: then another topic's goes.
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
      // From 50 ms upwards with jitter, so that two relays do not probe in step.
      probeAtMs =
        clock.monotonicMs() + 50 + backoffMs({ attempt: failures, baseMs: 100, factor: 2, maxMs: PROBE_EVERY_MS - 50 });
      return failures === 1;
    },
  };
}
