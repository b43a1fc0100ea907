/** What the tests need of a driver or ORM. */

/** Work in a transaction: `tx` is the handle as the driver or ORM gives it, `insertOrder` writes a business row its own way. */
export type TransactionWork = (tx: unknown, insertOrder: (id: string) => Promise<unknown>) => Promise<void>;

/** A driver or ORM, connected. */
export interface Handles {
  /** Pool, client, data source: what is no transaction. */
  readonly root: unknown;
  /** Begins the driver's or ORM's own way, commits, and rolls back when the work throws. */
  transaction(work: TransactionWork): Promise<void>;
  /** A handle of the right kind with no transaction, where there is such a thing. */
  withoutTransaction?(work: (handle: unknown) => Promise<void>): Promise<void>;
  close(): Promise<unknown>;
}
