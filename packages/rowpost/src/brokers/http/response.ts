/** What an answer of the receiver means for the message. */
import type { Outcome } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";

/** An answer, with the beginning of its body. */
export interface HttpAnswer {
  readonly status: number;
  readonly statusText: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** At most the first 16 KiB. */
  readonly body: Buffer;
}

/** What the meaning depends on besides the answer. */
export interface AnswerContext {
  /** Scheme, host and path, without credentials and query: for texts. */
  readonly label: string;
  readonly webhookId: string;
  /** Header of the answer that holds a receipt, in lower case. */
  readonly receiptHeader: string;
  /** Epoch milliseconds, for a Retry-After that is a date. */
  readonly nowMs: number;
}

/**
 * Refused as it is, and refused next time as well: 400, 409, 410, 413, 415, 422 and every 4xx that
 * is not listed here.
 *
 * These, on the other hand, say something about the endpoint and not about the message: it is busy
 * (408, 425), or its address, its routes or its credentials are wrong (401, 403, 404, 405, 407),
 * which a deployment or a corrected configuration mends. They are retried, counted, and `failed`
 * after their attempts, instead of failing every message at once for a typo. 410 is not among them:
 * the receiver says on purpose that it wants no more (Standard Webhooks: stop sending).
 */
const RETRIABLE_4XX: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 408, 425]);

/** A mistaken date must not silence a topic for years. */
const MAX_RETRY_AFTER_MS = 86_400_000;

/** What becomes of a message that was answered. */
export function outcomeOfAnswer(answer: HttpAnswer, context: AnswerContext): Outcome {
  const { status } = answer;
  if (status >= 200 && status < 300) return receiptOf(answer, context);
  const retryAfterMs = retryAfter(answer.headers["retry-after"], context.nowMs);
  // 503 is the whole service only where it says when it will be back, else this request.
  const isThrottled = status === 429 || (status === 503 && retryAfterMs !== undefined);
  const isRetriable = status >= 500 || (status >= 300 && status < 400) || RETRIABLE_4XX.has(status);
  const scope = isThrottled ? "destination" : "message";
  const retriable = isThrottled || isRetriable;
  return failed(scope, `HTTP_${status}`, reasonOf(answer, context.label), { retriable, retryAfterMs });
}

/** The receiver's own receipt (a header, or `id` in a JSON body), else the id that it was sent. */
function receiptOf(answer: HttpAnswer, context: AnswerContext): string {
  const header = answer.headers[context.receiptHeader];
  if (typeof header === "string" && header !== "") return header.slice(0, 255);
  const type = answer.headers["content-type"];
  if (typeof type === "string" && /[/+]json\b/i.test(type)) {
    const id = jsonId(answer.body);
    if (id !== undefined) return id.slice(0, 255);
  }
  return context.webhookId;
}

function jsonId(body: Buffer): string | undefined {
  try {
    const parsed: unknown = JSON.parse(body.toString());
    if (typeof parsed !== "object" || parsed === null || !("id" in parsed)) return undefined;
    const { id } = parsed;
    return (typeof id === "string" && id !== "") || typeof id === "number" ? String(id) : undefined;
  } catch {
    return undefined;
  }
}

function reasonOf(answer: HttpAnswer, label: string): string {
  const { status, statusText, headers } = answer;
  const answered = `POST ${label} answered ${status} ${statusText}`.trimEnd();
  if (status >= 300 && status < 400) {
    const location = typeof headers["location"] === "string" ? ` to ${headers["location"]}` : "";
    return `${answered}, a redirect${location}; redirects are not followed: set the url to the final address`;
  }
  const excerpt = answer.body
    .subarray(0, 800)
    .toString()
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, 200);
  return excerpt === "" ? answered : `${answered}: ${excerpt}`;
}

/** Seconds, or an HTTP date; undefined when there is none, or it cannot be read or has passed. */
function retryAfter(value: string | readonly string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== "string") return undefined;
  const waitMs = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return waitMs > 0 ? Math.min(waitMs, MAX_RETRY_AFTER_MS) : undefined;
}
