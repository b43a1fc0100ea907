/** How a failure is made, for all adapters. What an error of a server means stays with each. */
import { describeError } from "../../runtime/errors.ts";
import type { FailureScope, PublishFailed } from "../broker.ts";

/** A row of an adapter's failure table. */
export interface Rule {
  readonly scope: FailureScope;
  /** Default true. */
  readonly retriable?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  /** As in {@link PublishFailed}. */
  readonly absent?: PublishFailed["absent"];
  /** What to do about it; stands behind the server's words. */
  readonly advice?: string | undefined;
}

/** A failure. By default a retry can help. */
export function failed(
  scope: FailureScope,
  code: string,
  reason: string,
  { absent, retriable = true, retryAfterMs }: Pick<Rule, "absent" | "retriable" | "retryAfterMs"> = {},
): PublishFailed {
  const failure: PublishFailed = { status: "failed", scope, retriable, code, reason, retryAfterMs };
  return absent === undefined ? failure : { ...failure, absent };
}

/** What a rule says of an error, with what the adapter's own rules say beside. */
export function failedBy<Own extends Rule>({ advice, ...rule }: Own, code: string, words: string): FailedBy<Own> {
  const reason = advice === undefined ? words : `${words} (${advice})`;
  return { ...rule, ...failed(rule.scope, code, reason, rule) };
}

export type FailedBy<Own extends Rule> = PublishFailed & Omit<Own, "advice">;

/** The client cannot be loaded: no message's fault, and nothing was sent. */
export function unusableFailure(error: unknown): PublishFailed {
  const code = error instanceof Error && "code" in error ? String(error.code) : "CLIENT_UNUSABLE";
  return failed("connection", code, describeError(error));
}

/** For calls after `close()`; `title` as people write it. */
export function closedFailure(title: string): PublishFailed {
  return failed("connection", "CLOSED", `the ${title} broker was closed; make a new one`);
}
