import type { BrokerServer } from "./broker.ts";
import { openKafkaServer } from "./kafka.ts";
import { openNatsServer } from "./nats.ts";
import { openRabbitmqServer } from "./rabbitmq.ts";
import { openRedisServer } from "./redis.ts";
import { openRocketmqServer } from "./rocketmq.ts";

const OPENERS: Readonly<Record<string, (url: URL) => Promise<BrokerServer>>> = {
  "rocketmq:": openRocketmqServer,
  "amqp:": openRabbitmqServer,
  "kafka:": openKafkaServer,
  "nats:": openNatsServer,
  "redis:": openRedisServer,
};

/** Undefined for an unknown scheme. */
export function brokerOpenerOf(text: string): (() => Promise<BrokerServer>) | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const open = url === undefined ? undefined : OPENERS[url.protocol];
  return url === undefined || open === undefined ? undefined : () => open(url);
}

export const BROKER_FORMS: string = Object.keys(OPENERS)
  .map((scheme) => `${scheme}//host:port`)
  .join(", ");
