/** What a failed append is about. Nothing of it was written, but after an unknown commit. */
import { describeError } from "../../runtime/errors.ts";
import type { LoadFailure } from "../publishing/call.ts";
import { failedBy, type Rule } from "../publishing/failures.ts";

type QueueRule = Rule & { readonly divisible?: boolean };

/** By the code of the error. */
const RULES: Readonly<Record<string, QueueRule>> = {
  // In no time a good name, or a smaller body. One of several, perhaps.
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

/** Nobody knows it: its topic is tried again and again, and no message is blamed. */
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
