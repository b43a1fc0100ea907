/**
 * What a message is: the shape that a program enqueues, and the limits that are checked before any
 * SQL.
 *
 * The identity of a message is (type, key): the seeds' unique pair biz_type / biz_key and
 * message_type / message_key. It never changes, goes to the consumer as the header `rowpost-id`,
 * and is compared byte for byte (rule: exact-bytes).
 */

/** A message to be enqueued. */
export interface NewMessage<Body = unknown> {
  /**
   * Message type, 消息类型: what happened, such as `order.created`. 1 to 64 characters, no blank at
   * the end.
   */
  readonly type: string;
  /**
   * Message key, 业务幂等键: the business identity, such as an order number. 1 to 128 characters,
   * no blank at the end.
   */
  readonly key: string;
  /** Topic that it is published to, 1 to 255 characters. */
  readonly topic: string;
  /**
   * JSON-able value by default. A string with `contentType: "text/…"` goes as it is; a Uint8Array
   * goes as binary.
   */
  readonly body: Body;
  /**
   * Extra headers for the consumer; names and values are strings. Names that begin with `rowpost-`
   * are reserved.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Messages with equal ordering keys are published in their order. 1 to 128 characters; never
   * empty.
   */
  readonly orderingKey?: string | undefined;
  /**
   * Not before this many milliseconds from now, by the database's clock. At most one of `delayMs`,
   * `deliverAt`.
   */
  readonly delayMs?: number | undefined;
  /** Not before this instant: a Date, or an ISO 8601 text with a zone. */
  readonly deliverAt?: Date | string | undefined;
  /**
   * Media type of the body. Default `application/json`; `application/octet-stream` for a
   * Uint8Array.
   */
  readonly contentType?: string | undefined;
  /**
   * The body is a JSON text already, such as `JSON.stringify` makes: it goes as it stands, once it
   * was seen to be JSON. Without this a text is a JSON string, quotes and all.
   */
  readonly jsonText?: boolean | undefined;
  /** System or code that wrote it (`created_by`). Default: the `createdBy` of the outbox. */
  readonly createdBy?: string | undefined;
}

/** What the compiler says of a BigInt in a body: JSON has none, so it is passed as a string. */
export interface BigIntIsNotJson {
  /** No value has it: the name is what the compiler prints. */
  readonly "a BigInt is not JSON: pass it as a string": never;
}

/** A body as JSON can carry it; a BigInt in it does not compile. */
export type JsonAble<Body> = Body extends bigint
  ? BigIntIsNotJson
  : Body extends object
    ? Body extends Uint8Array | ((...given: never) => unknown) | { toJSON(): unknown }
      ? Body
      : { readonly [Name in keyof Body]: JsonAble<Body[Name]> }
    : Body;

/**
 * Limits of the default layout; a layout with narrower columns lowers them. Characters, but
 * `bodyBytes` is bytes of UTF-8.
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
  /** Of the body as stored, in bytes of UTF-8; bytes are stored as base64. */
  readonly bodyBytes: number;
}

/** Limits of the default layout. 4 MiB is what RocketMQ accepts for one body. */
export const DEFAULT_LIMITS: MessageLimits = {
  type: 64,
  key: 128,
  topic: 255,
  orderingKey: 128,
  createdBy: 64,
  bodyBytes: 4_194_304,
};

/** Header with `type:key`, the identity that consumers deduplicate by. */
export const HEADER_ID = "rowpost-id";
/** Header with the message type. */
export const HEADER_TYPE = "rowpost-type";
/** Header with the message key. */
export const HEADER_KEY = "rowpost-key";
/**
 * Header with the ordering key, where the message has one and the broker has no field for it:
 * RabbitMQ, NATS, HTTP.
 */
export const HEADER_ORDERING_KEY = "rowpost-ordering-key";
/** Header with the number of the claim that this copy comes from. */
export const HEADER_ATTEMPT = "rowpost-attempt";
