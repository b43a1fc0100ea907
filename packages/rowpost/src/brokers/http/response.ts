import type { Outcome } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** At most the first 16 KiB. */
  readonly body: Buffer;
}

export interface AnswerContext {
  readonly label: string;
  readonly webhookId: string;
  /** Lower-case name of the answer header with the receipt. */
  readonly receiptHeader: string;
  /** Epoch milliseconds, for a Retry-After that is a date. */
  readonly nowMs: number;
}

/**
 * Permanent refusals are 400, 409, 410, 413, 415, 422 and every 4xx not listed here.
 *
 * The codes listed concern the endpoint, not the message: it is busy (408, 425), or its address,
 * routes or credentials are wrong (401, 403, 404, 405, 407), which a deployment or a configuration
 * change fixes. The relay waits, then retries and counts, so that a typo does not fail every
 * message at once. 410 is not listed: the receiver asks for no more messages (Standard Webhooks:
 * stop sending).
 */
const MISSING: ReadonlySet<number> = new Set([401, 403, 404, 405, 407]);
const BUSY: ReadonlySet<number> = new Set([408, 425]);
/** A gateway reports that the service behind it is away. 520 to 524 are those of a CDN. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504, 520, 521, 522, 523, 524]);

/** Limits the damage of a mistaken date, which could silence a topic for years. */
const MAX_RETRY_AFTER_MS = 86_400_000;

export function outcomeOfAnswer(answer: HttpAnswer, context: AnswerContext): Outcome {
  const { status } = answer;
  if (status >= 200 && status < 300) return receiptOf(answer, context);
  const retryAfterMs = retryAfter(answer.headers["retry-after"], context.nowMs);
  const isThrottled = status === 429 || (status === 503 && retryAfterMs !== undefined);
  const isRetriable = status >= 500 || (status >= 300 && status < 400) || MISSING.has(status) || BUSY.has(status);
  const scope = isThrottled ? "destination" : "message";
  const absent = isThrottled ? undefined : MISSING.has(status) ? "missing" : AWAY.has(status) ? "away" : undefined;
  const retriable = isThrottled || isRetriable;
  return failed(scope, `HTTP_${status}`, reasonOf(answer, context.label), { absent, retriable, retryAfterMs });
}

/** The receiver's receipt (a header, or `id` in a JSON body), else the id that was sent. */
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
    const text = body.toString();
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null || !("id" in parsed)) return undefined;
    const { id } = parsed;
    // A number above 2^53 has lost its last digits, so it is read again as text.
    if (typeof id === "number") return Number.isSafeInteger(id) ? String(id) : jsonId(Buffer.from(quoted(text)));
    return typeof id === "string" && id !== "" ? id : undefined;
  } catch {
    return undefined;
  }
}

function quoted(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (part) => (part.startsWith('"') ? part : `"${part}"`));
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

/** Seconds or an HTTP date. Undefined if missing, unreadable or in the past. */
function retryAfter(value: string | readonly string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== "string") return undefined;
  const waitMs = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return waitMs > 0 ? Math.min(waitMs, MAX_RETRY_AFTER_MS) : undefined;
}
