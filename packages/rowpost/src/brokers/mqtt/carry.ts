/**
 * A message as a PUBLISH packet. Nothing here throws, because other programs write into the table
 * too and a topic, key or header may hold any character.
 */
import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { packHeaders, unpackHeaders } from "../publishing/packed-headers.ts";

export interface Wire {
  readonly topic: string;
  readonly payload: Buffer;
  readonly properties: { readonly contentType: string; readonly userProperties: Readonly<Record<string, string>> };
}

interface Limits {
  readonly maxBodyBytes: number | undefined;
  readonly maxPacketBytes: number;
}

/** A text has a two-byte length; a longer one would break the connection. */
const MAX_TEXT_BYTES = 65_535;
const ILLEGAL = /[\p{Cc}\p{Surrogate}\p{Noncharacter_Code_Point}]/u;

export function encode(message: OutgoingMessage, topic: string, limits: Limits): Wire | PublishFailed {
  const trouble = topicTrouble(topic);
  if (trouble !== undefined) {
    return refused("ILLEGAL_TOPIC", `the MQTT topic "${topic}" ${trouble}; rename the topic`);
  }
  const contentType = legal(message.contentType) ? message.contentType : "application/octet-stream";
  const userProperties = packHeaders(message.headers, { fits: (name, value) => legal(name) && legal(value) });
  const longest = Math.max(0, ...Object.values(userProperties).map((value) => Buffer.byteLength(value)));
  if (longest > MAX_TEXT_BYTES) {
    return refused("HEADERS_TOO_LARGE", `the headers need a property of ${longest} bytes; MQTT has ${MAX_TEXT_BYTES}`);
  }
  const { body } = message;
  const payload = typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.length);
  const wire = { topic, payload, properties: { contentType, userProperties } };
  const { maxBodyBytes = Number.POSITIVE_INFINITY, maxPacketBytes } = limits;
  if (payload.length > maxBodyBytes) {
    return refused("MESSAGE_TOO_LARGE", `the body has ${payload.length} bytes; at most ${maxBodyBytes} are allowed`);
  }
  const bytes = packetBytes(wire);
  // The server would end the connection and lose everything in flight.
  if (bytes > maxPacketBytes) {
    const reason = `with topic and headers it is a packet of ${bytes} bytes; the server takes at most ${maxPacketBytes} (maximum packet size)`;
    return refused("MESSAGE_TOO_LARGE", reason);
  }
  return wire;
}

/** Rejects a topic that would end the connection or match several topics. */
function topicTrouble(topic: string): string | undefined {
  if (topic === "") return "is empty";
  if (/[+#]/.test(topic)) return "holds a wildcard (+ or #), which only subscriptions may";
  if (topic.startsWith("$")) return "belongs to the server ($…)";
  if (ILLEGAL.test(topic)) return "holds a control character or half a surrogate pair";
  return Buffer.byteLength(topic) > MAX_TEXT_BYTES ? `is longer than ${MAX_TEXT_BYTES} bytes` : undefined;
}

function legal(text: string): boolean {
  return !ILLEGAL.test(text) && (text.length * 3 <= MAX_TEXT_BYTES || Buffer.byteLength(text) <= MAX_TEXT_BYTES);
}

export function packetBytes({ topic, payload, properties }: Wire): number {
  const text = (value: string): number => 2 + Buffer.byteLength(value);
  let fields = 1 + text(properties.contentType);
  for (const [name, value] of Object.entries(properties.userProperties)) fields += 1 + text(name) + text(value);
  const packetId = 2;
  const rest = text(topic) + packetId + lengthBytes(fields) + fields + payload.length;
  return 1 + lengthBytes(rest) + rest;
}

function lengthBytes(length: number): number {
  return length < 0x80 ? 1 : length < 0x40_00 ? 2 : length < 0x20_00_00 ? 3 : 4;
}

function refused(code: string, reason: string): PublishFailed {
  return failed("message", code, reason, { retriable: false });
}

/**
 * Restores the published headers from the user properties of a consumed message
 * (`packet.properties.userProperties` of MQTT.js). Headers of other programs pass through; the last
 * of several values wins.
 */
export function decodeMqttHeaders(
  userProperties: Readonly<Record<string, string | readonly string[]>> | undefined,
): Record<string, string> {
  const entries = Object.entries(userProperties ?? {});
  return unpackHeaders(Object.fromEntries(entries.map(([name, value]) => [name, [value].flat().at(-1) ?? ""])));
}
