/** Confirmations from a stream of Redis, through ioredis. */
import { consumeRedis } from "rowpost/consume";
import { redisOptionsFromUrl } from "rowpost/redis";
import { redisClient } from "../clients/redis.ts";
import { consumeOptions, type OpenSource } from "./source.ts";

export const fromRedisStream: OpenSource = async ({ environment, group, topic, url }, parts) => {
  const options = redisOptionsFromUrl(url, environment);
  const client = redisClient(options, { lazy: true });
  const stream = options.streamOf?.(topic) ?? topic;
  return await consumeRedis({ ...consumeOptions(parts), client, group, streams: [stream] });
};
