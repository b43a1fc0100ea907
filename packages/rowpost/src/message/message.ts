/**
 * The message that a program enqueues, and the limits checked before any SQL.
 *
 * The identity of a message is (type, key), the unique pair biz_type / biz_key or message_type /
 * message_key of the `t_local_message` layouts. It never changes, goes to the consumer as the
 * header `rowpost-id`, and is compared byte for byte (rule: exact-bytes).
 */

/** A message to enqueue. */
export interface NewMessage<Body = unknown> {
  /**
   * Message type, 消息类型: what happened, such as `order.created`. 1 to 64 characters, no trailing
   * blank.
   */
  readonly type: string;
  /**
   * Message key, 业务幂等键: the business identity, such as an order number. 1 to 128 characters,
   * no trailing blank.
   */
  readonly key: string;
  /** Topic to publish to, 1 to 255 characters. */
  readonly topic: string;
  /**
   * JSON-able value by default. A string with `contentType: "text/…"` is sent as it is, a
   * Uint8Array as binary.
   */
  readonly body: Body;
  /**
   * Extra headers for the consumer; names and values are strings. Names starting with `rowpost-`
   * are reserved.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Messages with the same ordering key are published in order. 1 to 128 characters, never empty.
   */
  readonly orderingKey?: string | undefined;
  /**
   * Delays delivery by this many milliseconds, by the database's clock. At most one of `delayMs`,
   * `deliverAt`.
   */
  readonly delayMs?: number | undefined;
  /** Earliest delivery: a Date, or an ISO 8601 text with a zone. */
  readonly deliverAt?: Date | string | undefined;
  /**
   * Media type of the body. Default `application/json`; `application/octet-stream` for a
   * Uint8Array.
   */
  readonly contentType?: string | undefined;
  /**
   * The body is already a JSON text, such as `JSON.stringify` returns: it is checked and sent as it
   * is. Otherwise a text becomes a JSON string with quotes.
   */
  readonly jsonText?: boolean | undefined;
  /** System or code that wrote it (`created_by`). Default: the `createdBy` of the outbox. */
  readonly createdBy?: string | undefined;
}

/** Compiler message for a BigInt in a body: JSON has none, so pass it as a string. */
export interface BigIntIsNotJson {
  /** No value has it: the compiler prints the name. */
  readonly "a BigInt is not JSON: pass it as a string": never;
}

/** A body that JSON can carry; a BigInt in it does not compile. */
export type JsonAble<Body> = Body extends bigint
  ? BigIntIsNotJson
  : Body extends object
    ? Body extends Uint8Array | ((...given: never) => unknown) | { toJSON(): unknown }
      ? Body
      : { readonly [Name in keyof Body]: JsonAble<Body[Name]> }
    : Body;

/**
 * Limits of the default layout; narrower columns lower them. In characters, except `bodyBytes`,
 * which is UTF-8 bytes.
 */
export interface MessageLimits {
  /** Of `type`, in characters. */
  readonly type: number;
  /** Of `key`, in characters. */
  readonly key: number;
  /** Of `topic`, in characters. */
  readonly topic: number;
  /** Of `orderingKey`, in characters. */
  readonly orderingKey: number;
  /** Of `createdBy`, in characters. */
  readonly createdBy: number;
  /** Of the stored body, in UTF-8 bytes; binary is stored as base64. */
  readonly bodyBytes: number;
}

/** Limits of the default layout. RocketMQ accepts bodies up to 4 MiB. */
export const DEFAULT_LIMITS: MessageLimits = {
  type: 64,
  key: 128,
  topic: 255,
  orderingKey: 128,
  createdBy: 64,
  bodyBytes: 4_194_304,
};

/** Header with `type:key`, the identity for deduplication. */
export const HEADER_ID = "rowpost-id";
/** Header with the message type. */
export const HEADER_TYPE = "rowpost-type";
/** Header with the message key. */
export const HEADER_KEY = "rowpost-key";
/**
 * Header with the ordering key, if any, for brokers without a field for it: RabbitMQ, NATS, HTTP.
 */
export const HEADER_ORDERING_KEY = "rowpost-ordering-key";
/** Header with the number of the claim that produced this copy. */
export const HEADER_ATTEMPT = "rowpost-attempt";
