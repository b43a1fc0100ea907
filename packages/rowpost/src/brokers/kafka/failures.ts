/** Scope of each failure. Codes: https://kafka.apache.org/protocol#protocol_error_codes */

import { type FailedBy, failedBy, type Rule as SharedRule } from "../publishing/failures.ts";

export type Fault =
  /** The broker answered with an error. Nothing was stored unless the code says otherwise. */
  | { readonly kind: "answer"; readonly code: number; readonly name: string; readonly text: string }
  | { readonly kind: "denied"; readonly text: string }
  /** No connection was made, so nothing was handed over. */
  | { readonly kind: "unreachable"; readonly code: string; readonly text: string }
  /** No answer, or an error unknown to the driver. Sent records may be stored. */
  | { readonly kind: "lost"; readonly code: string; readonly text: string };

interface Rule extends SharedRule {
  readonly divisible?: boolean;
  /** The partition has moved or the topic is gone: refresh the metadata before the next try. */
  readonly stale?: boolean;
  readonly endsSession?: boolean;
}

export type Failure = FailedBy<Rule>;

/** The message will always be refused. In a batch it may be any of them. */
const NEVER: Rule = { scope: "message", retriable: false, divisible: true };
/** The topic is unavailable or throttled. Kafka gives no time. */
const LATER: Rule = { scope: "destination", retryAfterMs: 1000 };
/**
 * Another broker leads the partition, or none does at the moment. The broker asked stored nothing.
 */
const MOVED: Rule = { scope: "destination", stale: true };
const EVERYTHING: Rule = { scope: "connection", endsSession: true };
/** Stored by the leader, but not on enough replicas. Sending it again stores it twice. */
const HALF_STORED: Rule = { scope: "unknown" };

const TOO_LARGE: Rule = {
  ...NEVER,
  advice: "larger than message.max.bytes of the broker or max.message.bytes of the topic",
};

export const UNKNOWN_TOPIC = 3;
/** The partition has no leader at the moment, or none known here. */
export const LEADER_NOT_AVAILABLE = 5;
export const UNSUPPORTED_VERSION = 35;
/** A record that the broker or this adapter cannot take. */
export const INVALID_RECORD = 87;

/** Kafka's name of each code, and its rule. */
const RULES: Readonly<Record<number, readonly [name: string, Rule]>> = {
  [-1]: ["UNKNOWN_SERVER_ERROR", { scope: "unknown", advice: "the broker's log has the reason" }],
  2: ["CORRUPT_MESSAGE", NEVER],
  // The topic is created while messages wait. In a produce answer it can also mean a moved
  // partition.
  [UNKNOWN_TOPIC]: [
    "UNKNOWN_TOPIC_OR_PARTITION",
    {
      scope: "message",
      absent: "missing",
      stale: true,
      advice: "create the topic: kafka-topics.sh --bootstrap-server HOST:9092 --create --topic TOPIC --partitions N",
    },
  ],
  [LEADER_NOT_AVAILABLE]: ["LEADER_NOT_AVAILABLE", MOVED],
  6: ["NOT_LEADER_OR_FOLLOWER", MOVED],
  7: ["REQUEST_TIMED_OUT", { ...HALF_STORED, advice: "the leader stored it; its replicas did not follow in time" }],
  8: ["BROKER_NOT_AVAILABLE", MOVED],
  9: ["REPLICA_NOT_AVAILABLE", MOVED],
  10: ["MESSAGE_TOO_LARGE", TOO_LARGE],
  17: ["INVALID_TOPIC_EXCEPTION", { scope: "message", retriable: false }],
  18: ["RECORD_LIST_TOO_LARGE", TOO_LARGE],
  19: ["NOT_ENOUGH_REPLICAS", { ...LATER, advice: "fewer replicas in sync than min.insync.replicas" }],
  20: [
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    { ...HALF_STORED, advice: "the leader stored it; fewer replicas in sync than min.insync.replicas" },
  ],
  42: ["INVALID_REQUEST", { scope: "unknown" }],
  29: ["TOPIC_AUTHORIZATION_FAILED", { ...LATER, advice: "grant this user the right to write to the topic" }],
  31: ["CLUSTER_AUTHORIZATION_FAILED", EVERYTHING],
  32: ["INVALID_TIMESTAMP", NEVER],
  [UNSUPPORTED_VERSION]: ["UNSUPPORTED_VERSION", { ...EVERYTHING, advice: "Kafka 0.11 or newer is needed" }],
  43: ["UNSUPPORTED_FOR_MESSAGE_FORMAT", NEVER],
  44: ["POLICY_VIOLATION", NEVER],
  56: ["KAFKA_STORAGE_ERROR", LATER],
  72: ["LISTENER_NOT_FOUND", MOVED],
  74: ["FENCED_LEADER_EPOCH", MOVED],
  75: ["UNKNOWN_LEADER_EPOCH", MOVED],
  [INVALID_RECORD]: ["INVALID_RECORD", NEVER],
  89: ["THROTTLING_QUOTA_EXCEEDED", LATER],
};

export function nameOfCode(code: number): string {
  return RULES[code]?.[0] ?? `KAFKA_${code}`;
}

const DENIED: readonly number[] = [33, 34, 58];

export function failureOfSend(fault: Fault): Failure {
  switch (fault.kind) {
    case "answer":
      return DENIED.includes(fault.code) ? denied(fault.text) : answered(fault);
    case "denied":
      return denied(fault.text);
    case "unreachable":
      // Concerns one leader. The metadata request that follows shows whether the cluster is away.
      return build(fault.code, fault.text, { ...MOVED, endsSession: true });
    case "lost":
      return build(fault.code, fault.text, { scope: "unknown", endsSession: true });
  }
}

function answered({ code, name, text }: Fault & { readonly kind: "answer" }): Failure {
  return build(name, text, RULES[code]?.[1] ?? { scope: "unknown" });
}

/** The failure of a metadata or connectivity request: nothing was handed over. */
export function failureOfQuestion(fault: Fault): Failure {
  switch (fault.kind) {
    case "answer": {
      if (DENIED.includes(fault.code)) return denied(fault.text);
      const failure = answered(fault);
      return failure.scope === "unknown" ? { ...failure, scope: "destination" } : failure;
    }
    case "denied":
      return denied(fault.text);
    case "unreachable":
    case "lost":
      return build(fault.code, fault.text, EVERYTHING);
  }
}

export function messageFailure(code: string, reason: string, options: { readonly retriable: boolean }): Failure {
  return build(code, reason, { scope: "message", retriable: options.retriable });
}

/** For a topic that existed a moment ago: a starting broker may not know it yet. */
export function awayForNow(failure: Failure): Failure {
  return { ...failure, scope: "destination", retryAfterMs: LATER.retryAfterMs };
}

/** Handed over, then given up before an answer came. */
export function unanswered(code: string, reason: string): Failure {
  return failureOfSend({ kind: "lost", code, text: reason });
}

function denied(text: string): Failure {
  const advice = "check user, password and mechanism (ROWPOST_KAFKA_USERNAME, ROWPOST_KAFKA_PASSWORD)";
  return build("UNAUTHORIZED", text, { ...EVERYTHING, advice });
}

function build(code: string, text: string, rule: Rule): Failure {
  return failedBy(rule, code, text === "" ? code : text);
}
