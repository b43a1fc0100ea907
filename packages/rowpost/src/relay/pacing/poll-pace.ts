/**
 * How long the relay waits before it looks again. Fast after activity, slow when idle: 200 messages
 * a second find a poll every {@link PollOptions.minMs}, an idle table is asked about four times a
 * second (DESIGN 6 "Wake-up"; the idle cost is bounded to 10 statements a second over scan,
 * heartbeat and housekeeping together).
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
