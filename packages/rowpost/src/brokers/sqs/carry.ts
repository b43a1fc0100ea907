/**
 * A message as an entry of a SendMessageBatch. Nothing here throws, because other programs write
 * into the table too and a topic, key or header may hold any character.
 */
import { createHash } from "node:crypto";
import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { packHeaders, unpackHeaders } from "../publishing/packed-headers.ts";
import type { Entry } from "./client.ts";

const CONTENT_TYPE = "content-type";
/** Value `base64` if the body is. */
const ENCODING = "rowpost-encoding";
const JSON_TYPE = "application/json";
const MOST_ATTRIBUTES = 10;

/** Characters that SQS refuses: those outside of XML. */
const ILLEGAL = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;
const PLAIN_NAME = /^(?!aws\.|amazon\.)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/i;
const PLAIN_ID = /^[A-Za-z0-9!"#$%&'()*+,\-./:;<=>?@[\\\]^_`{|}~]{1,128}$/;

/** An entry without its number in the request, and its size as SQS counts it. */
export interface Wire {
  readonly entry: Omit<Entry, "Id">;
  readonly bytes: number;
}

export function encode(message: OutgoingMessage, isFifo: boolean, maxMessageBytes: number): Wire | PublishFailed {
  const { body, contentType, headers } = message;
  const isPlain = typeof body === "string" && !ILLEGAL.test(body);
  const text = isPlain ? body : Buffer.from(body).toString("base64");
  if (text === "") return refused("EMPTY_BODY", "SQS takes no message without a body; give it one, such as {}");
  const own: Record<string, string> = isPlain ? {} : { [ENCODING]: "base64" };
  if (contentType !== JSON_TYPE && contentType !== "" && !ILLEGAL.test(contentType)) own[CONTENT_TYPE] = contentType;
  const packed = packHeaders(headers, {
    most: MOST_ATTRIBUTES - Object.keys(own).length,
    fits: (name, value) =>
      PLAIN_NAME.test(name) && name.length <= 256 && value !== "" && !ILLEGAL.test(value) && !isOurs(name),
  });
  let bytes = Buffer.byteLength(text);
  const attributes: [string, Entry["MessageAttributes"][string]][] = [];
  for (const [name, value] of Object.entries({ ...packed, ...own })) {
    bytes += name.length + "String".length + Buffer.byteLength(value);
    attributes.push([name, { DataType: "String", StringValue: value }]);
  }
  if (bytes > maxMessageBytes) {
    const reason = `body and attributes have ${bytes} bytes; at most ${maxMessageBytes} are allowed (maxMessageBytes)`;
    return refused("MESSAGE_TOO_LARGE", reason);
  }
  const entry = { MessageBody: text, MessageAttributes: Object.fromEntries(attributes) };
  return { entry: isFifo ? { ...entry, ...fifoIds(message) } : entry, bytes };
}

const isOurs = (name: string): boolean => name.toLowerCase() === CONTENT_TYPE || name === ENCODING;

/**
 * The deduplication id is a hash of type and key, which may be longer and hold any character; the
 * same on every attempt. A resent message gets another one.
 */
function fifoIds(message: OutgoingMessage): Pick<Entry, "MessageGroupId" | "MessageDeduplicationId"> {
  const { type, key, orderingKey, resend, attempt } = message;
  const id = hashOf(resend === true ? [type, key, attempt] : [type, key]);
  const group = orderingKey !== undefined && PLAIN_ID.test(orderingKey) ? orderingKey : hashOf([orderingKey ?? id]);
  return { MessageGroupId: group, MessageDeduplicationId: id };
}

function hashOf(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

export function queueTrouble(topic: string, name: string): PublishFailed | undefined {
  if (/^(?=.{1,80}$)[A-Za-z0-9_-]+(?:\.fifo)?$/.test(name)) return undefined;
  return refused(
    "ILLEGAL_QUEUE",
    `the topic "${topic}" makes the SQS queue "${name}"; a name has 1 to 80 letters, digits, - and _, and may end with .fifo: map it with the option queue`,
  );
}

function refused(code: string, reason: string): PublishFailed {
  return failed("message", code, reason, { retriable: false });
}

/** A message from ReceiveMessage with all its attributes. */
export interface SqsMessage {
  /** The receipt. */
  readonly MessageId?: string | undefined;
  /** As in SQS, perhaps base64. */
  readonly Body?: string | undefined;
  /** The headers; absent if they were not requested. */
  readonly MessageAttributes?: Readonly<Record<string, { readonly StringValue?: string | undefined }>> | undefined;
}

/** Restores the published message: body, headers, content type. */
export function decodeSqsMessage({ Body = "", MessageAttributes = {} }: SqsMessage): {
  readonly body: Uint8Array;
  readonly headers: Record<string, string>;
  readonly contentType: string;
} {
  const texts = Object.entries(MessageAttributes).map(([name, { StringValue = "" }]) => [name, StringValue] as const);
  const { [ENCODING]: encoding, [CONTENT_TYPE]: contentType = JSON_TYPE, ...rest } = Object.fromEntries(texts);
  const body = Buffer.from(Body, encoding === "base64" ? "base64" : "utf8");
  return { body, headers: unpackHeaders(rest), contentType };
}
