/** Store port for appends by relays, on sessions of rowpost's own. Types only. */
import type { Executor } from "../../transactions/executor.ts";

export interface RelayedStore {
  /** Throws `SchemaError` when the queue's tables are missing. */
  ready(): Promise<void>;
  /**
   * Begins, runs, commits. `CommitUnknownError`: it may have taken effect; after any other error it
   * did not.
   */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>;
  /** Deletes some source ids older than this and returns their number. */
  forgetSources(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
}
