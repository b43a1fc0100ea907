/**
 * rowpost/admin: operations for operators and consoles beside the relay. Inspecting messages and
 * changing them by hand, the audit, alerts, reconciling, and the doctor. The objects come from a
 * database: `database.messageAdmin({ layout })` and the like.
 *
 * @module
 */
export type { DialectName, Session, SessionOptions } from "../databases/database.ts";
export { MESSAGE_STATES, type MessageState, STATE_WORDS_ZH } from "../message/states.ts";
export type { RelayInstance, RelayStatus, ShardLease, SuspensionRule } from "../relay/store.ts";
export { METRICS } from "../runtime/metrics.ts";
export type { QueryResult, Statement } from "../transactions/executor.ts";
export type { AlertLease, AlertStore, LateMessages, NewSilence, Silence, StoredAlerts } from "./alerts.ts";
export type { Diagnosis, Severity } from "./doctor/diagnosis.ts";
export { type Examination, type ExamineOptions, examine } from "./doctor/examine.ts";
export type { DoctorStore, PlanStep, StatementPlan } from "./doctor/store.ts";
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
} from "./message-admin.ts";
export type {
  AuditFilter,
  AuditRecord,
  AuditResult,
  BeforeImage,
  NewSession,
  OperationsStore,
  TableEstimate,
} from "./operations.ts";
export { FINDING_KINDS, type Finding, type FindingKind } from "./reconcile/finding.ts";
export type {
  ReconcileEffects,
  ReconcileInbox,
  ReconcileOptions,
  ReconcileProgress,
} from "./reconcile/options.ts";
export { type ReconcileReport, reconcile } from "./reconcile/reconcile.ts";
export type { UnknownConfirmation } from "./reconcile/store.ts";
