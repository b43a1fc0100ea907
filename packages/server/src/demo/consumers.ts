import type { StartConsumer } from "./consumer.ts";

export const CONSUMERS: Readonly<Record<string, () => Promise<StartConsumer>>> = {
  rocketmq: async () => (await import("./rocketmq-consumer.ts")).startRocketmqConsumer,
  kafka: async () => (await import("./kafka-consumer.ts")).startKafkaConsumer,
  rabbitmq: async () => (await import("./rabbitmq-consumer.ts")).startRabbitmqConsumer,
  redis: async () => (await import("./redis-consumer.ts")).startRedisConsumer,
  queue: async () => (await import("./queue-consumer.ts")).startQueueConsumer,
  nats: async () => (await import("./nats-consumer.ts")).startNatsConsumer,
  mqtt: async () => (await import("./mqtt-consumer.ts")).startMqttConsumer,
  sqs: async () => (await import("./sqs-consumer.ts")).startSqsConsumer,
};
