/**
 * rowpost: messages that commit with your transaction. Importing this loads no driver and no broker
 * client; those come with their own entries, such as `rowpost/mysql` and `rowpost/rocketmq`.
 *
 * @module
 */
export type {
  Broker,
  BrokerFeatures,
  BrokerRoutes,
  FailureScope,
  OutgoingMessage,
  PublishFailed,
  PublishNotStarted,
  PublishOptions,
  PublishResult,
  PublishSent,
} from "./brokers/broker.ts";
export { type MemoryBroker, type MemoryBrokerOptions, memory, type PublishedMessage } from "./brokers/memory.ts";
export { type RoutesOptions, type RouteTable, routes } from "./brokers/routes.ts";
export { type StdoutBrokerOptions, stdout } from "./brokers/stdout.ts";
export type { Database, DialectName, Doorbell, Session, SessionOptions } from "./databases/database.ts";
export type { LayoutColumns, TableLayout } from "./databases/sql/layout.ts";
export {
  createLayout,
  defaultLayout,
  type LayoutOptions,
  messageTableLayout,
  SHIPPED_LAYOUTS,
  tLocalMessageLayout,
} from "./databases/sql/layouts.ts";
export { type MigrationReport, migrate } from "./databases/sql/migrate.ts";
export type { Diagnosis, Severity } from "./doctor/diagnosis.ts";
export { type Examination, type ExamineOptions, examine } from "./doctor/examine.ts";
export type { DoctorStore, PlanStep, StatementPlan } from "./doctor/store.ts";
export {
  type BigIntIsNotJson,
  DEFAULT_LIMITS,
  HEADER_ATTEMPT,
  HEADER_ID,
  HEADER_KEY,
  HEADER_ORDERING_KEY,
  HEADER_TYPE,
  type JsonAble,
  type MessageLimits,
  type NewMessage,
} from "./message/message.ts";
export {
  type ConfirmRule,
  DEFAULT_RETRY_POLICY,
  type MessageInput,
  type MessageType,
  type MessageTypeOptions,
  messageType,
  type RetryPolicy,
  type TypedMessage,
} from "./message/message-type.ts";
export type { StandardIssue, StandardResult, StandardSchema } from "./message/standard-schema.ts";
export {
  MESSAGE_STATES,
  type MessageState,
  STATE_WORDS_ZH,
  TRANSITIONS,
  type Transition,
} from "./message/states.ts";
export type { AlertLease, AlertStore, LateMessages, NewSilence, Silence, StoredAlerts } from "./outbox/alerts.ts";
export type { ConfirmedType } from "./outbox/confirm-call.ts";
export type {
  Confirmation,
  ConfirmationResult,
  ConfirmationStatus,
} from "./outbox/confirmations.ts";
export type {
  ChangeByHand,
  ChangeConflict,
  ChangeKind,
  ChangeReport,
  ChangeTarget,
  CopyChange,
  CopyReport,
  CopyRequest,
  Explanation,
  HeldBy,
  ManyMessages,
  ManyPreview,
  ManyProgress,
  ManyReport,
  ManyRequest,
  MessageAdmin,
  MessageFilter,
  MessagePage,
  MessageSummary,
  OldestDue,
  OperatorAction,
  OutboxStatus,
  SeenMessage,
  StateCount,
  StateTotal,
  StoredMessage,
  Unconfirmed,
  UnconfirmedCount,
  UnconfirmedMessage,
} from "./outbox/message-admin.ts";
export type { EnqueueStatus } from "./outbox/message-writer.ts";
export type {
  AuditFilter,
  AuditRecord,
  AuditResult,
  BeforeImage,
  NewSession,
  OperationsStore,
  TableEstimate,
} from "./outbox/operations.ts";
export {
  createOutbox,
  type Enqueueable,
  type EnqueueableList,
  type EnqueueOptions,
  MESSAGES_PER_STATEMENT,
  type OnDuplicate,
  type Outbox,
  type OutboxOptions,
  TEXT_PER_STATEMENT,
} from "./outbox/outbox.ts";
export { FINDING_KINDS, type Finding, type FindingKind } from "./reconcile/finding.ts";
export type {
  ReconcileEffects,
  ReconcileInbox,
  ReconcileOptions,
  ReconcileProgress,
} from "./reconcile/options.ts";
export { type ReconcileReport, reconcile } from "./reconcile/reconcile.ts";
export type { UnknownConfirmation } from "./reconcile/store.ts";
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
export type {
  LeftMessages,
  RelayInstance,
  RelayReport,
  RelayStatus,
  ShardLease,
  SuspensionRule,
} from "./relay/store.ts";
export { type Clock, createSystemClock, systemClock } from "./runtime/clock.ts";
export {
  BrokerError,
  ConfigurationError,
  DatabaseUnavailableError,
  DuplicateMessageError,
  describeError,
  InvalidMessageError,
  MissingAwaitError,
  MissingPeerError,
  PermissionError,
  RowpostError,
  SchemaError,
  TransactionLostError,
  TransactionRequiredError,
} from "./runtime/errors.ts";
export { type Logger, silentLogger, stderrLogger } from "./runtime/logger.ts";
export { METRICS, type Metrics, silentMetrics } from "./runtime/metrics.ts";
export { createMetricsRegistry, type MetricsRegistry, type MetricsResponse } from "./runtime/metrics-registry.ts";
export type { Executor, QueryResult, Statement, Transaction } from "./transactions/executor.ts";
