/** Encodes properties as RocketMQ writes them, and several messages as one body. */
import type { Queue } from "./topic-route.ts";

export interface WireMessage {
  /** Its properties, by {@link propertiesText}. */
  readonly text: string;
  readonly body: Buffer;
  readonly bytes: number;
}

const VALUE = "\u0001";
const NEXT = "\u0002";

export function propertiesText(properties: readonly string[]): string {
  let text = "";
  for (let index = 0; index + 1 < properties.length; index += 2) {
    text += `${properties[index]}${VALUE}${properties[index + 1]}${NEXT}`;
  }
  return text;
}

const FIXED_BYTES = 22;

export function messageBytes(properties: string, body: Buffer): number {
  return FIXED_BYTES + body.length + Buffer.byteLength(properties);
}

/**
 * For each message: its length, two numbers that the broker fills in, a flag, body and properties.
 */
export function encodeBatch(messages: readonly WireMessage[]): Buffer {
  const batch = Buffer.allocUnsafe(messages.reduce((sum, { bytes }) => sum + bytes, 0));
  let at = 0;
  for (const { text, body, bytes } of messages) {
    batch.writeUInt32BE(bytes, at);
    batch.fill(0, at + 4, at + 16);
    batch.writeUInt32BE(body.length, at + 16);
    body.copy(batch, at + 20);
    const properties = at + 20 + body.length;
    batch.writeUInt16BE(bytes - FIXED_BYTES - body.length, properties);
    batch.write(text, properties + 2);
    at += bytes;
  }
  return batch;
}

/** Fields of a SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE request, whose names are letters. */
export function sendFields(envelope: {
  readonly producerGroup: string;
  readonly topic: string;
  readonly queue: Queue;
  readonly properties: string;
  readonly isBatch: boolean;
}): Record<string, string> {
  return {
    a: envelope.producerGroup,
    b: envelope.topic,
    // Template topic for creating missing topics: none is created.
    c: "",
    d: "0",
    e: String(envelope.queue.id),
    f: "0",
    g: String(Date.now()),
    h: "0",
    i: envelope.properties,
    j: "0",
    k: "false",
    m: String(envelope.isBatch),
    n: envelope.queue.broker,
  };
}
