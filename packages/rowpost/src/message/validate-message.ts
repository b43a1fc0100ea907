/**
 * What is checked about a message before any SQL, and its encoding. A database would find most of it too, but late, in words of its own, and on
 * PostgreSQL at the price of the whole transaction; some it would change without a word (a blank at the end, half a surrogate pair).
 */
import { ConfigurationError, InvalidMessageError } from "../runtime/errors.ts";
import { BASE64_MARK, type EncodedMessage, encodeBody, encodeHeaders, isJsonContentType, textFault } from "./codec.ts";
import type { MessageLimits, NewMessage } from "./message.ts";

/** What a table takes. A column that is undefined does not exist there. */
export interface MessageRules {
  readonly limits: MessageLimits;
  /** Name of the layout, for error texts. */
  readonly layoutName: string;
  readonly columns: {
    readonly headers: string | undefined;
    readonly contentType: string | undefined;
    readonly orderingKey: string | undefined;
    readonly createdBy: string | undefined;
  };
  /** `created_by` of messages that name none. */
  readonly createdBy: string;
}

/** Longest `content_type` in characters, with the mark of binary bodies. */
const CONTENT_TYPE_LENGTH = 64;
/** Longest headers of a message as JSON, in bytes: what RocketMQ takes as properties, and half of MySQL's TEXT. */
const HEADERS_BYTES = 32_767;
/** Longest `delayMs`: 10 years. Longer is a mistake in the unit. */
export const LONGEST_DELAY_MS = 315_360_000_000;
/** Latest `deliverAt`: the end of the year 9999, where DATETIME ends. */
const LATEST_INSTANT_MS = 253_402_300_799_999;

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
  "createdBy",
] satisfies readonly (keyof NewMessage)[]);

/**
 * The message as its row holds it. `added` are headers of rowpost's own making (trace context); those of the message win over them, and a
 * table without the column goes without them.
 *
 * Throws `InvalidMessageError` that names the message, the field and what it may be; `ConfigurationError` that names the column, for something
 * that the table has no column for.
 */
export function encodeMessage(
  message: NewMessage,
  rules: MessageRules,
  added?: Readonly<Record<string, string>>,
): EncodedMessage {
  if (typeof message !== "object" || message === null) {
    throw new InvalidMessageError(`a message is an object { type, key, topic, body }, not ${String(message)}`);
  }
  const { limits } = rules;
  const type = checkText("message", "type", message.type, limits.type);
  const key = checkText(`message of type ${type}`, "key", message.key, limits.key);
  const name = `message ${type}:${key}`;
  checkFields(name, message);
  checkColumns(name, message, rules);
  const { orderingKey, createdBy = rules.createdBy } = message;
  const { body, contentType } = checkedBody(name, message, rules);
  return {
    type,
    key,
    topic: checkText(name, "topic", message.topic, limits.topic),
    body,
    headers: checkedHeaders(name, message, rules.columns.headers === undefined ? undefined : added),
    contentType,
    orderingKey: orderingKey === undefined ? null : checkText(name, "orderingKey", orderingKey, limits.orderingKey),
    ...checkedDelay(name, message),
    createdBy: checkText(name, "createdBy", createdBy, limits.createdBy),
  };
}

function invalid(name: string, what: string): InvalidMessageError {
  return new InvalidMessageError(`${name}: ${what}`);
}

/** Identities compare byte for byte (rule R7); what a database may fold or cut is refused instead. */
function checkText(name: string, field: string, value: unknown, limit: number): string {
  if (typeof value !== "string") throw invalid(name, `${field} must be a string, not ${typeof value}`);
  if (value === "") throw invalid(name, `${field} is empty; it must have 1 to ${limit} characters`);
  // A character outside the basic plane counts as two in JavaScript and as one in a VARCHAR.
  if (value.length > limit && (value.length > 2 * limit || countCharacters(value) > limit)) {
    throw invalid(name, `${field} has ${countCharacters(value)} characters; at most ${limit} fit`);
  }
  if (/\s$/.test(value)) throw invalid(name, `${field} ends in a blank, which a database may ignore: "${value}"`);
  const fault = textFault(value);
  if (fault !== undefined) throw invalid(name, `${field} ${fault}`);
  return value;
}

function countCharacters(value: string): number {
  let count = 0;
  for (const _ of value) count += 1;
  return count;
}

/** `delay` for `delayMs`, or `orderKey`: in plain JavaScript nobody else would say so. */
function checkFields(name: string, message: NewMessage): void {
  for (const field of Object.keys(message)) {
    if (!FIELDS.has(field)) throw invalid(name, `"${field}" is not a field of a message (${[...FIELDS].join(", ")})`);
  }
}

function checkColumns(name: string, message: NewMessage, { columns, layoutName }: MessageRules): void {
  const { body, contentType } = message;
  const needsContentType = body instanceof Uint8Array || (contentType !== undefined && !isJsonContentType(contentType));
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

function checkedBody(
  name: string,
  { body, contentType }: NewMessage,
  { limits, columns }: MessageRules,
): Pick<EncodedMessage, "body" | "contentType"> {
  if (contentType !== undefined) checkContentType(name, contentType);
  let encoded: Pick<EncodedMessage, "body" | "contentType">;
  try {
    encoded = encodeBody(body, contentType);
  } catch (error) {
    if (error instanceof InvalidMessageError)
      throw new InvalidMessageError(`${name}: ${error.message}`, { cause: error.cause });
    throw error;
  }
  // UTF-8 has at most three bytes for each unit of a JavaScript string: most bodies need no counting.
  if (encoded.body.length * 3 > limits.bodyBytes) {
    const bytes = Buffer.byteLength(encoded.body);
    if (bytes > limits.bodyBytes)
      throw invalid(name, `the body has ${bytes} bytes as stored; at most ${limits.bodyBytes} fit`);
  }
  if (encoded.contentType !== null && encoded.contentType.length > CONTENT_TYPE_LENGTH) {
    throw invalid(
      name,
      `contentType has ${encoded.contentType.length} characters as stored; at most ${CONTENT_TYPE_LENGTH} fit`,
    );
  }
  // A variant of JSON in a table without the column goes out as plain JSON.
  return columns.contentType === undefined ? { body: encoded.body, contentType: null } : encoded;
}

function checkContentType(name: string, contentType: unknown): void {
  if (typeof contentType !== "string" || !/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;[\x20-\x7e]*)?$/.test(contentType)) {
    throw invalid(name, `contentType is ${JSON.stringify(contentType)}; it must be a media type such as text/plain`);
  }
  if (contentType.endsWith(BASE64_MARK)) {
    throw invalid(
      name,
      `contentType ends in ${BASE64_MARK}, which marks binary bodies; pass a Uint8Array as body instead`,
    );
  }
}

function checkedHeaders(
  name: string,
  { headers }: NewMessage,
  added: Readonly<Record<string, string>> | undefined,
): string | null {
  if (headers === undefined && added === undefined) return null;
  if (headers !== undefined) checkHeaders(name, headers);
  const text = encodeHeaders(added === undefined ? headers : { ...added, ...headers });
  if (text !== null && text.length * 3 > HEADERS_BYTES && Buffer.byteLength(text) > HEADERS_BYTES) {
    throw invalid(name, `the headers have ${Buffer.byteLength(text)} bytes as JSON; at most ${HEADERS_BYTES} fit`);
  }
  return text;
}

/** Names as HTTP has them, and values without control characters: what every broker can carry, and no line break smuggles in a header. */
function checkHeaders(name: string, headers: unknown): void {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw invalid(name, "headers must be an object of strings");
  }
  for (const [header, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]{1,128}$/.test(header)) {
      throw invalid(name, `"${header}" is no header name: 1 to 128 letters, digits or any of !#$%&'*+.^_\`|~-`);
    }
    if (/^rowpost-/i.test(header))
      throw invalid(name, `header names that begin with rowpost- are reserved: "${header}"`);
    if (typeof value !== "string") throw invalid(name, `header ${header} must be a string, not ${typeof value}`);
    if (hasControlCharacter(value)) throw invalid(name, `header ${header} has a control character`);
    const fault = textFault(value);
    if (fault !== undefined) throw invalid(name, `header ${header} ${fault}`);
  }
}

function hasControlCharacter(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return true;
  }
  return false;
}

function checkedDelay(
  name: string,
  { delayMs, deliverAt }: NewMessage,
): Pick<EncodedMessage, "delayMs" | "deliverAtMs"> {
  if (delayMs !== undefined && deliverAt !== undefined) throw invalid(name, "delayMs and deliverAt exclude each other");
  if (deliverAt !== undefined) return { delayMs: null, deliverAtMs: instantOf(name, deliverAt) };
  if (delayMs === undefined) return { delayMs: null, deliverAtMs: null };
  if (!Number.isInteger(delayMs) || delayMs < 0 || delayMs > LONGEST_DELAY_MS) {
    throw invalid(
      name,
      `delayMs is ${delayMs}; it must be a whole number of milliseconds from 0 to ${LONGEST_DELAY_MS} (10 years)`,
    );
  }
  return { delayMs: delayMs === 0 ? null : delayMs, deliverAtMs: null };
}

/** An instant in the past is fine: it means at once. A text must name its zone, or each host would read another instant. */
function instantOf(name: string, deliverAt: Date | string): number {
  const isText = typeof deliverAt === "string";
  if (!isText && !(deliverAt instanceof Date)) {
    throw invalid(name, `deliverAt must be a Date or an ISO 8601 text with a zone, not ${typeof deliverAt}`);
  }
  const given = isText ? `"${deliverAt}"` : "an invalid Date";
  if (isText && !/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/.test(deliverAt)) {
    throw invalid(name, `deliverAt is ${given}; it must be ISO 8601 with a zone, such as 2027-01-31T09:00:00+08:00`);
  }
  const instantMs = isText ? Date.parse(deliverAt) : deliverAt.getTime();
  if (Number.isNaN(instantMs) || (isText && !isCalendarDay(deliverAt)))
    throw invalid(name, `deliverAt is ${given}; there is no such instant`);
  if (instantMs < 0 || instantMs > LATEST_INSTANT_MS)
    throw invalid(name, "deliverAt must lie between the years 1970 and 9999");
  return instantMs;
}

/** `Date.parse` takes 30 February for 2 March. */
function isCalendarDay(text: string): boolean {
  const day = text.slice(0, 10);
  return new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10) === day;
}
