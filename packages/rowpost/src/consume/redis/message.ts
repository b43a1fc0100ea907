import { decodeRedisEntry } from "../../brokers/redis/entry.ts";
import type { ReceivedMessage } from "../../inbox/identity.ts";
import { fromRedis } from "../../inbox/reading/redis.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";

/** An entry as it was delivered. */
export interface RedisDelivered {
  /** Stream of the entry. */
  readonly stream: string;
  /** Id of the entry. */
  readonly id: string;
  /** Alternating names and values. */
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
