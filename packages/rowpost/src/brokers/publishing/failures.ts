/** Builds failures for all adapters. Each adapter interprets its server's errors. */
import { describeError } from "../../runtime/errors.ts";
import type { FailureScope, PublishFailed } from "../broker.ts";

export interface Rule {
  readonly scope: FailureScope;
  readonly retriable?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  /** As in {@link PublishFailed}. */
  readonly absent?: PublishFailed["absent"];
  readonly advice?: string | undefined;
}

export function failed(
  scope: FailureScope,
  code: string,
  reason: string,
  { absent, retriable = true, retryAfterMs }: Pick<Rule, "absent" | "retriable" | "retryAfterMs"> = {},
): PublishFailed {
  const failure: PublishFailed = { status: "failed", scope, retriable, code, reason, retryAfterMs };
  return absent === undefined ? failure : { ...failure, absent };
}

/** The failure of an error by its rule, with the adapter's own fields of the rule. */
export function failedBy<Own extends Rule>({ advice, ...rule }: Own, code: string, words: string): FailedBy<Own> {
  const reason = advice === undefined ? words : `${words} (${advice})`;
  return { ...rule, ...failed(rule.scope, code, reason, rule) };
}

export type FailedBy<Own extends Rule> = PublishFailed & Omit<Own, "advice">;

/** The client cannot be loaded. Nothing was sent. */
export function unusableFailure(error: unknown): PublishFailed {
  const code = error instanceof Error && "code" in error ? String(error.code) : "CLIENT_UNUSABLE";
  return failed("connection", code, describeError(error));
}

/** For calls after `close()`; `title` is the display name. */
export function closedFailure(title: string): PublishFailed {
  return failed("connection", "CLOSED", `the ${title} broker was closed; make a new one`);
}
