/**
 * Pause between polls: {@link PollOptions.minMs} under load, about four polls a second when idle.
 * An idle relay runs at most 10 statements a second over scan, heartbeat and housekeeping.
 */
import type { Clock } from "../../runtime/clock.ts";

/** Bounds of the adaptive polling. */
export interface PollOptions {
  /** Pause after a scan that found something, in ms. Default 10. */
  readonly minMs: number;
  /** Longest pause when idle, in ms. Default 250. */
  readonly maxMs: number;
}

/** Pauses stay minimal for this long after the last message, then double. */
const LINGER_MS = 1_000;

export interface PollPace {
  found(): void;
  nextWaitMs(): number;
}

/** Begins at the fastest pace. */
export function createPollPace(options: PollOptions, clock: Clock): PollPace {
  let lastFoundMs = clock.monotonicMs();
  let waitMs = options.minMs;
  return {
    found() {
      lastFoundMs = clock.monotonicMs();
      waitMs = options.minMs;
    },
    nextWaitMs() {
      if (clock.monotonicMs() - lastFoundMs < LINGER_MS) return options.minMs;
      waitMs = Math.min(options.maxMs, waitMs * 2);
      return waitMs;
    },
  };
}
