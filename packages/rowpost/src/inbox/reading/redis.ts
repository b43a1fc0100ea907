/** Redis Streams: entries as ioredis and node-redis give them. */
import { decodeRedisEntry } from "../../brokers/redis/entry.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn, textOf } from "./headers.ts";

/** An entry of XREADGROUP: its id, then names and values by turns. Texts, or Buffers. */
export type RedisStreamEntry = readonly [id: string | Uint8Array, fields: readonly (string | Uint8Array)[]];

/**
 * Identity of an entry, as XREADGROUP and XRANGE of ioredis give it (`xreadgroupBuffer` too). `id`
 * is that of the entry, as in the receipt. Throws `MissingIdentityError`.
 */
export function fromRedis([id, fields]: RedisStreamEntry): ReceivedMessage {
  const { headers } = decodeRedisEntry(fields);
  return identityIn("Redis", headers, { id: textOf(id) });
}
