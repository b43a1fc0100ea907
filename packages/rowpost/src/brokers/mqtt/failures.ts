/**
 * Scope of each reason code. Names are those of the MQTT 5 specification. Codes marked "seen" were
 * provoked on Mosquitto 2.0.11.
 */
import type { PublishFailed } from "../broker.ts";
import type { Outcome } from "../publishing/call.ts";
import { failed, failedBy, type Rule as SharedRule } from "../publishing/failures.ts";
import type { Packet } from "./client.ts";

interface Rule extends SharedRule {
  readonly code: string;
}

/** A quota gives no time; retried after this. */
const RETRY_AFTER_MS = 1000;
const NEVER = { scope: "message", retriable: false } as const;

/** Reason codes of a PUBACK: the message was not taken. */
const REFUSALS: Readonly<Record<number, Rule>> = {
  128: { code: "UNSPECIFIED_ERROR", scope: "message" },
  131: { code: "IMPLEMENTATION_SPECIFIC_ERROR", scope: "message" },
  // Seen: an access control list.
  135: { code: "NOT_AUTHORIZED", scope: "destination", advice: "allow the user to publish to this topic" },
  144: { ...NEVER, code: "TOPIC_NAME_INVALID" },
  145: { code: "PACKET_IDENTIFIER_IN_USE", scope: "connection" },
  149: { ...NEVER, code: "MESSAGE_TOO_LARGE", advice: "the server has a limit of its own" },
  151: { code: "QUOTA_EXCEEDED", scope: "destination", retryAfterMs: RETRY_AFTER_MS },
  153: { ...NEVER, code: "PAYLOAD_FORMAT_INVALID" },
};

const NO_SUBSCRIBERS = failed(
  "message",
  "NO_SUBSCRIBERS",
  "the server took the message and nobody subscribes to its topic (requireSubscribers); let a consumer subscribe",
  { absent: "missing" },
);

/** Outcome of a PUBACK. `receipt` is the receipt if the message was taken. */
export function outcomeOf(
  { reasonCode = 0, properties }: Packet,
  receipt: string,
  requireSubscribers: boolean,
): Outcome {
  // Accepted without a subscriber: a success by the protocol.
  if (reasonCode === 16) return requireSubscribers ? NO_SUBSCRIBERS : `${receipt} no-subscribers`;
  if (reasonCode < 128) return receipt;
  const rule = REFUSALS[reasonCode] ?? { code: `MQTT_${reasonCode}`, scope: "message" };
  return failedBy(rule, rule.code, `the server refused it with reason ${words(reasonCode, properties?.reasonString)}`);
}

const ENDINGS: Readonly<Record<number, readonly [code: string, advice?: string]>> = {
  1: ["UNSUPPORTED_PROTOCOL_VERSION", "the server does not speak MQTT 5"],
  129: ["MALFORMED_PACKET"],
  130: ["PROTOCOL_ERROR"],
  132: ["UNSUPPORTED_PROTOCOL_VERSION", "the server does not speak MQTT 5"],
  133: ["CLIENT_IDENTIFIER_NOT_VALID", "give another clientId"],
  134: ["UNAUTHORIZED"],
  // Seen: a wrong password.
  135: ["UNAUTHORIZED"],
  136: ["SERVER_UNAVAILABLE"],
  137: ["SERVER_BUSY"],
  138: ["BANNED"],
  139: ["SERVER_SHUTTING_DOWN"],
  140: ["BAD_AUTHENTICATION_METHOD"],
  141: ["KEEP_ALIVE_TIMEOUT"],
  // Seen: two clients with the same clientId.
  142: ["SESSION_TAKEN_OVER", "another client has connected with the same clientId; each process needs its own"],
  147: ["RECEIVE_MAXIMUM_EXCEEDED"],
  149: ["PACKET_TOO_LARGE"],
  150: ["MESSAGE_RATE_TOO_HIGH"],
  151: ["QUOTA_EXCEEDED"],
  152: ["ADMINISTRATIVE_ACTION"],
  155: ["QOS_NOT_SUPPORTED", "the server takes no messages with receipts (QoS 1)"],
  156: ["USE_ANOTHER_SERVER"],
  157: ["SERVER_MOVED"],
  159: ["CONNECTION_RATE_EXCEEDED"],
  160: ["MAXIMUM_CONNECT_TIME"],
};

export function endedBy(reasonCode: number, label: string, reasonString?: string): PublishFailed {
  const [code = `MQTT_${reasonCode}`, advice] = ENDINGS[reasonCode] ?? [];
  const rule = { scope: "connection", advice } as const;
  return failedBy(rule, code, `${label} ended the connection with reason ${words(reasonCode, reasonString)}`);
}

/** The connection failed with an error of the client, of TLS or of the operating system. */
export function failureOfConnect(error: unknown, label: string): PublishFailed {
  if (!(error instanceof Error)) return failed("connection", "CONNECTION_FAILED", `${label}: ${String(error)}`);
  const { code } = error as { readonly code?: unknown };
  if (typeof code === "number") return endedBy(code, label);
  const [inner] = error instanceof AggregateError ? error.errors : [error];
  const text = inner instanceof Error ? inner.message : String(inner);
  return failed("connection", typeof code === "string" ? code : "CONNECTION_FAILED", `${label}: ${text}`);
}

function words(reasonCode: number, reasonString: string | undefined): string {
  const number = `0x${reasonCode.toString(16).padStart(2, "0")}`;
  return reasonString === undefined || reasonString === "" ? number : `${number}: ${reasonString}`;
}
