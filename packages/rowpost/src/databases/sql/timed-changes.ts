/**
 * What a decision of housekeeping about a confirmation deadline or a slow retry writes; `decided`
 * has next_ms and fail_reason. The from-states are those of the transition.
 */
import { allowedFrom, type MessageState } from "../../message/states.ts";
import type { TimedDecision } from "../../relay/store.ts";
import type { SqlNames } from "./sql-names.ts";

type Name = TimedDecision["transition"];

/**
 * `SET …` of one decision, without lock_version and gmt_modified, and the states that it starts
 * from.
 */
export interface TimedChange {
  readonly set: string;
  readonly from: readonly MessageState[];
}

/** All of them. `never` is an instant that does not come. */
export function timedChanges(
  names: SqlNames,
  words: { readonly after: (ms: string) => string; readonly never: string },
): Readonly<Record<Name, TimedChange>> {
  const { failReason, nextRetryAt, retryCount, state } = names.column;
  const reason = `${failReason} = COALESCE(decided.fail_reason, m.${failReason})`;
  const pending = `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingIn("decided.next_ms")}, ${reason}`;
  const failed = `${state} = ${names.state("failed")}, ${nextRetryAt} = ${words.after("decided.next_ms")}, ${reason}`;
  // The claim that sent it has counted: without this it would look like a recovery when a slow
  // retry sends it again (rule: crash-counting).
  const counted = `${retryCount} = COALESCE(m.${retryCount}, 0) + 1`;
  // `sent` still waits for its confirmation, so it must not look finished: lockFinished takes rows
  // without a time.
  const cleared = `${nextRetryAt} = CASE WHEN m.${state} = ${names.state("sent")} THEN ${words.never} END, ${reason}`;
  const change = (name: Exclude<Name, "clearTimer">, set: string): TimedChange => ({ set, from: allowedFrom(name) });
  return {
    slowRetry: change("slowRetry", pending),
    resume: change("resume", pending),
    confirmTimeoutResend: change("confirmTimeoutResend", `${pending}, ${counted}`),
    confirmTimeoutFail: change("confirmTimeoutFail", `${failed}, ${counted}`),
    clearTimer: { set: cleared, from: ["sent", "failed"] },
  };
}

/** One text for each decision. */
export function timedTexts(
  changes: Readonly<Record<Name, TimedChange>>,
  text: (change: TimedChange) => string,
): Readonly<Record<Name, string>> {
  const { clearTimer, confirmTimeoutFail, confirmTimeoutResend, resume, slowRetry } = changes;
  return {
    slowRetry: text(slowRetry),
    resume: text(resume),
    confirmTimeoutResend: text(confirmTimeoutResend),
    confirmTimeoutFail: text(confirmTimeoutFail),
    clearTimer: text(clearTimer),
  };
}
