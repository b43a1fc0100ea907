/**
 * Scope of each failure. An error reply proves that the command stored nothing. Provoked on Redis
 * 7.0.15 unless a comment says otherwise.
 */

import { DeadlineError } from "../../runtime/deadline.ts";
import { describeError } from "../../runtime/errors.ts";
import { type FailedBy, failedBy, type Rule as SharedRule } from "../publishing/failures.ts";

interface Rule extends SharedRule {
  /** This server is no longer the primary: the next call makes a new connection. */
  readonly reconnect?: boolean;
}

export type Failure = FailedBy<Rule>;

const LATER: Rule = { scope: "destination" };
const MOVED: Rule = { scope: "destination", reconnect: true };

const RULES: Readonly<Record<string, Rule>> = {
  OOM: { ...LATER, advice: "Redis has reached maxmemory; trim streams that are handled, or give it more" },
  MISCONF: { ...LATER, advice: "Redis cannot write its snapshot; see its log" },
  NOREPLICAS: { ...LATER, advice: "fewer replicas are there than min-replicas-to-write asks for" },
  BUSY: LATER,
  CLUSTERDOWN: MOVED,
  TRYAGAIN: LATER,
  MOVED,
  ASK: MOVED,
  // The new primary has the same name, or the sentinels know it.
  READONLY: { scope: "connection", reconnect: true },
  LOADING: { scope: "connection" },
  MASTERDOWN: { scope: "connection", reconnect: true },
  NOAUTH: { scope: "connection", reconnect: true, advice: "give user and password (ROWPOST_REDIS_PASSWORD)" },
  WRONGPASS: { scope: "connection", reconnect: true, advice: "check user and password (ROWPOST_REDIS_PASSWORD)" },
  DENIED: { scope: "connection" },
  // A key can be renamed or deleted while the message waits.
  WRONGTYPE: {
    scope: "message",
    advice: "the topic's key holds something that is no stream; delete or rename it, or map the topic with streamOf",
  },
};

const TEXTS: readonly (readonly [text: RegExp, code: string, rule: Rule])[] = [
  [
    /^NOPERM .*\bkeys?\b/i,
    "NOPERM",
    { ...LATER, advice: "allow this user to write to the topic's stream (ACL SETUSER … ~KEY)" },
  ],
  [/^NOPERM/, "NOPERM", { scope: "connection", advice: "allow this user XADD, MULTI, EXEC, WAIT and INFO" }],
  [
    /Protocol error: invalid (bulk|multibulk) length/i,
    "BODY_TOO_LARGE",
    { scope: "message", retriable: false, reconnect: true, advice: "larger than the server's proto-max-bulk-len" },
  ],
  [/unknown command/i, "UNKNOWN_COMMAND", { scope: "connection", advice: "streams need Redis 5 or newer" }],
  [
    /invalid stream ID specified/i,
    "INVALID_ARGUMENT",
    { scope: "connection", advice: 'missingStream: "fail" needs Redis 6.2 or newer' },
  ],
  [/max number of clients/i, "MAX_CLIENTS", { scope: "connection" }],
  [/exhausted the last possible ID/i, "STREAM_EXHAUSTED", LATER],
  [
    /invalid password|AUTH.*without any password/i,
    "WRONGPASS",
    { scope: "connection", advice: "check user and password (ROWPOST_REDIS_PASSWORD)" },
  ],
];

/** Whether Redis itself sent the error: then the command had no effect. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}

export function failureOfReply(error: Error): Failure {
  // Redis repeats an unknown command with parts of the message.
  const words = error.message.replace(/,? with args beginning with:.*$/s, "").trim();
  const first = /^[A-Z]+/.exec(words)?.[0] ?? "";
  const known = RULES[first];
  if (known !== undefined) return failure(first, words, known);
  const [, code, rule] = TEXTS.find(([text]) => text.test(words)) ?? [
    undefined,
    first === "" ? "ERR" : first,
    undefined,
  ];
  return failure(code, words, rule ?? { scope: "message" });
}

/** For commands without a reply. ioredis itself refuses those for a closed socket. */
export function failureOfClient(error: unknown): Failure {
  const words = describeError(error);
  if (/Stream isn't writeable|Cluster isn't ready/.test(words)) return notConnected("CONNECTION_LOST", words);
  return failure("CONNECTION_LOST", `the connection broke before the answer: ${words}`, {
    scope: "unknown",
    reconnect: true,
  });
}

/** Nothing could be handed over. */
export function notConnected(code: string, reason: string): Failure {
  return failure(code, reason, { scope: "connection", reconnect: true });
}

export function failureOfConnect(error: unknown, label: string): Failure {
  if (isReplyError(error)) {
    const said = failureOfReply(error);
    return { ...said, scope: "connection", retriable: true, reconnect: true, reason: `${label}: ${said.reason}` };
  }
  const inner = innermost(error);
  if (inner instanceof DeadlineError) return notConnected("CONNECT_TIMEOUT", inner.message);
  const code = "code" in inner && typeof inner.code === "string" ? inner.code : "CONNECT_FAILED";
  return notConnected(code, `cannot connect to ${label}: ${inner.message || code}`);
}

/** With several addresses or cluster nodes, the reason is one level below. */
function innermost(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0];
  if ("lastNodeError" in error && error.lastNodeError instanceof Error) return innermost(error.lastNodeError);
  return error;
}

export function failure(code: string, reason: string, rule: Rule): Failure {
  return failedBy(rule, code, reason);
}
