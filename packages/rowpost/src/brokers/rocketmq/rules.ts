/** Rules shared by the failure tables of both protocols of RocketMQ. */
import { type FailedBy, failed, type Rule as SharedRule } from "../publishing/failures.ts";

export interface Rule extends SharedRule {
  readonly divisible?: boolean;
  readonly routeIsWrong?: boolean;
  /** The route is wrong because the topic does not exist. */
  readonly topicIsMissing?: boolean;
}

export type Failure = FailedBy<Rule>;

/** RocketMQ gives no time; its own producers wait up to 1 s. */
export const RETRY_AFTER_MS = 1000;

/** The message will always be refused. */
export const NEVER: Rule = { scope: "message", retriable: false, divisible: true };
/** The topic is unavailable, throttled or full. Dividing a batch does not help. */
export const LATER: Rule = { scope: "destination", retryAfterMs: RETRY_AFTER_MS };
export const EVERYTHING: Rule = { scope: "connection" };
/** Counted as an attempt, as after a missed deadline. */
export const MAY_BE_STORED: Rule = { scope: "unknown" };
export const UNEXPLAINED: Rule = { scope: "message", divisible: true };
export const MISSING: Rule = { scope: "message", absent: "missing", routeIsWrong: true, topicIsMissing: true };
export const NO_RIGHT: Rule = { ...LATER, advice: "grant this access key the right to publish to the topic" };
export const WRONG_KEYS: Rule = {
  ...EVERYTHING,
  advice: "check accessKey and secretKey (ROWPOST_ROCKETMQ_ACCESS_KEY, ROWPOST_ROCKETMQ_SECRET_KEY)",
};

export function messageFailure(code: string, reason: string, retriable = false): Failure {
  return failed("message", code, reason, { retriable });
}
