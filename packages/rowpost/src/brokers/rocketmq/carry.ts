/**
 * A message in RocketMQ's fields, which allow fewer characters than ours.
 *
 * Nothing here throws, because other programs write into the table too and a key, type or header
 * may hold any character.
 */

import { createHash } from "node:crypto";
import type { OutgoingMessage } from "../broker.ts";
import { percentDecode, percentEncode } from "../publishing/percent-encoding.ts";
import { type Failure, messageFailure } from "./rules.ts";

/** The column holds twice as many, but the broker stores each byte of the id twice. */
const PLAIN_ID_LENGTH = 128;
/** RocketMQ refuses a message group of 64 bytes. */
const GROUP_BYTES = 63;
const HEADER_ENCODED = "rowpost-encoded";
/** Comma-separated list of headers with an empty value, which RocketMQ would drop. */
const HEADER_EMPTY = "rowpost-empty";
const HEADER_CONTENT_TYPE = "content-type";

const JSON_TYPE = "application/json";
const NOT_UNRESERVED = /[^A-Za-z0-9._~-]/gu;
// Java's isISOControl: C0, DEL and C1. Stored properties are separated by U+0001 and U+0002.
const CONTROL = /\p{Cc}/u;

/**
 * The message id: `type:key`, each percent-encoded, up to 128 characters; else `sha256-` and the
 * hash of both. It depends on the identity alone, so that consumers see duplicates of later
 * attempts. (RocketMQ's own 17 bytes in hex hold the process and the time. The clients accept,
 * index and show any text.)
 */
export function messageIdOf(type: string, key: string): string {
  const plain = `${percentEncode(type, NOT_UNRESERVED)}:${percentEncode(key, NOT_UNRESERVED)}`;
  if (plain.length <= PLAIN_ID_LENGTH) return plain;
  return `sha256-${hash(`${type.length}:${type}:${key}`)}`;
}

/** The message type, with `_` for control characters and for `|`, which separates tags. */
export function tagOf(type: string): string {
  const tag = type.replace(/\||\p{Cc}/gu, "_");
  return tag.trim() === "" ? "" : tag;
}

/** The message key, percent-encoded where a blank would split it. `rowpost-key` is exact. */
export function indexKeyOf(key: string): string {
  return percentEncode(key, /[\s\p{Cc}]/gu);
}

/** The text, or `sha256-` and its hash if it is too long or has illegal characters. */
export function groupOf(text: string): string {
  // At most 3 bytes for each UTF-16 unit, so short texts need no counting.
  const short = text.length * 3 <= GROUP_BYTES || Buffer.byteLength(text) <= GROUP_BYTES;
  return short && text.trim() !== "" && !CONTROL.test(text) ? text : `sha256-${hash(text)}`;
}

/**
 * The user properties, alternating names and values: the headers with three additions.
 *
 * A value with a control character is percent-encoded (those characters and `%`) and listed in
 * `rowpost-encoded`, so that `%0A` and a line feed stay different. A header without a value is
 * listed in `rowpost-empty`. The media type of a body that is not JSON goes into `content-type`.
 */
export function propertiesOf(message: OutgoingMessage): string[] | Failure {
  const properties: string[] = [];
  const encoded: string[] = [];
  const empty: string[] = [];
  let typed = message.contentType === JSON_TYPE || message.contentType === "";
  for (const [name, value] of Object.entries(message.headers)) {
    if (name === "") return messageFailure("ILLEGAL_MESSAGE_PROPERTY_KEY", NAMELESS);
    if (!typed && name.toLowerCase() === HEADER_CONTENT_TYPE) typed = true;
    if (value === "") {
      empty.push(name);
    } else if (CONTROL.test(value)) {
      encoded.push(name);
      properties.push(name, percentEncode(value, /[%\p{Cc}]/gu));
    } else {
      properties.push(name, value);
    }
  }
  if (!typed) properties.push(HEADER_CONTENT_TYPE, percentEncode(message.contentType, /\p{Cc}/gu));
  if (encoded.length > 0) properties.push(HEADER_ENCODED, nameList(encoded));
  if (empty.length > 0) properties.push(HEADER_EMPTY, nameList(empty));
  return properties;
}

/**
 * Restores a message's headers from the user properties of a consumed message, by `rowpost-encoded`
 * and `rowpost-empty`. Properties of other programs pass through.
 */
export function headersOf(properties: Iterable<readonly [name: string, value: string]>): Record<string, string> {
  const headers = Object.fromEntries(properties);
  const encoded = namesIn(headers[HEADER_ENCODED]);
  const empty = namesIn(headers[HEADER_EMPTY]);
  delete headers[HEADER_ENCODED];
  delete headers[HEADER_EMPTY];
  for (const name of encoded) {
    const value = headers[name];
    if (value !== undefined) headers[name] = percentDecode(value);
  }
  for (const name of empty) headers[name] ??= "";
  return headers;
}

function nameList(names: readonly string[]): string {
  return names.map((name) => percentEncode(name, /[%,]/gu)).join(",");
}

const NAMELESS =
  "a header has an empty name, which RocketMQ would store as a broken list of properties; give it a name";

function namesIn(list: string | undefined): string[] {
  return list === undefined ? [] : list.split(",").map(percentDecode);
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
