/**
 * How a message is carried in NATS's fields, which are narrower than ours: what is legal in a
 * subject and in a header, and what happens to the rest. Nothing here throws: a topic, key or
 * header may hold any character, because other programs write into the table too.
 */

import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { percentDecode, percentEncode } from "../publishing/percent-encoding.ts";
import type { EncodedHeaders } from "./client.ts";

/** Lists, with commas, the headers whose name and value are percent-encoded. */
const HEADER_ENCODED = "rowpost-encoded";
/** Media type of the body, where it is not JSON. */
const HEADER_CONTENT_TYPE = "content-type";
const JSON_TYPE = "application/json";

/**
 * The server ends the connection over a command of more than 4,096 bytes (`max_control_line`);
 * beside the subject it holds the reply address and two sizes.
 */
const MAX_SUBJECT_BYTES = 2048;

/** The subject of a topic, or why it cannot be one. */
export function subjectOf(topic: string, subject: string): string | PublishFailed {
  const trouble = subjectTrouble(subject);
  if (trouble === undefined) return subject;
  const reason = `the topic "${topic}" makes the NATS subject "${subject}", which ${trouble}; rename the topic, or map it with the option subject`;
  return failed("message", "ILLEGAL_SUBJECT", reason, { retriable: false });
}

/** What NATS would make of it: a syntax error, several subjects, or a command to the server. */
function subjectTrouble(subject: string): string | undefined {
  if (/[\s\p{Cc}\p{Surrogate}]/u.test(subject)) return "holds a blank or a control character";
  const tokens = subject.split(".");
  if (tokens.includes("")) return "is empty or has an empty part (a dot at an end, or two dots together)";
  if (tokens.includes("*") || tokens.includes(">")) return "has a wildcard as one of its parts";
  if (subject.startsWith("$") || tokens[0] === "_INBOX") return "belongs to NATS itself ($… and _INBOX)";
  if (Buffer.byteLength(subject) > MAX_SUBJECT_BYTES) return `is longer than ${MAX_SUBJECT_BYTES} bytes`;
  return undefined;
}

/**
 * The id by which JetStream drops copies (`Nats-Msg-Id`): `type:key`, the same on every attempt.
 * `%`, `:`, blanks and control characters inside type and key are percent-encoded: with `a:b` and
 * `c` as with `a` and `b:c` the plain text would be the same, and the second message would be
 * dropped as a copy of the first.
 */
export function messageIdOf(type: string, key: string, prefix: string): string {
  return `${prefix}${percentEncode(type, ID_UNSAFE)}:${percentEncode(key, ID_UNSAFE)}`;
}

const ID_UNSAFE = /[%:\s\p{Cc}]/gu;

/** Fields for the server stand first: it also finds their names inside earlier values. */
export type ServerFields = Readonly<Record<string, string | undefined>>;

/** The header block of a message: what the server reads, then the message's own. */
export function headersOf(message: OutgoingMessage, fields: ServerFields): Buffer | PublishFailed {
  let text = "NATS/1.0\r\n";
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) text += `${name}: ${value}\r\n`;
  const encoded: string[] = [];
  let typed = message.contentType === JSON_TYPE || message.contentType === "";

  const add = (name: string, value: string): void => {
    const wireName = wireNameOf(name);
    if (wireName === name && isPlainValue(value)) {
      text += `${name}: ${value}\r\n`;
      return;
    }
    encoded.push(wireName);
    text += `${wireName}: ${percentEncode(value, VALUE_UNSAFE)}\r\n`;
  };

  for (const name in message.headers) {
    if (name === "") return failed("message", "ILLEGAL_HEADER", "a header has an empty name; give it one", NEVER);
    if (!typed && name.toLowerCase() === HEADER_CONTENT_TYPE) typed = true;
    add(name, message.headers[name] ?? "");
  }
  if (!typed) add(HEADER_CONTENT_TYPE, message.contentType);
  // Of several values the last one counts.
  if (message.orderingKey !== undefined) add(HEADER_ORDERING_KEY, message.orderingKey);
  if (encoded.length > 0) text += `${HEADER_ENCODED}: ${encoded.join(",")}\r\n`;
  return Buffer.from(`${text}\r\n`);
}

const NEVER = { retriable: false } as const;

/** The block in the form in which the client takes it. */
export function asHeaders(block: Uint8Array): EncodedHeaders {
  return { encode: () => block };
}

/** NATS cuts white space off at both ends, and lines end a header. */
const isPlainValue = (value: string): boolean => !/\p{Cc}|^\s|\s$/u.test(value);
/** Inner blanks too: it is simpler. */
const VALUE_UNSAFE = /[%\s\p{Cc}]/gu;
/** Printable ASCII but for the colon, and the two signs of the list of encoded names. */
const PLAIN_NAME = /^[!-9;-~]+$/;
const NAME_UNSAFE = /[^A-Za-z0-9._~-]/gu;

const wireNames = new Map<string, string>();
/** Header names are few; if they are not, somebody puts data into them. */
const MAX_WIRE_NAMES = 1000;

/** What NATS cannot carry, what the server would obey (`Nats-Rollup`), and our list go encoded. */
function wireNameOf(name: string): string {
  const known = wireNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const isTaken = lower.startsWith("nats-") || lower === HEADER_ENCODED;
  const wireName = PLAIN_NAME.test(name) && !/[%,]/.test(name) && !isTaken ? name : encodeFirst(name);
  if (wireNames.size < MAX_WIRE_NAMES) wireNames.set(name, wireName);
  return wireName;
}

/** Encoded so that it is another name than the plain one: the first character always. */
function encodeFirst(name: string): string {
  const [first = "", ...rest] = name;
  return percentEncode(first, /./gsu) + percentEncode(rest.join(""), NAME_UNSAFE);
}

/**
 * The headers of a message as they were published, out of those that a consumer got
 * (`message.headers` of the NATS clients, or a plain object): what `rowpost-encoded` names is put
 * back, and what is meant for the server (`Nats-…`) is left out. Headers of other programs pass
 * through; of several values the last one counts.
 */
export function decodeNatsHeaders(
  headers: Iterable<readonly [string, string | readonly string[]]> | Readonly<Record<string, string>> | undefined,
): Record<string, string> {
  const entries = headers === undefined ? [] : Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  const received = new Map<string, string>();
  for (const [name, value] of entries) {
    const last = typeof value === "string" ? value : value.at(-1);
    if (last !== undefined && !name.toLowerCase().startsWith("nats-")) received.set(name, last);
  }
  const encoded = new Set((received.get(HEADER_ENCODED) ?? "").split(","));
  received.delete(HEADER_ENCODED);
  const decoded = new Map<string, string>();
  for (const [name, value] of received) {
    if (encoded.has(name)) decoded.set(percentDecode(name), percentDecode(value));
    else decoded.set(name, value);
  }
  return Object.fromEntries(decoded);
}
