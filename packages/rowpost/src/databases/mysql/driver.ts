/** Port for MySQL drivers, implemented by mysql2-driver.ts and mariadb-driver.ts. */
import type { QueryResult } from "../../transactions/executor.ts";

/** One open connection. */
export interface DriverConnection {
  /**
   * Runs one statement. Rows by column alias; BIGINT as text or bigint, instants as text.
   * `affected` counts matched rows. Rejects with the driver's error, or after `timeoutMs` with one
   * that `isAway` recognizes; the connection must then be destroyed.
   */
  query(text: string, params: readonly unknown[], timeoutMs: number): Promise<QueryResult>;
  /** Cuts the socket at once; pending statements fail. */
  destroy(): void;
  /** Closes the connection gracefully. */
  end(): Promise<void>;
  /** Calls `listener` once when the connection is lost while no statement is pending. */
  onLost(listener: (error: unknown) => void): void;
}

/** A driver with an address to connect to. */
export interface Driver {
  /** For logs: `mysql://host:port/database`, never a password. */
  readonly label: string;
  /**
   * Opens a connection that never goes back to a pool. The signal ends the attempt. `name` appears
   * in the server's list of sessions.
   */
  connect(purpose: string, signal?: AbortSignal, name?: string): Promise<DriverConnection>;
  /** The driver's pool object for users' transactions: the user's, or one created at first use. */
  pool(): Promise<unknown>;
  /** Whether this driver created the pool, so that no other code uses its connections. */
  readonly ownsPool: boolean;
  /** See `Database`. */
  poolSize(): Promise<number | undefined>;
  /** Closes what this driver opened, within five seconds. A user's pool stays open. */
  close(): Promise<void>;
}
