/** Redis Streams: entries of ioredis and node-redis. */
import { decodeRedisEntry } from "../../brokers/redis/entry.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn, textOf } from "./headers.ts";

/** An entry of XREADGROUP: its id, then alternating names and values, as texts or Buffers. */
export type RedisStreamEntry = readonly [id: string | Uint8Array, fields: readonly (string | Uint8Array)[]];

/**
 * Identity of an entry from XREADGROUP and XRANGE of ioredis (also `xreadgroupBuffer`). `id` is the
 * entry's, as in the receipt. Throws `MissingIdentityError`.
 */
export function fromRedis([id, fields]: RedisStreamEntry): ReceivedMessage {
  const { headers } = decodeRedisEntry(fields);
  return identityIn("Redis", headers, { id: textOf(id) });
}
