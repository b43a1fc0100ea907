/**
 * Checks and encodes a message before any SQL. A database would find most faults late, on
 * PostgreSQL at the cost of the whole transaction, and change some values silently (a trailing
 * blank, half a surrogate pair).
 */
import { ConfigurationError, InvalidMessageError } from "../runtime/errors.ts";
import { checkText, invalid } from "./check-text.ts";
import { type BodyType, type EncodedBody, isJsonContentType } from "./content-type.ts";
import { encodeBody } from "./encode-body.ts";
import { encodeHeaders } from "./encode-headers.ts";
import type { MessageLimits, NewMessage } from "./message.ts";

/** A checked and encoded message, ready for the table. */
export interface EncodedMessage extends EncodedBody {
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  /** JSON object of strings, or null. */
  readonly headers: string | null;
  readonly orderingKey: string | null;
  /** Milliseconds from the database's now; null = at once. */
  readonly delayMs: number | null;
  /**
   * Epoch milliseconds, compared with the database's clock; null = at once. At most one of the two.
   */
  readonly deliverAtMs: number | null;
  readonly createdBy: string;
}

/** Limits of a table. A column that is undefined does not exist. */
export interface MessageRules {
  readonly limits: MessageLimits;
  /** Name of the layout, for error texts. */
  readonly layoutName: string;
  /** Type of its body column. Default: text. */
  readonly bodyType?: BodyType | undefined;
  readonly columns: {
    readonly headers: string | undefined;
    readonly contentType: string | undefined;
    readonly orderingKey: string | undefined;
    readonly createdBy: string | undefined;
  };
  /** `created_by` of messages that name none. */
  readonly createdBy: string;
}

/**
 * `added` are rowpost's own headers (trace context); the message's win, and a table without the
 * column gets none.
 *
 * Throws `InvalidMessageError` that names the message, the field and its limits;
 * `ConfigurationError` that names a column missing in the table.
 */
export function encodeMessage(
  message: NewMessage,
  rules: MessageRules,
  added?: Readonly<Record<string, string>>,
): EncodedMessage {
  if (typeof message !== "object" || message === null) {
    throw new InvalidMessageError(`a message is an object { type, key, topic, body }, not ${String(message)}`);
  }
  const { bodyType, columns, limits } = rules;
  const type = checkText("message", "type", message.type, limits.type);
  const key = checkText(`message of type ${type}`, "key", message.key, limits.key);
  const name = `message ${type}:${key}`;
  checkFields(name, message);
  checkColumns(name, message, rules);
  const { orderingKey, createdBy = rules.createdBy } = message;
  const { body, contentType } = encodeBody(name, message, limits.bodyBytes, bodyType);
  return {
    type,
    key,
    topic: checkText(name, "topic", message.topic, limits.topic),
    body,
    headers: encodeHeaders(name, message.headers, columns.headers === undefined ? undefined : added),
    // Without the column JSON variants go out as plain JSON; the INSERT recognizes bytes by their
    // mark.
    contentType: columns.contentType === undefined && isJson(contentType) ? null : contentType,
    orderingKey: orderingKey === undefined ? null : checkText(name, "orderingKey", orderingKey, limits.orderingKey),
    ...encodeDelay(name, message),
    createdBy: checkText(name, "createdBy", createdBy, limits.createdBy),
  };
}

const FIELDS: ReadonlySet<string> = new Set([
  "type",
  "key",
  "topic",
  "body",
  "headers",
  "orderingKey",
  "delayMs",
  "deliverAt",
  "contentType",
  "jsonText",
  "createdBy",
] satisfies readonly (keyof NewMessage)[]);

/** Finds misspelled fields such as `delay` or `orderKey`. */
function checkFields(name: string, message: NewMessage): void {
  for (const field of Object.keys(message)) {
    if (!FIELDS.has(field)) throw invalid(name, `"${field}" is not a field of a message (${[...FIELDS].join(", ")})`);
  }
}

function isJson(contentType: string | null): boolean {
  return contentType === null || isJsonContentType(contentType);
}

function checkColumns(name: string, message: NewMessage, { bodyType, columns, layoutName }: MessageRules): void {
  const { body, contentType } = message;
  const needsContentType =
    (body instanceof Uint8Array && bodyType !== "binary") ||
    (contentType !== undefined && !isJsonContentType(contentType));
  const missing =
    message.headers !== undefined && columns.headers === undefined
      ? "headers"
      : message.orderingKey !== undefined && columns.orderingKey === undefined
        ? "orderingKey"
        : message.createdBy !== undefined && columns.createdBy === undefined
          ? "createdBy"
          : needsContentType && columns.contentType === undefined
            ? "contentType"
            : undefined;
  if (missing === undefined) return;
  throw new ConfigurationError(
    `${name} has ${missing === "contentType" ? "a body that is not JSON" : missing}, but the layout ${layoutName} has no column for it: leave it out, or name the column as columns.${missing} of the layout`,
  );
}

/** Longest `delayMs`: 10 years. More is a wrong unit. */
export const LONGEST_DELAY_MS = 315_360_000_000;
/** Latest `deliverAt`: the end of the year 9999, where DATETIME ends. */
const LATEST_INSTANT_MS = 253_402_300_799_999;

export function encodeDelay(
  name: string,
  { delayMs, deliverAt }: Pick<NewMessage, "delayMs" | "deliverAt">,
): Pick<EncodedMessage, "delayMs" | "deliverAtMs"> {
  if (delayMs !== undefined && deliverAt !== undefined) throw invalid(name, "delayMs and deliverAt exclude each other");
  if (deliverAt !== undefined) return { delayMs: null, deliverAtMs: instantOf(name, "deliverAt", deliverAt) };
  if (delayMs === undefined) return { delayMs: null, deliverAtMs: null };
  if (!Number.isInteger(delayMs) || delayMs < 0 || delayMs > LONGEST_DELAY_MS) {
    throw invalid(
      name,
      `delayMs is ${delayMs}; it must be a whole number of milliseconds from 0 to ${LONGEST_DELAY_MS} (10 years)`,
    );
  }
  return { delayMs: delayMs === 0 ? null : delayMs, deliverAtMs: null };
}

/**
 * A past instant means at once. A text must name its zone, or each host would read another instant.
 */
export function instantOf(name: string, field: "deliverAt" | "expiresAt", instant: Date | string): number {
  const isText = typeof instant === "string";
  if (!isText && !(instant instanceof Date)) {
    throw invalid(name, `${field} must be a Date or an ISO 8601 text with a zone, not ${typeof instant}`);
  }
  const given = isText ? `"${instant}"` : "an invalid Date";
  if (isText && !/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/.test(instant)) {
    throw invalid(name, `${field} is ${given}; it must be ISO 8601 with a zone, such as 2027-01-31T09:00:00+08:00`);
  }
  const instantMs = isText ? Date.parse(instant) : instant.getTime();
  if (Number.isNaN(instantMs) || (isText && !isCalendarDay(instant)))
    throw invalid(name, `${field} is ${given}; there is no such instant`);
  if (instantMs < 0 || instantMs > LATEST_INSTANT_MS)
    throw invalid(name, `${field} must lie between the years 1970 and 9999`);
  return instantMs;
}

/** `Date.parse` turns 30 February into 2 March. */
function isCalendarDay(text: string): boolean {
  const day = text.slice(0, 10);
  return new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10) === day;
}
