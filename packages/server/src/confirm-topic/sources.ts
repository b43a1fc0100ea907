/** Which brokers the confirmation topic may be on. */
import { brokerForms, brokerKind } from "../broker-url.ts";
import { InputError } from "../cli/arguments.ts";
import type { OpenSource } from "./source.ts";

const SOURCES: Readonly<Record<string, () => Promise<OpenSource>>> = {
  kafka: async () => (await import("./kafka.ts")).fromKafkaTopic,
  rabbitmq: async () => (await import("./rabbitmq.ts")).fromRabbitmqQueue,
  redis: async () => (await import("./redis.ts")).fromRedisStream,
  nats: async () => (await import("./nats.ts")).fromNatsStream,
  rocketmq: async () => (await import("./rocketmq.ts")).fromRocketmqTopic,
  queue: async () => (await import("./queue.ts")).fromQueueTopic,
};

/** Throws {@link InputError} for a broker that none can be read from. */
export function checkSource(url: string): void {
  const kind = brokerKind(url);
  if (kind in SOURCES) return;
  const instead = kind === "http" ? "; over HTTP consumers confirm with POST /confirmations" : "";
  throw new InputError(
    `--confirmations: nothing can be read from ${kind}${instead}; give --confirmations-broker ${brokerForms(Object.keys(SOURCES))}`,
  );
}

export const openSource: OpenSource = async (source, parts) => {
  const load = SOURCES[brokerKind(source.url)];
  if (load === undefined) throw new InputError(`${source.label}: no confirmations can be read from it`);
  return await (await load())(source, parts);
};
