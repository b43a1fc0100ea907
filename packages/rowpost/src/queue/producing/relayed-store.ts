/** The store port of what relays append, on sessions of rowpost's own. Types only. */
import type { Executor } from "../../transactions/executor.ts";

export interface RelayedStore {
  /** Throws `SchemaError` where the queue's tables are missing. */
  ready(): Promise<void>;
  /**
   * Begins, runs, commits. `CommitUnknownError`: perhaps it took effect; any other error: it did
   * not.
   */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>;
  /** Forgets some source ids that are older than this; how many. */
  forgetSources(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
}
