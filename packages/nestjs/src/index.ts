/**
 * rowpost-nestjs: the outbox as an injectable of a NestJS application, and the relay with its life
 * cycle.
 *
 * @module
 */
export { RowpostHealthIndicator, type RowpostHealthResult } from "./health.ts";
export type { ModuleRelayOptions, RowpostAsyncOptions, RowpostOptions } from "./options.ts";
export { RowpostModule } from "./rowpost.module.ts";
export { getHealthToken, getOutboxToken, getRelayToken, InjectOutbox, InjectRelay, Outbox, Relay } from "./tokens.ts";
