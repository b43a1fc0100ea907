/** The consumers that the demo brings, by the kind of broker; HTTP needs no broker. */
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";

/** Starts a consumer at a broker's URL. */
type StartConsumer = (url: string, parts: ConsumerParts) => Promise<DemoConsumer>;

export const CONSUMERS: Readonly<Record<string, StartConsumer>> = {
  rocketmq: async (url, parts) => (await import("./rocketmq-consumer.ts")).startRocketmqConsumer(url, parts),
  "rocketmq-classic": async (url, parts) =>
    (await import("./rocketmq-classic-consumer.ts")).startRocketmqClassicConsumer(url, parts),
  kafka: async (url, parts) => (await import("./kafka-consumer.ts")).startKafkaConsumer(url, parts),
  rabbitmq: async (url, parts) => (await import("./rabbitmq-consumer.ts")).startRabbitmqConsumer(url, parts),
  redis: async (url, parts) => (await import("./redis-consumer.ts")).startRedisConsumer(url, parts),
  queue: async (url, parts) => (await import("./queue-consumer.ts")).startQueueConsumer(url, parts),
  nats: async (url, parts) => (await import("./nats-consumer.ts")).startNatsConsumer(url, parts),
  mqtt: async (url, parts) => (await import("./mqtt-consumer.ts")).startMqttConsumer(url, parts),
  sqs: async (url, parts) => (await import("./sqs-consumer.ts")).startSqsConsumer(url, parts),
};
