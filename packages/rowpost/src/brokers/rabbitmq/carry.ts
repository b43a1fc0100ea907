import { createHash } from "node:crypto";
import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import { describeError } from "../../runtime/errors.ts";
import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import type { AmqpProperties, AmqpReturn } from "./amqp.ts";
import { refusal } from "./failures.ts";
import type { RabbitmqRoute } from "./options.ts";

/** Names, routing keys and most properties are "short strings" with a one-byte length. */
const SHORT_STRING_BYTES = 255;
const CLIENT_TABLE_BYTES = 65_536;
/** Upper bound of frame, class, size, flags, five short strings, mode, priority and timestamp. */
const FRAME_REST_BYTES = 22 + 5 * 256 + 10;
const RECEIPT_LENGTH = 255;

export interface Address {
  readonly exchange: string;
  readonly routingKey: string;
}

export function addressOf(
  message: OutgoingMessage,
  route: (message: OutgoingMessage) => RabbitmqRoute,
): Address | PublishFailed {
  let exchange: unknown;
  let routingKey: unknown;
  try {
    // A mapping may return nothing in spite of its type.
    ({ exchange = "", routingKey } = route(message) ?? {});
  } catch (error) {
    return failed("message", "ROUTE_FAILED", `route of topic ${message.topic}: ${describeError(error)}`);
  }
  if (typeof exchange !== "string" || typeof routingKey !== "string") {
    const words = "route must return { routingKey }, and may name an exchange; both are texts";
    return refusal("ROUTE_INVALID", `topic ${message.topic}: ${words}`);
  }
  if (!isShort(exchange) || !isShort(routingKey)) {
    const words = "an exchange and a routing key may have 255 bytes each";
    return refusal("ROUTE_TOO_LONG", `topic ${message.topic}: ${words}, and have ${lengths(exchange, routingKey)}`);
  }
  return { exchange, routingKey };
}

function lengths(...texts: readonly string[]): string {
  return texts.map((text) => Buffer.byteLength(text)).join(" and ");
}

export interface Limits {
  readonly bodyBytes: number;
  /** Largest negotiated frame; all properties must fit into one. */
  readonly frameBytes: number;
}

/** Why a message cannot be sent: the server would end the channel, and neighbors with it. */
export function unsendable(message: OutgoingMessage, bytes: number, limits: Limits): PublishFailed | undefined {
  if (bytes > limits.bodyBytes) {
    const advice = "raise maxBodyBytes where the server's max_message_size is larger";
    return refusal("BODY_TOO_LARGE", `body of ${bytes} bytes, the limit is ${limits.bodyBytes}; ${advice}`);
  }
  if (!isShort(message.contentType)) {
    return refusal("CONTENT_TYPE_TOO_LONG", "the content type has more than the 255 bytes that AMQP allows");
  }
  return unsendableHeaders(message, Math.min(CLIENT_TABLE_BYTES, limits.frameBytes - FRAME_REST_BYTES));
}

function unsendableHeaders({ headers, orderingKey }: OutgoingMessage, limitBytes: number): PublishFailed | undefined {
  const ofKey = orderingKey === undefined ? 0 : 6 + HEADER_ORDERING_KEY.length + Buffer.byteLength(orderingKey);
  const fixed = 4 + ofKey;
  let table = fixed;
  for (const name in headers) {
    if (name === "CC" || name === "BCC") {
      const words = `RabbitMQ takes the header ${name} for a list of further routing keys; choose another name`;
      return refusal("HEADER_RESERVED", words);
    }
    if (!isShort(name)) {
      return refusal("HEADER_NAME_TOO_LONG", `the header ${name.slice(0, 60)}… has a name of more than 255 bytes`);
    }
    // At most 3 bytes for each UTF-16 unit; 6 for the lengths and the value's kind.
    table += 6 + 3 * (name.length + (headers[name]?.length ?? 0));
  }
  if (table <= limitBytes) return undefined;
  table = fixed;
  for (const [name, value] of Object.entries(headers)) table += 6 + Buffer.byteLength(name) + Buffer.byteLength(value);
  if (table <= limitBytes) return undefined;
  return refusal("HEADERS_TOO_LARGE", `headers of ${table} bytes, the limit is ${limitBytes}`);
}

/** `rowpost-id` is the message id, so that consumers can recognize duplicates. */
export function propertiesOf(
  message: OutgoingMessage,
  headers: AmqpProperties["headers"],
  nowMs: number,
): AmqpProperties {
  const properties: AmqpProperties = {
    mandatory: true,
    persistent: true,
    messageId: messageIdOf(message),
    contentType: message.contentType,
    timestamp: Math.floor(nowMs / 1_000),
    headers,
  };
  // 64 characters of 4 bytes each do not fit; the header rowpost-type always has the type.
  if (isShort(message.type)) properties.type = message.type;
  return properties;
}

/** As in the header `rowpost-id`, or its digest. The same for every attempt. */
function messageIdOf({ type, key }: OutgoingMessage): string {
  const id = `${type}:${key}`;
  return isShort(id) ? id : `sha256-${createHash("sha256").update(id).digest("base64url")}`;
}

const ATTEMPT = "rowpost-attempt";

/**
 * Identifies a returned message. The id alone is not enough, since relays of several tables may
 * share a broker.
 */
export function likenessOf(message: OutgoingMessage, { routingKey }: Address): string {
  return likeness(messageIdOf(message), message.headers[ATTEMPT], routingKey);
}

export function likenessOfReturned({ fields, properties }: AmqpReturn): string {
  return likeness(properties.messageId, properties.headers?.[ATTEMPT], fields.routingKey);
}

/** If two different messages got the same text, they would only be sent one after the other. */
function likeness(messageId: string | undefined, attempt: unknown, routingKey: string): string {
  return `${String(attempt)} ${routingKey} ${messageId}`;
}

export function contentOf(body: string | Uint8Array): Buffer {
  if (typeof body === "string") return Buffer.from(body);
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** `exchange/routing key#channel-number`: the number that the server confirmed on the channel. */
export function receiptOf({ exchange, routingKey }: Address, channel: string, deliveryTag: number): string {
  const sequence = `#${channel}-${deliveryTag}`;
  const place = `${exchange}/${routingKey}`;
  const room = RECEIPT_LENGTH - sequence.length;
  if (place.length <= room) return `${place}${sequence}`;
  // Does not cut a surrogate pair.
  return `${place.slice(0, room - 1).replace(/[\uD800-\uDBFF]$/, "")}…${sequence}`;
}

function isShort(text: string): boolean {
  return text.length * 3 <= SHORT_STRING_BYTES || Buffer.byteLength(text) <= SHORT_STRING_BYTES;
}
