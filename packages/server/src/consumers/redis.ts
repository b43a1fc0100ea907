import { type Consumption, consumeRedis } from "rowpost/consume";
import { redisOptionsFromUrl } from "rowpost/redis";
import { redisClient } from "../clients/redis.ts";
import type { CommonOptions, ConsumePlace } from "./place.ts";

export async function consumeRedisStream(
  { environment, group, topic, url }: ConsumePlace,
  options: CommonOptions & { readonly fromBeginning?: boolean },
): Promise<Consumption> {
  const settings = redisOptionsFromUrl(url, environment);
  const client = redisClient(settings, { lazy: true });
  const stream = settings.streamOf?.(topic) ?? topic;
  return await consumeRedis({ ...options, client, group, streams: [stream] });
}
