/** Decides whether an error means that a service is away. */
import { RowpostError } from "./errors.ts";
import type { Logger } from "./logger.ts";

/** Of the system and of undici (`fetch`). */
const AWAY = new Set([
  "UNAVAILABLE",
  "DATABASE_UNAVAILABLE",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_SOCKET",
]);

/**
 * Thrown by a handler when a service it calls is away, which is not the message's fault: the
 * attempt is not counted, messages of this type rest, and one at a time is tried until one
 * succeeds.
 */
export class UnavailableError extends RowpostError {
  constructor(what: string, options: { cause?: unknown } = {}) {
    super("UNAVAILABLE", what, { ...options, retriable: true });
  }
}

/** An {@link UnavailableError}, or a connection that could not be made or broke. */
function isAway(error: unknown): boolean {
  return codesOf(error).some((code) => AWAY.has(code));
}

/** The user's decision, by default {@link isAway}. If it throws, the answer is no. */
export function awayBy(logger: Logger, ask: (error: unknown) => boolean = isAway): (error: unknown) => boolean {
  return (error) => {
    try {
      return ask(error) === true;
    } catch (thrown) {
      logger.error("isUnavailable has thrown; the attempt counts as failed", { error: thrown });
      return false;
    }
  };
}

/**
 * Codes of an error and its causes. Node.js combines several addresses of one host in an
 * AggregateError.
 */
export function codesOf(error: unknown, depth = 0): readonly string[] {
  if (typeof error !== "object" || error === null || depth > 5) return [];
  const { cause, code, errno, errors } = error as Record<"cause" | "code" | "errno" | "errors", unknown>;
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  return [...[code, errno].map(String), ...inner.flatMap((each) => codesOf(each, depth + 1))];
}
