/** What a dialect supplies for bulk operations. */
import type { BulkConflict, BulkKind, BulkState } from "../../outbox/bulk-operations.ts";
import type { OperatorAction } from "../../outbox/message-admin.ts";
import type { Statement } from "../../transactions/executor.ts";

/** A preview that nobody starts is forgotten after this long. */
export const PREVIEW_MS = 600_000;
/** What is over is forgotten after this long. */
export const HISTORY_MS: number = 90 * 86_400_000;

export interface NewOperation {
  readonly id: string;
  readonly kind: BulkKind;
  /** JSON. */
  readonly filter: string;
  /** Messages with higher ids came later, and are not meant. */
  readonly maxId: string;
  /** What is meant was looked for up to here; null: up to `maxId`. */
  readonly plannedId: string | null;
  readonly total: number;
  readonly author: string;
}

export interface BulkStatements {
  addOperation(operation: NewOperation): Statement;
  /** `messages`: JSON, pairs of id and lock_version. */
  addBatch(batch: { readonly id: string; readonly number: number; readonly messages: string }): Statement;
  /**
   * Aliases: id kind state filter max_id planned_id total changed conflicts vanished rate author
   * reason via error created_at started_at ended_at (ISO texts) until_in_ms.
   */
  readOperation(id: string): Statement;
  /** The same aliases; the newest first, without previews. */
  listOperations(limit: number): Statement;
  /** Of a preview of this author that is younger than {@link PREVIEW_MS}. */
  startOperation(request: {
    readonly id: string;
    readonly action: OperatorAction;
    readonly rate: number;
    readonly untilMs: number | null;
  }): Statement;
  /** Nobody works on it any more. One that is over has `error`, or none. */
  moveOperation(request: {
    readonly id: string;
    readonly from: readonly BulkState[];
    readonly to: BulkState;
    readonly error: string | null;
  }): Statement;
  /** Alias: id. Those that run and that `owner` has, or nobody; the oldest 100. */
  runningOperations(owner: string): Statement;
  /** Takes or keeps the lease of one that runs and that nobody else has; locks it. */
  holdOperation(request: { readonly id: string; readonly owner: string; readonly leaseMs: number }): Statement;
  /** Aliases: number messages. The first one that is left. */
  readBatch(id: string): Statement;
  deleteBatch(request: { readonly id: string; readonly number: number }): Statement;
  countOperation(request: {
    readonly id: string;
    readonly changed: number;
    readonly conflicts: number;
    readonly vanished: number;
  }): Statement;
  addConflicts(request: { readonly id: string; readonly conflicts: readonly BulkConflict[] }): Statement;
  /** Aliases: id state. */
  readConflicts(request: { readonly id: string; readonly afterId: string; readonly limit: number }): Statement;
  /** `total` grows by `count`. */
  planOperation(request: { readonly id: string; readonly plannedId: string | null; readonly count: number }): Statement;
  /** Alias: id. Locks what is to be forgotten: old previews, and what has long been over. */
  lapsedOperations(): Statement;
  deleteBatches(id: string): Statement;
  deleteConflicts(id: string): Statement;
  deleteOperation(id: string): Statement;
}
