/**
 * A message in NATS's fields, which allow fewer characters than ours in subjects and headers.
 * Nothing here throws, because other programs write into the table too and a topic, key or header
 * may hold any character.
 */

import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { percentDecode, percentEncode } from "../publishing/percent-encoding.ts";
import type { EncodedHeaders } from "./client.ts";

const HEADER_ENCODED = "rowpost-encoded";
const HEADER_CONTENT_TYPE = "content-type";
const JSON_TYPE = "application/json";

/**
 * The server ends the connection on a command of more than 4,096 bytes (`max_control_line`), which
 * also holds the reply address and two sizes.
 */
const MAX_SUBJECT_BYTES = 2048;

export function subjectOf(topic: string, subject: string): string | PublishFailed {
  const trouble = subjectTrouble(subject);
  if (trouble === undefined) return subject;
  const reason = `the topic "${topic}" makes the NATS subject "${subject}", which ${trouble}; rename the topic, or map it with the option subject`;
  return failed("message", "ILLEGAL_SUBJECT", reason, { retriable: false });
}

/** Rejects a subject that is a syntax error, matches several subjects, or commands the server. */
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
 * The id for JetStream's deduplication (`Nats-Msg-Id`): `type:key`, the same on every attempt. `%`,
 * `:`, blanks and control characters inside type and key are percent-encoded; otherwise `a:b` with
 * `c` and `a` with `b:c` would have the same id, and the second message would be dropped.
 */
export function messageIdOf(type: string, key: string, prefix: string): string {
  return `${prefix}${percentEncode(type, ID_UNSAFE)}:${percentEncode(key, ID_UNSAFE)}`;
}

const ID_UNSAFE = /[%:\s\p{Cc}]/gu;

/** Fields for the server come first, because it also finds their names inside earlier values. */
export type ServerFields = Readonly<Record<string, string | undefined>>;

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
  // The last of several values wins.
  if (message.orderingKey !== undefined) add(HEADER_ORDERING_KEY, message.orderingKey);
  if (encoded.length > 0) text += `${HEADER_ENCODED}: ${encoded.join(",")}\r\n`;
  return Buffer.from(`${text}\r\n`);
}

const NEVER = { retriable: false } as const;

export function asHeaders(block: Uint8Array): EncodedHeaders {
  return { encode: () => block };
}

/** NATS trims white space at both ends, and line breaks end a header. */
const isPlainValue = (value: string): boolean => !/\p{Cc}|^\s|\s$/u.test(value);
/** Encodes inner blanks too, for simplicity. */
const VALUE_UNSAFE = /[%\s\p{Cc}]/gu;
/** Printable ASCII except the colon and the two characters of the list of encoded names. */
const PLAIN_NAME = /^[!-9;-~]+$/;
const NAME_UNSAFE = /[^A-Za-z0-9._~-]/gu;

const wireNames = new Map<string, string>();
/** Bounds the cache in case header names carry data. */
const MAX_WIRE_NAMES = 1000;

/**
 * Encodes names that NATS cannot carry, that the server would obey (`Nats-Rollup`), and the list's
 * own.
 */
function wireNameOf(name: string): string {
  const known = wireNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const isTaken = lower.startsWith("nats-") || lower === HEADER_ENCODED;
  const wireName = PLAIN_NAME.test(name) && !/[%,]/.test(name) && !isTaken ? name : encodeFirst(name);
  if (wireNames.size < MAX_WIRE_NAMES) wireNames.set(name, wireName);
  return wireName;
}

/** Always encodes the first character, so that the name differs from the plain one. */
function encodeFirst(name: string): string {
  const [first = "", ...rest] = name;
  return percentEncode(first, /./gsu) + percentEncode(rest.join(""), NAME_UNSAFE);
}

/**
 * Restores the published headers from those of a consumed message (`message.headers` of the NATS
 * clients, or a plain object): decodes the names in `rowpost-encoded` and drops those for the
 * server (`Nats-…`). Headers of other programs pass through; the last of several values wins.
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
