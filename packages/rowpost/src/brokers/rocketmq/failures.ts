/**
 * What a failure is about: RocketMQ's answer codes and gRPC's own status codes, mapped to the
 * scopes of the broker contract.
 *
 * RocketMQ answers gRPC OK with a code of its own inside; gRPC fails only when there is no answer.
 * The codes and their texts were provoked on RocketMQ 5.5.0 unless a comment says otherwise.
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

/** `Status` of an answer. A code that the protos do not know comes as a number. */
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
  // Topics are made and changed while messages wait, so both of these can come right by themselves.
  TOPIC_NOT_FOUND: NO_TOPIC,
  NOT_FOUND: { scope: "message", routeIsWrong: true },
  MESSAGE_PROPERTY_CONFLICT_WITH_TYPE: { scope: "message", routeIsWrong: true },
  FORBIDDEN: NO_RIGHT,
  PAYMENT_REQUIRED: EVERYTHING,
  CLIENT_ID_REQUIRED: EVERYTHING,
  TOO_MANY_REQUESTS: LATER,
  // Not provoked. The primary stores the message, but has no replica to copy it to: not
  // acknowledged, so not sent. That may last, so no attempt is counted; and as each probe leaves a
  // copy, no time is named, and the topic rests longer each time.
  HA_NOT_AVAILABLE: { scope: "destination" },
  // Not provoked. The proxy, flush or replica got no answer in time: it may be stored.
  PROXY_TIMEOUT: MAY_BE_STORED,
  MASTER_PERSISTENCE_TIMEOUT: MAY_BE_STORED,
  SLAVE_PERSISTENCE_TIMEOUT: MAY_BE_STORED,
  REQUEST_TIMEOUT: MAY_BE_STORED,
  NOT_IMPLEMENTED: { scope: "message" },
  UNSUPPORTED: { scope: "message" },
  VERSION_UNSUPPORTED: { scope: "message" },
};

/**
 * 50001 says "internal error" for two different things: a batch that is too large, which must be
 * divided, and a broker that cannot store now, where dividing 32 messages would only make 63
 * failing requests. The text tells them apart; these are the second kind. "create mapped file
 * failed, server is busy or broken" is what a broker says whose disk is too slow for a new log file
 * (from its source, not provoked).
 */
const CANNOT_STORE_NOW =
  /disk is full|not available now|\bbusy\b|flow control|connect to .* failed|no such broker|slave/i;

/** The failure that an answer's status means; undefined for success. */
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
  // What SendMessage calls a topic that it does not know; QueryRoute says TOPIC_NOT_FOUND.
  if (code === "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE" && /expected type is UNSPECIFIED/i.test(words)) return NO_TOPIC;
  if (code === "UNAUTHORIZED") return ruleOfUnauthorized(words);
  if (code === "INTERNAL_SERVER_ERROR" || code === "INTERNAL_ERROR") {
    if (/time-?out|timed out/i.test(words)) return MAY_BE_STORED;
    return CANNOT_STORE_NOW.test(words) ? LATER : UNEXPLAINED;
  }
  return RULES[code] ?? UNEXPLAINED;
}

/** Codes newer than the protos: by their class, as the protos group them. */
function ruleOfNumber(code: number): Rule {
  const group = Math.floor(code / 100);
  if (group === 400 || group === 413 || group === 431) return NEVER;
  if (group === 429) return LATER;
  if (group === 504) return MAY_BE_STORED;
  return UNEXPLAINED;
}

/** One code for a wrong secret, which concerns everything, and for a missing right to one topic. */
function ruleOfUnauthorized(words: string): Rule {
  return /permission to access topic/i.test(words) ? NO_RIGHT : WRONG_KEYS;
}

/** The failure of a call that got no answer. */
export function failureOfCall(call: CallFailure): Failure {
  const name = call.connectCode ?? grpcName(call.grpcCode);
  return failedBy(ruleOfCall(call), name, plainDetails(call.details));
}

/** grpc-js wraps the reason of a failed connection in three layers of words. */
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
    case GRPC_UNIMPLEMENTED: // something that speaks HTTP/2 but is not RocketMQ
      return EVERYTHING;
    case GRPC_RESOURCE_EXHAUSTED:
      return /larger than max|exceeds maximum|too large/i.test(call.details) ? NEVER : LATER;
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED:
    case GRPC_UNAVAILABLE:
      return MAY_BE_STORED;
    default:
      // A server that chokes, perhaps on one message: its neighbors are given another chance.
      return { scope: "unknown", divisible: true };
  }
}
