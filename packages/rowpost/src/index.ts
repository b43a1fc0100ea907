/**
 * rowpost: messages that commit with your transaction, and the relay that publishes them. Importing
 * this loads no driver and no broker client; those have their own entries, such as `rowpost/mysql`
 * and `rowpost/rocketmq`. `rowpost/admin` is for operators and consoles.
 *
 * @module
 */
export type {
  Broker,
  BrokerFeatures,
  OutgoingMessage,
  PublishOptions,
  PublishResult,
} from "./brokers/broker.ts";
export { type MemoryBroker, type MemoryBrokerOptions, memory, type PublishedMessage } from "./brokers/memory.ts";
export { type RoutesOptions, type RouteTable, routes } from "./brokers/routes.ts";
export { type StdoutBrokerOptions, stdout } from "./brokers/stdout.ts";
export type { Database } from "./databases/database.ts";
export type { LayoutColumns, TableLayout } from "./databases/sql/layout.ts";
export { createLayout, defaultLayout, type LayoutOptions, SHIPPED_LAYOUTS } from "./databases/sql/layouts.ts";
export { type MigrationReport, migrate } from "./databases/sql/migrate.ts";
export type { JsonAble, MessageLimits, NewMessage } from "./message/message.ts";
export {
  type ConfirmRule,
  type MessageInput,
  type MessageType,
  type MessageTypeOptions,
  messageType,
  type RetryPolicy,
  type TypedMessage,
} from "./message/message-type.ts";
export type { StandardSchema } from "./message/standard-schema.ts";
export type { ConfirmedType } from "./outbox/confirm-call.ts";
export type { Confirmation, ConfirmationResult } from "./outbox/confirmations.ts";
export type { EnqueueStatus } from "./outbox/message-writer.ts";
export {
  createOutbox,
  type Enqueueable,
  type EnqueueableList,
  type EnqueueOptions,
  type Outbox,
  type OutboxOptions,
} from "./outbox/outbox.ts";
export type { EventMessage, RelayEvents } from "./relay/events.ts";
export type { RelayMessageType, RelayOptions, RetentionOptions } from "./relay/options.ts";
export {
  createRelay,
  type DrainOptions,
  type DrainReport,
  type Relay,
  type RelayHealth,
  type StopReport,
  type TickReport,
} from "./relay/relay.ts";
export type { RelayCounts } from "./relay/reports.ts";
export type { LeftMessages, RelayReport } from "./relay/store.ts";
export type { Clock } from "./runtime/clock.ts";
export {
  BrokerError,
  ConfigurationError,
  DatabaseUnavailableError,
  DuplicateMessageError,
  describeError,
  InvalidMessageError,
  MissingAwaitError,
  PermissionError,
  RowpostError,
  SchemaError,
  TransactionLostError,
  TransactionRequiredError,
} from "./runtime/errors.ts";
export { type Logger, silentLogger } from "./runtime/logger.ts";
export { type Metrics, silentMetrics } from "./runtime/metrics.ts";
export { createMetricsRegistry, type MetricsRegistry } from "./runtime/metrics-registry.ts";
export type { Transaction } from "./transactions/executor.ts";
