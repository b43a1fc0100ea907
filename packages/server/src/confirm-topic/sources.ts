import { brokerForms, brokerKind } from "../broker-url.ts";
import type { Consume } from "../consumers/place.ts";
import { InputError } from "../failure.ts";
import { consumeOptions, type OpenSource } from "./source.ts";

const CONSUMERS: Readonly<Record<string, () => Promise<Consume>>> = {
  kafka: async () => (await import("../consumers/kafka.ts")).consumeKafkaTopic,
  rabbitmq: async () => (await import("../consumers/rabbitmq.ts")).consumeRabbitmqQueue,
  redis: async () => (await import("../consumers/redis.ts")).consumeRedisStream,
  nats: async () => (await import("../consumers/nats.ts")).consumeNatsStream,
  rocketmq: async () => (await import("../consumers/rocketmq.ts")).consumeRocketmqTopic,
};

const KINDS = [...Object.keys(CONSUMERS), "queue"];

/** Throws {@link InputError} for a broker that none can be read from. */
export function checkSource(url: string): void {
  const kind = brokerKind(url);
  if (KINDS.includes(kind)) return;
  const instead = kind === "http" ? "; over HTTP consumers confirm with POST /confirmations" : "";
  throw new InputError(
    `--confirmations: nothing can be read from ${kind}${instead}; give --confirmations-broker ${brokerForms(KINDS)}`,
  );
}

export const openSource: OpenSource = async (source, parts) => {
  const kind = brokerKind(source.url);
  if (kind === "queue") return await (await import("./queue.ts")).fromQueueTopic(source, parts);
  const load = CONSUMERS[kind];
  if (load === undefined) throw new InputError(`${source.label}: no confirmations can be read from it`);
  return await (await load())(source, consumeOptions(parts));
};
