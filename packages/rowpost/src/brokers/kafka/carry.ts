/** A message as a Kafka record. Kafka carries bytes, so nothing needs encoding. */

import type { OutgoingMessage } from "../broker.ts";

export interface WireRecord {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: number;
}

const CONTENT_TYPE = "content-type";
const JSON_TYPE = "application/json";

/** Lengths, timestamp and offset: seven variable-length numbers, usually 1 or 2 bytes each. */
const RECORD_OVERHEAD = 32;
/** Two lengths, 5 bytes at most each. */
const HEADER_OVERHEAD = 10;

export function recordOf(message: OutgoingMessage): WireRecord {
  const key = Buffer.from(message.orderingKey ?? message.key);
  // An empty body must not become null, which is a tombstone that deletes the key on compaction.
  const { body } = message;
  const value =
    typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const headers = headersOf(message);
  let bytes = RECORD_OVERHEAD + key.length + value.length;
  for (const name in headers) {
    bytes += HEADER_OVERHEAD + Buffer.byteLength(name) + Buffer.byteLength(headers[name] ?? "");
  }
  return { key, value, headers, bytes };
}

/**
 * The headers unchanged, and `content-type` for a body that is not JSON, unless the user set one.
 */
function headersOf({ headers, contentType }: OutgoingMessage): Readonly<Record<string, string>> {
  if (contentType === JSON_TYPE || contentType === "") return headers;
  if (Object.keys(headers).some((name) => name.toLowerCase() === CONTENT_TYPE)) return headers;
  return { ...headers, [CONTENT_TYPE]: contentType };
}

/** A topic's name may have 249 characters, a partition with its offset 30. */
const RECEIPT_LENGTH = 255;

/** The receipt: `topic-partition@offset`. Of a very long topic name the end is left out. */
export function receiptOf(topic: string, partition: number, offset: bigint): string {
  const place = `-${partition}@${offset}`;
  return `${topic.slice(0, RECEIPT_LENGTH - place.length)}${place}`;
}
