/** Scope of a failed append. Nothing of it was written, except perhaps after an unknown commit. */
import { describeError } from "../../runtime/errors.ts";
import type { LoadFailure } from "../publishing/call.ts";
import { failedBy, type Rule } from "../publishing/failures.ts";

type QueueRule = Rule & { readonly divisible?: boolean };

const RULES: Readonly<Record<string, QueueRule>> = {
  // Never becomes a valid name or a smaller body. With several messages, one of them may be the
  // cause.
  INVALID_NAME: { scope: "message", retriable: false, divisible: true },
  INVALID_MESSAGE: { scope: "message", retriable: false, divisible: true },
  ROW_REFUSED: { scope: "message", divisible: true },
  UNKNOWN_TOPIC: { scope: "message", absent: "missing" },
  NOT_APPENDED: { scope: "message" },
  COMMIT_UNKNOWN: { scope: "unknown" },
  DATABASE_UNAVAILABLE: { scope: "connection" },
  SCHEMA: { scope: "connection" },
  DATABASE_CONFLICT: {
    scope: "destination",
    advice: "somebody holds the topic: a transaction with queue.append in it that does not end?",
  },
};

/** Unknown errors: the topic is retried and no message is blamed. */
const ELSE: QueueRule = { scope: "destination" };

export function failureOf(error: unknown): LoadFailure {
  const code = codeOf(error) ?? "QUEUE_ERROR";
  return failedBy(RULES[code] ?? ELSE, code, describeError(error));
}

export function isConflict(error: unknown): boolean {
  return codeOf(error) === "DATABASE_CONFLICT";
}

export function isUnknownTopic(error: unknown): boolean {
  return codeOf(error) === "UNKNOWN_TOPIC";
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
