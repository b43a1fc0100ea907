/** An entry of a stream as a message. */
import { decodeRedisEntry } from "../../brokers/redis/entry.ts";
import type { ReceivedMessage } from "../../inbox/identity.ts";
import { fromRedis } from "../../inbox/reading/redis.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** An entry as it came. */
export interface RedisDelivered {
  /** Stream that it is in. */
  readonly stream: string;
  /** Its id. */
  readonly id: string;
  /** Names and values by turns. */
  readonly fields: readonly Uint8Array[];
}

/** Throws `MissingIdentityError`. */
export function redisMessage({ fields, id, stream }: RedisDelivered, given?: ReceivedMessage): DeliveredMessage {
  const identity = given ?? { ...fromRedis([id, fields]), topic: stream };
  const { body, contentType, headers, orderingKey } = decodeRedisEntry(fields);
  return deliveredMessage({
    identity,
    headers,
    body,
    contentType,
    orderingKey,
  });
}
