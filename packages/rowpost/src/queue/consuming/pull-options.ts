/** What a puller may be told, and what it is told by default. */
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
  /** Messages that are handed out and not settled, at most. Default 100. */
  readonly maxUnsettled?: number | undefined;
  /**
   * A message that is not settled so long after it was received is a failed attempt. Default
   * 30,000. `message.extend(ms)` gives one message another time.
   */
  readonly settleWithinMs?: number | undefined;
}

/** Options of `receive`. */
export interface ReceiveOptions {
  /** Messages at most. Default 10. */
  readonly max?: number | undefined;
  /** How long it waits for the first one; 0 looks at what is there. Default 10,000. */
  readonly waitMs?: number | undefined;
  /** Ends the wait: what there is by then, or [], is the answer. */
  readonly signal?: AbortSignal | undefined;
}

const OF_A_HANDLER = ["handler", "concurrency", "transactional", "isUnavailable", "handlerTimeoutMs", "warnAfterMs"];
const OPTIONS = [...CONSUME_OPTIONS.filter((name) => !OF_A_HANDLER.includes(name)), "maxUnsettled", "settleWithinMs"];

/** The longest that a timer of Node can run. */
const LONGEST_MS = 2_147_483_647;

/** Throws `ConfigurationError`. The rest is checked as for `consume`. */
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

/** With the defaults. Throws `ConfigurationError`. */
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

/** Throws `ConfigurationError`. */
export function checkedMs(name: string, ms: number): number {
  return wholeNumber(name, ms, 1, LONGEST_MS);
}
