/**
 * The gate before the broker. When the broker cannot be reached, claiming goes on for nothing: each
 * message would be marked, refused and given back. So the gate closes at the first such failure,
 * everything waits, and one message at a time finds out whether the broker is back. No attempt is
 * counted for it. Probes come at least once a second, so that full speed is soon reached when the
 * broker is back.
 *
 * An answer that never comes is no reason to close it: that is the topic's own breaker. One
 * endpoint that hangs says nothing about the others.
 */
import { backoffMs } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Longest wait between two probes, and for the answer to one before the next may go. */
const PROBE_EVERY_MS = 1_000;

export interface ConnectionGate {
  /** Messages that may be claimed now: Infinity when open, 1 when a probe is due, else 0. */
  allowance(): number;
  /** Milliseconds until the next probe; 0 when open or due. */
  waitMs(): number;
  /** A message was claimed; while the gate is closed that is the probe. */
  taken(): void;
  /**
   * The broker answered for a message, with a receipt or a refusal: it is there. Returns true when
   * that opened the gate.
   */
  answered(): boolean;
  /** It could not be reached. Returns true when that closed the gate. */
  unreachable(reason: string): boolean;
  readonly open: boolean;
  /** Undefined: open. `sinceMs` by the monotonic clock; the reason is that of the last probe. */
  readonly away: { readonly sinceMs: number; readonly reason: string } | undefined;
}

/** Makes an open gate. */
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
      // From 50 ms upwards with jitter: two relays must not probe in step.
      probeAtMs =
        clock.monotonicMs() + 50 + backoffMs({ attempt: failures, baseMs: 100, factor: 2, maxMs: PROBE_EVERY_MS - 50 });
      return failures === 1;
    },
  };
}
