import { unzipSync } from "node:zlib";
import { headersOf } from "../../brokers/rocketmq/carry.ts";
import type { ReceivedMessage } from "../../inbox/identity.ts";
import { fromRocketmq } from "../../inbox/reading/rocketmq.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** A message as it was delivered. */
export interface RocketmqDelivered {
  /** Topic of the message. */
  readonly topic: string;
  /** Id from the producer. */
  readonly messageId: string;
  /** Stored user properties. */
  readonly properties: Readonly<Record<string, string>>;
  /** Body, decompressed. */
  readonly body: Buffer;
  /** Tag, if it has one: the message type. */
  readonly tag: string | undefined;
  /** Index keys of the message. */
  readonly keys: readonly string[];
  /** Message group of a FIFO message: its ordering key. */
  readonly messageGroup: string | undefined;
  /** 1 for the first. */
  readonly deliveryAttempt: number;
}

export interface WireDelivered {
  readonly topic?: { readonly name?: string };
  readonly userProperties?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly systemProperties?: {
    readonly tag?: string;
    readonly keys?: readonly string[];
    readonly messageId?: string;
    readonly bodyEncoding?: string;
    readonly receiptHandle?: string;
    readonly messageGroup?: string;
    readonly deliveryAttempt?: number;
  };
}

export function rawOf({
  body = Buffer.alloc(0),
  systemProperties = {},
  topic,
  userProperties = {},
}: WireDelivered): RocketmqDelivered {
  const { bodyEncoding, deliveryAttempt = 1, keys = [], messageGroup, messageId = "", tag } = systemProperties;
  return {
    topic: topic?.name ?? "",
    messageId,
    properties: userProperties,
    body: bodyEncoding === "GZIP" ? unzipped(body) : body,
    tag: tag || undefined,
    keys,
    messageGroup: messageGroup || undefined,
    deliveryAttempt,
  };
}

/**
 * Classic producers label zlib as gzip. A body that is neither stays unchanged, so that its handler
 * fails and not the consumer.
 */
function unzipped(body: Buffer): Buffer {
  try {
    return unzipSync(body, { maxOutputLength: MOST_BYTES });
  } catch {
    return body;
  }
}

/** Sixteen times the server's limit of a compressed body. */
const MOST_BYTES = 67_108_864;

/** Throws `MissingIdentityError`. */
export function rocketmqMessage(
  raw: RocketmqDelivered,
  identity: ReceivedMessage = fromRocketmq(raw),
): DeliveredMessage {
  return deliveredMessage({
    identity,
    headers: headersOf(Object.entries(raw.properties)),
    body: raw.body,
    orderingKey: raw.messageGroup,
  });
}
