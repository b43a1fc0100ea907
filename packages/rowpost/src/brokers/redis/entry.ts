/**
 * A message as an entry of a stream. Redis takes any bytes as names and values, so nothing is
 * encoded:
 *
 *   body         the body, byte for byte
 *   contentType  its media type
 *   orderingKey  only when the message has one
 *   NAME         each header under its own name: rowpost-id, rowpost-type, rowpost-key,
 *                rowpost-attempt, traceparent, …
 *   header:NAME  a header whose own name is one of the three above, or begins with `header:`
 *
 * The fields stand in this order: entries with the same names in the same order take less memory in
 * Redis (a listpack holds them once).
 */

import type { OutgoingMessage } from "../broker.ts";

const RESERVED: ReadonlySet<string> = new Set(["body", "contentType", "orderingKey"]);
const ESCAPE = "header:";

export function fieldsOf(message: OutgoingMessage): (string | Buffer)[] {
  const fields: (string | Buffer)[] = ["body", bytesOf(message.body), "contentType", message.contentType];
  if (message.orderingKey !== undefined) fields.push("orderingKey", message.orderingKey);
  for (const [name, value] of Object.entries(message.headers)) {
    fields.push(RESERVED.has(name) || name.startsWith(ESCAPE) ? `${ESCAPE}${name}` : name, value);
  }
  return fields;
}

/** The client treats any array but a Buffer as text. A view, not a copy. */
function bytesOf(body: string | Uint8Array): string | Buffer {
  if (typeof body === "string" || Buffer.isBuffer(body)) return body;
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** A decoded entry. */
export interface RedisEntry<Value extends string | Uint8Array = string> {
  /** Text, or bytes when the entry was read as buffers. */
  readonly body: Value;
  /** Media type of the body. */
  readonly contentType: string;
  /** Undefined if the message has none. */
  readonly orderingKey: string | undefined;
  /** As they were published. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Decodes the message in an entry's fields, alternating names and values as XREADGROUP returns
 * them: texts, or Buffers if bodies may be binary (`xreadgroupBuffer` of ioredis). An entry of
 * another program gets an empty body and its fields as headers.
 */
export function decodeRedisEntry<Value extends string | Uint8Array>(fields: readonly Value[]): RedisEntry<Value> {
  const headers: Record<string, string> = {};
  let body: Value | undefined;
  let contentType = "";
  let orderingKey: string | undefined;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = textOf(fields[index]);
    const value = fields[index + 1];
    if (name === "body") body = value;
    else if (name === "contentType") contentType = textOf(value);
    else if (name === "orderingKey") orderingKey = textOf(value);
    else headers[name.startsWith(ESCAPE) ? name.slice(ESCAPE.length) : name] = textOf(value);
  }
  const [sample] = fields;
  const nothing = (typeof sample === "object" ? new Uint8Array() : "") as Value;
  return { body: body ?? nothing, contentType, orderingKey, headers };
}

function textOf(value: string | Uint8Array | undefined): string {
  return typeof value === "object"
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString()
    : (value ?? "");
}
