/**
 * Scope of each failure. Codes and texts are those of nats-server's `errors.json`. Codes marked
 * "seen" were provoked on nats-server 2.9.10.
 */

import type { PublishFailed } from "../broker.ts";
import { failed, failedBy, type Rule as SharedRule } from "../publishing/failures.ts";

export interface JetStreamError {
  readonly code?: number | undefined;
  readonly err_code?: number | undefined;
  readonly description?: string | undefined;
}

/** JetStream gives no time; a full stream or a missing leader is retried after this. */
const RETRY_AFTER_MS = 1000;

interface Rule extends SharedRule {
  readonly code?: string;
}

const RULES: Readonly<Record<number, Rule>> = {
  // Seen: the stream's max_msg_size.
  10054: { scope: "message", code: "MESSAGE_TOO_LARGE", retriable: false, advice: "the stream's max_msg_size" },
  10097: { scope: "message", code: "HEADERS_TOO_LARGE", retriable: false, advice: "fewer or shorter headers" },
  // Seen: the option `stream` names another stream than the one of the subject.
  10060: {
    scope: "message",
    code: "WRONG_STREAM",
    advice: "the option stream names another stream than the one that takes this message's topic",
  },
  10002: { scope: "destination", code: "ACCOUNT_LIMIT" },
  10008: { scope: "destination" },
  // Seen: maximum messages, bytes, messages per subject with discard: new.
  10077: { scope: "destination", code: "STREAM_FULL" },
  10109: { scope: "destination", code: "STREAM_SEALED" },
  10167: { scope: "destination", code: "TOO_MANY_REQUESTS" },
  10039: { scope: "connection", code: "JETSTREAM_NOT_ENABLED", advice: "enable JetStream for this account" },
  10076: { scope: "connection", code: "JETSTREAM_NOT_ENABLED", advice: "start nats-server with JetStream (-js)" },
  // An earlier attempt with the same message id is being stored at the moment.
  10158: { scope: "unknown", code: "DUPLICATE_IN_PROCESS" },
};

/** A publish refused by JetStream: not stored, except for 10158. */
export function failureOfError(error: JetStreamError): PublishFailed {
  const { code = 0, err_code: number = 0, description = "no description" } = error;
  const isForNow = code >= 500 || code === 429;
  const rule: Rule = RULES[number] ?? { scope: isForNow ? "destination" : "message" };
  const name = rule.code ?? `JETSTREAM_${number === 0 ? code : number}`;
  const retryAfterMs = rule.scope === "destination" ? RETRY_AFTER_MS : undefined;
  return failedBy({ ...rule, retryAfterMs }, name, `JetStream: ${description}`);
}

/** The topic is unavailable for now: nothing is stored or counted. */
export function destinationFailure(code: string, reason: string): PublishFailed {
  return failed("destination", code, reason, { retryAfterMs: RETRY_AFTER_MS });
}

/** Code and text of an error of the client, of TLS or of the operating system. */
export function describeConnectError(error: unknown): { readonly code: string; readonly reason: string } {
  if (!(error instanceof Error)) return { code: "CONNECTION_FAILED", reason: String(error) };
  const inner = error.cause instanceof Error ? error.cause : error;
  if (error.name === "AuthorizationError" || error.name === "UserAuthenticationExpiredError") {
    return { code: "UNAUTHORIZED", reason: `the server refused the credentials: ${error.message.toLowerCase()}` };
  }
  if (error.name === "TimeoutError") return { code: "CONNECT_TIMEOUT", reason: "the server did not answer" };
  const { code } = inner as NodeJS.ErrnoException;
  const text = inner instanceof AggregateError && inner.message === "" ? String(inner.errors[0]) : inner.message;
  return { code: typeof code === "string" && code !== "" ? code : "CONNECTION_FAILED", reason: text };
}
