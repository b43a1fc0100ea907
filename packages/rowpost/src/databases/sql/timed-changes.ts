/**
 * Writes of housekeeping's decisions about confirmation deadlines and slow retries; `decided` has
 * next_ms and fail_reason. The from-states are the transition's.
 */
import { allowedFrom, type MessageState } from "../../message/states.ts";
import type { TimedDecision } from "../../relay/store.ts";
import type { SqlNames } from "./sql-names.ts";

type Name = TimedDecision["transition"];

/** `SET …` of one decision, without lock_version and gmt_modified, and its from-states. */
export interface TimedChange {
  readonly set: string;
  readonly from: readonly MessageState[];
}

/** `never` is an instant that never comes. */
export function timedChanges(
  names: SqlNames,
  words: { readonly after: (ms: string) => string; readonly never: string },
): Readonly<Record<Name, TimedChange>> {
  const { failReason, nextRetryAt, retryCount, state } = names.column;
  const reason = `${failReason} = COALESCE(decided.fail_reason, m.${failReason})`;
  const pending = `${state} = ${names.state("pending")}, ${nextRetryAt} = ${names.pendingIn("decided.next_ms")}, ${reason}`;
  const failed = `${state} = ${names.state("failed")}, ${nextRetryAt} = ${words.after("decided.next_ms")}, ${reason}`;
  // The claim has counted. Otherwise a slow retry would look like a recovery (rule:
  // crash-counting).
  const counted = `${retryCount} = COALESCE(m.${retryCount}, 0) + 1`;
  // `sent` still awaits its confirmation and must not look finished: lockFinished takes rows
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
