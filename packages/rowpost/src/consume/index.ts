/**
 * rowpost/consume: consumers that hand each message of a broker to a handler once, through the
 * inbox, and acknowledge it after the commit.
 *
 * @module
 */

export { UnavailableError } from "../runtime/away.ts";
export { HandlerTimeoutError } from "../runtime/handler-timeout.ts";
export type { FailedEvent, HandledEvent, HandledMessageName, HandlingListeners } from "../runtime/handling-reports.ts";
export type { Closed, Consumption } from "./consumption.ts";
export { consumeKafka, type KafkaConsumeOptions } from "./kafka/index.ts";
export type { KafkajsConsumer } from "./kafka/kafkajs.ts";
export type { PlatformaticConsumer } from "./kafka/platformatic.ts";
export type { KafkaDelivered } from "./kafka/record.ts";
export type { DeliveredMessage } from "./message.ts";
export type { NatsConsumeConnection } from "./nats/connection.ts";
export { consumeNats, type NatsConsumeOptions } from "./nats/index.ts";
export type { NatsDelivered } from "./nats/message.ts";
export type { ConsumeOptions, Handler, HandlerContext, HandlerRetry, Park } from "./options.ts";
export { consumeRabbitmq, type RabbitmqConsumeConnection, type RabbitmqConsumeOptions } from "./rabbitmq/index.ts";
export type { RabbitmqDelivered } from "./rabbitmq/message.ts";
export { consumeRedis, type RedisConsumeOptions } from "./redis/index.ts";
export type { RedisDelivered } from "./redis/message.ts";
export { consumeRocketmq, type RocketmqConsumeOptions } from "./rocketmq/index.ts";
export type { RocketmqDelivered } from "./rocketmq/message.ts";
export type { NodeRequest, NodeResponse } from "./webhooks/body.ts";
export {
  consumeWebhooks,
  type WebhookAnswer,
  type WebhookConsumeOptions,
  type WebhookDelivered,
  type Webhooks,
} from "./webhooks/index.ts";
