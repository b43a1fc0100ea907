/** A consumer group on a Redis stream, one for each run. */
import { randomBytes } from "node:crypto";
import { redisFromUrl, redisOptionsFromUrl } from "rowpost/redis";
import { brokerLabel } from "../broker-url.ts";
import { redisClient } from "../clients/redis.ts";
import { consumeRedisStream } from "../consumers/redis.ts";
import type { StartConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";

/**
 * Parallel runs read the same stream with a group each; the last one removes the stream. A script,
 * so that no run begins in between.
 */
const REMOVE_GROUP = `
redis.call("XGROUP", "DESTROY", KEYS[1], ARGV[1])
if #redis.call("XINFO", "GROUPS", KEYS[1]) == 0 then redis.call("DEL", KEYS[1]) end`;

export const startRedisConsumer: StartConsumer = async (url, { atEnd, environment, orders }) => {
  const options = redisOptionsFromUrl(url, environment);
  const stream = options.streamOf?.(TOPIC) ?? TOPIC;
  const group = `rowpost_demo_${randomBytes(4).toString("hex")}`;
  const broker = redisFromUrl(url, environment);
  atEnd(() => broker.close());
  // First, because its advice is better than the client's.
  await broker.check();
  const client = redisClient(options, { lazy: true });
  atEnd(() => client.disconnect());
  atEnd(() => client.eval(REMOVE_GROUP, 1, stream, group));
  const place = { url, environment, topic: TOPIC, group };
  const consumption = await consumeRedisStream(place, { ...orders.options, fromBeginning: false });
  atEnd(() => consumption.close());
  return { broker, topic: TOPIC, label: `${brokerLabel(url)} stream ${stream}, group ${group}` };
};
