/** Port for MySQL drivers, implemented by mysql2-driver.ts and mariadb-driver.ts. */
import type { QueryResult } from "../../transactions/executor.ts";

export interface DriverConnection {
  /**
   * Runs one statement. Rows by column alias; BIGINT as text or bigint, instants as text.
   * `affected` counts matched rows. Rejects with the driver's error, or after `timeoutMs` with one
   * that `isAway` recognizes; the connection must then be destroyed.
   */
  query(text: string, params: readonly unknown[], timeoutMs: number): Promise<QueryResult>;
  /** Cuts the socket at once; pending statements fail. */
  destroy(): void;
  end(): Promise<void>;
  /** Calls `listener` once when the connection is lost while no statement is pending. */
  onLost(listener: (error: unknown) => void): void;
}

export interface Driver {
  /** For logs: `mysql://host:port/database`, never a password. */
  readonly label: string;
  /**
   * Opens a connection that never goes back to a pool. The signal ends the attempt. `name` appears
   * in the server's list of sessions.
   */
  connect(purpose: string, signal?: AbortSignal, name?: string): Promise<DriverConnection>;
  /** The user's pool, or one created at first use. */
  pool(): Promise<unknown>;
  /** Whether this driver created the pool. */
  readonly ownsPool: boolean;
  /** See `Database`. */
  poolSize(): Promise<number | undefined>;
  /** Closes what this driver opened, within five seconds. A user's pool stays open. */
  close(): Promise<void>;
}
