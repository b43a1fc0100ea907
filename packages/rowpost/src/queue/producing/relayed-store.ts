/** Store port for appends by relays. Types only. */
import type { Executor } from "../../transactions/executor.ts";

export interface RelayedStore {
  /** Throws `SchemaError` when the queue's tables are missing. */
  ready(): Promise<void>;
  /** After `CommitUnknownError` it may have taken effect; after any other error it did not. */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>;
  /** Returns the number of deleted source ids. */
  forgetSources(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
}
