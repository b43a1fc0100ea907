/** Rules that the failure tables of both protocols of RocketMQ are made of. */
import { type FailedBy, failed, type Rule as SharedRule } from "../publishing/failures.ts";

export interface Rule extends SharedRule {
  /** In a batch it may be any of them. */
  readonly divisible?: boolean;
  /** The topic is not what the cached route says. */
  readonly routeIsWrong?: boolean;
  /** And this is because it does not exist. */
  readonly topicIsMissing?: boolean;
}

/** A failure, with what to do about the request that met it. */
export type Failure = FailedBy<Rule>;

/** RocketMQ names no time; its own producers wait up to 1 s. */
export const RETRY_AFTER_MS = 1000;

/** Wrong for ever: the same message is refused again. */
export const NEVER: Rule = { scope: "message", retriable: false, divisible: true };
/** The topic is away, throttled or full for now; a batch is no better in halves. */
export const LATER: Rule = { scope: "destination", retryAfterMs: RETRY_AFTER_MS };
/** Concerns every message to this cluster, and nothing was stored. */
export const EVERYTHING: Rule = { scope: "connection" };
/** Nobody can tell: counted as an attempt, as after a deadline of our own. */
export const MAY_BE_STORED: Rule = { scope: "unknown" };
/** Perhaps one message's fault. */
export const UNEXPLAINED: Rule = { scope: "message", divisible: true };
export const MISSING: Rule = { scope: "message", absent: "missing", routeIsWrong: true, topicIsMissing: true };
export const NO_RIGHT: Rule = { ...LATER, advice: "grant this access key the right to publish to the topic" };
export const WRONG_KEYS: Rule = {
  ...EVERYTHING,
  advice: "check accessKey and secretKey (ROWPOST_ROCKETMQ_ACCESS_KEY, ROWPOST_ROCKETMQ_SECRET_KEY)",
};

/** A failure found without asking the server. */
export function messageFailure(code: string, reason: string, retriable = false): Failure {
  return failed("message", code, reason, { retriable });
}
