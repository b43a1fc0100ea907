/** What a dialect supplies for alerts. */
import type { AlertLease, NewSilence } from "../../outbox/alerts.ts";
import type { Statement } from "../../transactions/executor.ts";

/** Rows of late messages that are looked at: 40 ms, in memory, for a look every 15 s. */
export const LATE_ROWS: number = 10_000;
/** Silences that are over are kept for so long. */
export const KEPT_SILENCE_MS: number = 30 * 86_400_000;

export interface AlertStatements {
  /** Adds the row of the table, when there is none. */
  addAlerts(): Statement;
  /** Affects the row when the lease is this owner's, or nobody's. */
  holdAlerts(lease: AlertLease): Statement;
  /** Affects the row when the lease is this owner's. */
  saveAlerts(request: AlertLease & { readonly state: string }): Statement;
  releaseAlerts(owner: string): Statement;
  /** Aliases: state (NULL: none yet), now_ms, saved_ms (NULL: never). */
  readAlerts(): Statement;
  /** Aliases: name, count, late_ms. Sent rows whose next_retry_at came this long ago, by type. */
  lateConfirmations(lateMs: number): Statement;
  /** Aliases as above. Rows in `sending` that were last changed this long ago, by topic. */
  lateSending(lateMs: number): Statement;
  /** Aliases: found (0: the queue's own tables are not where this connection leads). */
  findQueue(): Statement;
  /** Aliases: id rule_name subject author reason created_at ends_at (ISO texts) active (0, 1). */
  listSilences(limit: number): Statement;
  addSilence(
    request: NewSilence & { readonly id: string; readonly author: string; readonly reason: string },
  ): Statement;
  /** Affects it when it is active. */
  endSilence(id: string): Statement;
  /** Deletes those that ended long ago. */
  forgetSilences(): Statement;
}

/** Those of the state and its lease. */
export type KeptStatements = Omit<AlertStatements, keyof LateStatements | keyof SilenceStatements>;
export type LateStatements = Pick<AlertStatements, "lateConfirmations" | "lateSending" | "findQueue">;
export type SilenceStatements = Pick<AlertStatements, "listSilences" | "addSilence" | "endSilence" | "forgetSilences">;
