/**
 * rowpost-nestjs: the outbox as an injectable of a NestJS application, the relay with its life
 * cycle, and methods that handle messages.
 *
 * @module
 */
export { RowpostConsumers } from "./consumer-host.ts";
export { RowpostHealthIndicator, type RowpostHealthResult } from "./health.ts";
export { type MessageContext, type MessageMethod, OnMessage, type OnMessageOptions } from "./on-message.ts";
export type {
  ConsumerParts,
  ModuleRelayOptions,
  RowpostAsyncOptions,
  RowpostOptions,
  RunningConsumer,
  StartConsumer,
} from "./options.ts";
export { RowpostModule } from "./rowpost.module.ts";
export {
  getConsumersToken,
  getHealthToken,
  getOutboxToken,
  getRelayToken,
  InjectOutbox,
  InjectRelay,
  Outbox,
  Relay,
} from "./tokens.ts";
