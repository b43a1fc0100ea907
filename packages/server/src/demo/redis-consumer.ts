/**
 * A real consumer group on a Redis stream, one for each run: reads, handles the orders,
 * acknowledges.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { fromRedis, type RedisStreamEntry } from "rowpost/inbox";
import { redisFromUrl, redisOptionsFromUrl } from "rowpost/redis";
import { brokerLabel } from "../broker-url.ts";
import { CommandFailure } from "../cli/failure.ts";
import { redisClient } from "../clients/redis.ts";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const CONSUMER = "demo";
const BATCH = 200;
const WAIT_MS = 1_000;

/**
 * Runs side by side read the same stream, each with a group of its own; the last one removes it. In
 * one step, so that no run begins in between.
 */
const REMOVE_GROUP = `
redis.call("XGROUP", "DESTROY", KEYS[1], ARGV[1])
if #redis.call("XINFO", "GROUPS", KEYS[1]) == 0 then redis.call("DEL", KEYS[1]) end`;

/** Where a run reads. */
interface Place {
  readonly reader: Redis;
  readonly stream: string;
  readonly group: string;
}

/** Makes stream and group where they are missing, and begins to read. */
export async function startRedisConsumer(url: string, parts: ConsumerParts): Promise<DemoConsumer> {
  const { orders, onTrouble } = parts;
  const options = redisOptionsFromUrl(url, parts.environment);
  const broker = redisFromUrl(url, parts.environment);
  try {
    await broker.check();
  } catch (error) {
    await broker.close();
    throw error;
  }
  const place: Place = {
    reader: redisClient(options, { lazy: false }),
    stream: options.streamOf?.(TOPIC) ?? TOPIC,
    group: `rowpost_demo_${randomBytes(4).toString("hex")}`,
  };
  const { reader, stream, group } = place;
  let closed = false;

  async function read(): Promise<void> {
    let from = ">";
    while (!closed) {
      try {
        const entries = await readBatch(place, from);
        if (entries.length === 0) from = ">";
        await Promise.all(entries.map((entry) => orders.receive(() => fromRedis(entry))));
        if (entries.length > 0) await reader.xack(stream, group, ...entries.map(([id]) => String(id)));
      } catch (error) {
        if (closed) return;
        onTrouble(`consumer: ${error instanceof Error ? error.message : String(error)}`);
        await sleep(200);
        // What was delivered into the connection that broke is asked for again.
        from = "0";
      }
    }
  }

  try {
    await makeGroup(place);
  } catch (error) {
    reader.disconnect();
    await broker.close();
    throw error;
  }
  const reading = read();
  return {
    broker,
    topic: TOPIC,
    label: `${brokerLabel(url)} stream ${stream}, group ${group}`,
    trouble: new Map(),
    async close() {
      closed = true;
      await broker.close();
      await reading;
      await reader.eval(REMOVE_GROUP, 1, stream, group).catch(() => undefined);
      reader.disconnect();
    },
  };
}

async function makeGroup({ reader, stream, group }: Place): Promise<void> {
  try {
    await reader.xgroup("CREATE", stream, group, "$", "MKSTREAM");
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new CommandFailure(`Redis does not make a consumer group on the stream ${stream}: ${words}`, { cause });
  }
}

async function readBatch({ reader, stream, group }: Place, from: string): Promise<RedisStreamEntry[]> {
  const streams = await reader.xreadgroupBuffer(
    "GROUP",
    group,
    CONSUMER,
    "COUNT",
    BATCH,
    "BLOCK",
    WAIT_MS,
    "STREAMS",
    stream,
    from,
  );
  const [, entries] = streams?.[0] ?? [];
  return (entries ?? []).map(([id, fields]) => [id.toString(), fields ?? []]);
}
