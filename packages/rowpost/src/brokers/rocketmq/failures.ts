/**
 * Maps RocketMQ's answer codes and gRPC's status codes to the scopes of the broker contract.
 *
 * RocketMQ answers gRPC OK with its own code inside; gRPC fails only without an answer. Codes and
 * texts were provoked on RocketMQ 5.5.0 unless a comment says otherwise.
 */

import { failedBy } from "../publishing/failures.ts";
import type { CallFailure } from "./connection.ts";
import {
  GRPC_CANCELLED,
  GRPC_DEADLINE_EXCEEDED,
  GRPC_PERMISSION_DENIED,
  GRPC_RESOURCE_EXHAUSTED,
  GRPC_UNAUTHENTICATED,
  GRPC_UNAVAILABLE,
  GRPC_UNIMPLEMENTED,
  grpcName,
} from "./grpc.ts";
import {
  EVERYTHING,
  type Failure,
  LATER,
  MAY_BE_STORED,
  MISSING,
  NEVER,
  NO_RIGHT,
  type Rule,
  UNEXPLAINED,
  WRONG_KEYS,
} from "./rules.ts";

/** `Status` of an answer. A code unknown to the protos is a number. */
export interface RocketmqStatus {
  readonly code?: string | number | undefined;
  readonly message?: string | undefined;
}

const NO_TOPIC: Rule = {
  ...MISSING,
  advice: "create the topic: mqadmin updateTopic -c CLUSTER -t TOPIC -a +message.type=NORMAL",
};

const RULES: Readonly<Record<string, Rule>> = {
  BAD_REQUEST: NEVER,
  ILLEGAL_TOPIC: { scope: "message", retriable: false, advice: "a topic name may have letters, digits, %, |, - and _" },
  ILLEGAL_MESSAGE_TAG: NEVER,
  ILLEGAL_MESSAGE_KEY: NEVER,
  ILLEGAL_MESSAGE_GROUP: NEVER,
  ILLEGAL_MESSAGE_PROPERTY_KEY: { ...NEVER, advice: "rename or leave out that header" },
  ILLEGAL_MESSAGE_ID: NEVER,
  MESSAGE_CORRUPTED: NEVER,
  PAYLOAD_TOO_LARGE: NEVER,
  MESSAGE_BODY_TOO_LARGE: NEVER,
  MESSAGE_BODY_EMPTY: { ...NEVER, advice: "RocketMQ takes no empty body" },
  REQUEST_HEADER_FIELDS_TOO_LARGE: NEVER,
  MESSAGE_PROPERTIES_TOO_LARGE: {
    ...NEVER,
    advice: "fewer or shorter headers: RocketMQ takes 128 of them and 16 KB in all",
  },
  // Topics are created and changed while messages wait, so both can resolve themselves.
  TOPIC_NOT_FOUND: NO_TOPIC,
  NOT_FOUND: { scope: "message", routeIsWrong: true },
  MESSAGE_PROPERTY_CONFLICT_WITH_TYPE: { scope: "message", routeIsWrong: true },
  FORBIDDEN: NO_RIGHT,
  PAYMENT_REQUIRED: EVERYTHING,
  CLIENT_ID_REQUIRED: EVERYTHING,
  TOO_MANY_REQUESTS: LATER,
  // Not provoked. The primary stores the message without a replica to copy it to, so it is not
  // acknowledged. This may last, so no attempt is counted. Each probe leaves a copy, so no time is
  // given and the topic rests longer each time.
  HA_NOT_AVAILABLE: { scope: "destination" },
  // Not provoked. The proxy, flush or replica timed out: it may be stored.
  PROXY_TIMEOUT: MAY_BE_STORED,
  MASTER_PERSISTENCE_TIMEOUT: MAY_BE_STORED,
  SLAVE_PERSISTENCE_TIMEOUT: MAY_BE_STORED,
  REQUEST_TIMEOUT: MAY_BE_STORED,
  NOT_IMPLEMENTED: { scope: "message" },
  UNSUPPORTED: { scope: "message" },
  VERSION_UNSUPPORTED: { scope: "message" },
};

/**
 * 50001 ("internal error") means either a batch that is too large and must be divided, or a broker
 * that cannot store now, where dividing 32 messages would only make 63 failing requests. These
 * texts identify the second case. "create mapped file failed, server is busy or broken" means a
 * disk too slow for a new log file (from the source, not provoked).
 */
const CANNOT_STORE_NOW =
  /disk is full|not available now|\bbusy\b|flow control|connect to .* failed|no such broker|slave/i;

export function failureOfStatus(status: RocketmqStatus | undefined): Failure | undefined {
  const code = status?.code ?? "CODE_UNSPECIFIED";
  if (code === "OK" || code === 20_000) return undefined;
  const words = (status?.message ?? "").replace(/\s*For more information, please visit the url.*$/s, "").trim();
  const rule = ruleOf(code, words);
  const name = typeof code === "number" ? `ROCKETMQ_${code}` : code;
  const reason = words === "" ? name : words;
  return failedBy(rule, name, reason);
}

function ruleOf(code: string | number, words: string): Rule {
  if (typeof code === "number") return ruleOfNumber(code);
  // SendMessage's answer for an unknown topic; QueryRoute says TOPIC_NOT_FOUND.
  if (code === "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE" && /expected type is UNSPECIFIED/i.test(words)) return NO_TOPIC;
  if (code === "UNAUTHORIZED") return ruleOfUnauthorized(words);
  if (code === "INTERNAL_SERVER_ERROR" || code === "INTERNAL_ERROR") {
    if (/time-?out|timed out/i.test(words)) return MAY_BE_STORED;
    return CANNOT_STORE_NOW.test(words) ? LATER : UNEXPLAINED;
  }
  return RULES[code] ?? UNEXPLAINED;
}

/** For codes newer than the protos: by class, as the protos group them. */
function ruleOfNumber(code: number): Rule {
  const group = Math.floor(code / 100);
  if (group === 400 || group === 413 || group === 431) return NEVER;
  if (group === 429) return LATER;
  if (group === 504) return MAY_BE_STORED;
  return UNEXPLAINED;
}

/**
 * One code for a wrong secret, which concerns everything, and for a missing permission on one
 * topic.
 */
function ruleOfUnauthorized(words: string): Rule {
  return /permission to access topic/i.test(words) ? NO_RIGHT : WRONG_KEYS;
}

export function failureOfCall(call: CallFailure): Failure {
  const name = call.connectCode ?? grpcName(call.grpcCode);
  return failedBy(ruleOfCall(call), name, plainDetails(call.details));
}

/** grpc-js wraps the reason of a failed connection in three layers of text. */
function plainDetails(details: string): string {
  return (
    /^No connection established\. Last error: (?:Error: )?(.+?)\.?(?: Resolution note:.*)?$/s.exec(details)?.[1] ??
    details
  );
}

function ruleOfCall(call: CallFailure): Rule {
  if (!call.written) return EVERYTHING;
  switch (call.grpcCode) {
    case GRPC_UNAUTHENTICATED:
    case GRPC_PERMISSION_DENIED:
    case GRPC_UNIMPLEMENTED: // an HTTP/2 server that is not RocketMQ
      return EVERYTHING;
    case GRPC_RESOURCE_EXHAUSTED:
      return /larger than max|exceeds maximum|too large/i.test(call.details) ? NEVER : LATER;
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED:
    case GRPC_UNAVAILABLE:
      return MAY_BE_STORED;
    default:
      // One message may have broken the server; its neighbors get another chance.
      return { scope: "unknown", divisible: true };
  }
}
