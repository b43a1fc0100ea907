/**
 * The six states of a message and the one table of legal transitions between them.
 *
 * The numbers 0-3 are those of the `status` column of `t_local_message` (待发送 发送中 已发送
 * 发送失败). Every change of a state takes its start states from {@link TRANSITIONS}: the SQL
 * statements, the documentation (docs/states.md is generated from it) and the tests. A change
 * outside the table does not exist.
 */

/**
 * State of a message. `pending` 待发送, `sending` 发送中, `sent` 已发送, `failed` 发送失败,
 * `consumed` 已消费, `suspended` 已挂起.
 */
export type MessageState = "pending" | "sending" | "sent" | "failed" | "consumed" | "suspended";

/** All states; the index is their number in the default layout. */
export const MESSAGE_STATES: readonly MessageState[] = [
  "pending",
  "sending",
  "sent",
  "failed",
  "consumed",
  "suspended",
];

/** The Chinese words of the original `t_local_message` design, for people who read the table. */
export const STATE_WORDS_ZH: Readonly<Record<MessageState, string>> = {
  pending: "待发送",
  sending: "发送中",
  sent: "已发送",
  failed: "发送失败",
  consumed: "已消费",
  suspended: "已挂起",
};

/** Who may perform a transition. */
export type TransitionActor = "relay" | "housekeeping" | "operator" | "consumer";

/** One legal change of state. Statements and tests refer to its unique `name`. */
export interface Transition {
  /** Its name in statements, logs and tests. */
  readonly name: TransitionName;
  /** States it may start from. */
  readonly from: readonly MessageState[];
  /** State it ends in. */
  readonly to: MessageState;
  /** Who may perform it. */
  readonly by: readonly TransitionActor[];
  /** What is written besides the state; `lock_version + 1` and `gmt_modified` always are. */
  readonly writes: string;
  /**
   * Only legal with `sendingMark: "off"` (the claim is then in the lease row, rule:
   * listed-in-flight).
   */
  readonly withoutSendingMark?: true;
}

/** Names of the legal transitions. */
export type TransitionName =
  | "claim"
  | "settleSent"
  | "settleRetry"
  | "settleReturned"
  | "recover"
  | "settleFailed"
  | "slowRetry"
  | "operatorRetry"
  | "confirm"
  | "confirmTimeoutResend"
  | "confirmTimeoutFail"
  | "confirmOvertakes"
  | "suspend"
  | "resume"
  | "unmarkedSent"
  | "unmarkedRetry"
  | "unmarkedFailed";

/**
 * All legal transitions. Final unless a slow retry or a person acts: `failed`, `consumed`; and
 * `sent` for types without confirmation.
 */
export const TRANSITIONS: readonly Transition[] = [
  { name: "claim", from: ["pending"], to: "sending", by: ["relay"], writes: "delivery_count + 1" },
  {
    name: "settleSent",
    from: ["sending"],
    to: "sent",
    by: ["relay"],
    writes: "message_id, sent_at, last_retry_at, next_retry_at = confirmation deadline or NULL, fail_reason = NULL",
  },
  {
    name: "settleRetry",
    from: ["sending"],
    to: "pending",
    by: ["relay"],
    writes:
      "retry_count + 1, delivery_count = retry_count, fail_reason, last_retry_at, next_retry_at = backoff, never below deliver_at",
  },
  {
    name: "settleReturned",
    from: ["sending"],
    to: "pending",
    by: ["relay"],
    writes: "delivery_count - 1: not started, connection or destination away, or the relay stops",
  },
  {
    name: "recover",
    from: ["sending"],
    to: "pending",
    by: ["relay"],
    writes: "nothing else: its relay lost the shard, or no window holds the row (rule: watched-sending)",
  },
  {
    name: "settleFailed",
    from: ["sending", "pending"],
    to: "failed",
    by: ["relay", "housekeeping"],
    writes: "fail_reason, next_retry_at = slow retry or NULL; from pending only for a row that cannot be sent as it is",
  },
  {
    name: "slowRetry",
    from: ["failed"],
    to: "pending",
    by: ["housekeeping"],
    writes: "next_retry_at = NULL; retry_count stays, so the next failure is `failed` again",
  },
  {
    name: "operatorRetry",
    from: ["failed", "sent"],
    to: "pending",
    by: ["operator"],
    writes: "retry_count = 0, delivery_count = 0, next_retry_at = deliver_at when that is ahead, else NULL",
  },
  {
    name: "confirm",
    from: ["sent"],
    to: "consumed",
    by: ["consumer", "operator"],
    writes: "consumed_at, next_retry_at = NULL",
  },
  {
    name: "confirmTimeoutResend",
    from: ["sent"],
    to: "pending",
    by: ["housekeeping"],
    writes: "retry_count + 1, fail_reason, next_retry_at = NULL",
  },
  {
    name: "confirmTimeoutFail",
    from: ["sent"],
    to: "failed",
    by: ["housekeeping", "consumer"],
    writes: "retry_count + 1, fail_reason, next_retry_at = slow retry or NULL",
  },
  {
    name: "confirmOvertakes",
    from: ["sending", "pending", "failed", "suspended"],
    to: "consumed",
    by: ["consumer"],
    writes: "consumed_at; a settle that comes later only fills message_id and sent_at",
  },
  {
    name: "suspend",
    from: ["pending", "failed"],
    to: "suspended",
    by: ["operator", "relay"],
    writes: "next_retry_at = until or NULL; by a rule fail_reason = the rule and its reason",
  },
  {
    name: "resume",
    from: ["suspended"],
    to: "pending",
    by: ["operator", "housekeeping"],
    writes: "next_retry_at = deliver_at when that is ahead, else NULL (rule: delay-is-not-retry)",
  },
  {
    name: "unmarkedSent",
    from: ["pending"],
    to: "sent",
    by: ["relay"],
    writes: "as settleSent",
    withoutSendingMark: true,
  },
  {
    name: "unmarkedRetry",
    from: ["pending"],
    to: "pending",
    by: ["relay"],
    writes: "as settleRetry",
    withoutSendingMark: true,
  },
  {
    name: "unmarkedFailed",
    from: ["pending"],
    to: "failed",
    by: ["relay"],
    writes: "as settleFailed",
    withoutSendingMark: true,
  },
];

/** Start states of a transition, for the WHERE of its statement. */
export function allowedFrom(name: TransitionName): readonly MessageState[] {
  const transition = TRANSITIONS.find((candidate) => candidate.name === name);
  if (transition === undefined) throw new Error(`no transition is named ${name}`);
  return transition.from;
}
