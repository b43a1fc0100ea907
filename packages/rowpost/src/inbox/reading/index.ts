/** Reads the identity of a message from each broker's client. */
export { fromHeaders, type HeaderValue, MissingIdentityError } from "./headers.ts";
export { fromKafka, type KafkaHeaders, type KafkaPayload, type KafkaRecord } from "./kafka.ts";
export { fromMqtt, type MqttPacket } from "./mqtt.ts";
export { fromNats, type NatsMessage } from "./nats.ts";
export { fromQueue, type QueuedIdentity } from "./queue.ts";
export { fromRabbitmq, type RabbitmqMessage } from "./rabbitmq.ts";
export { fromRedis, type RedisStreamEntry } from "./redis.ts";
export { fromRocketmq, type RocketmqMessage } from "./rocketmq.ts";
export { fromSqs, type SqsMessage } from "./sqs.ts";
export { fromWebhook, type WebhookHeaders } from "./webhook.ts";
