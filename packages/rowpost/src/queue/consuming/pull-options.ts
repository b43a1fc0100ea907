/** Options of a puller and their defaults. */
import { checkOptions, refuseUnknown } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import { CONSUME_OPTIONS, type QueueConsumeOptions } from "./options.ts";

/** Options of `queue.pull`: those of `queue.consume` that are not about a handler, and two more. */
export interface PullOptions
  extends Omit<
    QueueConsumeOptions,
    "handler" | "concurrency" | "transactional" | "isUnavailable" | "handlerTimeoutMs" | "warnAfterMs"
  > {
  /** Most messages handed out and not settled. Default 100. */
  readonly maxUnsettled?: number | undefined;
  /**
   * A message not settled this long after it was received is a failed attempt, in ms. Default
   * 30,000. `message.extend(ms)` sets another time for one message.
   */
  readonly settleWithinMs?: number | undefined;
}

/** Options of `receive`. */
export interface ReceiveOptions {
  /** Most messages returned. Default 10. */
  readonly max?: number | undefined;
  /** How long to wait for the first message, in ms; 0 only checks. Default 10,000. */
  readonly waitMs?: number | undefined;
  /** Ends the wait: `receive` returns the messages so far, or []. */
  readonly signal?: AbortSignal | undefined;
}

const OF_A_HANDLER = ["handler", "concurrency", "transactional", "isUnavailable", "handlerTimeoutMs", "warnAfterMs"];
const OPTIONS = [...CONSUME_OPTIONS.filter((name) => !OF_A_HANDLER.includes(name)), "maxUnsettled", "settleWithinMs"];

/** Longest delay of a Node.js timer. */
const LONGEST_MS = 2_147_483_647;

/** Throws `ConfigurationError`. `consume` checks the other options. */
export function checkedPull(options: PullOptions): {
  readonly maxUnsettled: number;
  readonly settleWithinMs: number;
  readonly rest: Omit<PullOptions, "maxUnsettled" | "settleWithinMs">;
} {
  const refused = OF_A_HANDLER.find((name) => Object.hasOwn(options, name));
  if (refused !== undefined) {
    throw new ConfigurationError(
      `pull: ${refused} belongs to queue.consume, which calls a handler${refused === "transactional" ? " within the transaction that settles its message" : ""}; here receive() gives messages, each with settle()`,
    );
  }
  refuseUnknown("pull", options, OPTIONS);
  const { maxUnsettled = 100, settleWithinMs = 30_000, ...rest } = options;
  return {
    maxUnsettled: wholeNumber("pull: maxUnsettled", maxUnsettled, 1),
    settleWithinMs: checkedMs("pull: settleWithinMs", settleWithinMs),
    rest,
  };
}

/** Applies the defaults. Throws `ConfigurationError`. */
export function checkedReceive(options: ReceiveOptions): {
  readonly max: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
} {
  checkOptions("receive", options, {
    max: "number",
    waitMs: "number",
    signal: { has: "aborted", from: "an AbortSignal" },
  });
  const { max = 10, waitMs = 10_000, signal } = options;
  return {
    max: wholeNumber("receive: max", max, 1),
    waitMs: wholeNumber("receive: waitMs", waitMs, 0, LONGEST_MS),
    signal,
  };
}

export function checkedMs(name: string, ms: number): number {
  return wholeNumber(name, ms, 1, LONGEST_MS);
}
