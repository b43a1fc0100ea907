/**
 * What is asked of a MySQL driver: connect, run a statement, hang up. mysql2 and mariadb are
 * brought to this shape by mysql2-driver.ts and mariadb-driver.ts; everything else of this folder
 * knows only this file.
 */
import type { QueryResult } from "../../transactions/executor.ts";

/** One open connection. */
export interface DriverConnection {
  /**
   * Runs one statement. Rows by column alias; BIGINT as text or bigint, instants as text.
   * `affected` counts matched rows. Rejects with the driver's own error; after `timeoutMs` without
   * an answer with one that `isAway` knows, and the connection must then be destroyed.
   */
  query(text: string, params: readonly unknown[], timeoutMs: number): Promise<QueryResult>;
  /** Cuts the socket at once; what waits for an answer fails. */
  destroy(): void;
  /** Says goodbye and closes. */
  end(): Promise<void>;
  /** Calls `listener` once when the connection is lost while nobody waits for an answer. */
  onLost(listener: (error: unknown) => void): void;
}

/** A driver with an address to connect to. */
export interface Driver {
  /** For logs: `mysql://host:port/database`, never a password. */
  readonly label: string;
  /**
   * A new connection of rowpost's own, never one that goes back to a pool. The signal ends the
   * attempt. `name`: for people, in the server's list of sessions.
   */
  connect(purpose: string, signal?: AbortSignal, name?: string): Promise<DriverConnection>;
  /**
   * The driver's own pool object for transactions of users: theirs, or one that this driver makes
   * at the first use.
   */
  pool(): Promise<unknown>;
  /** It is one that this driver makes: nobody else has its connections. */
  readonly ownsPool: boolean;
  /** See `Database`. */
  poolSize(): Promise<number | undefined>;
  /** Closes what this driver opened, at the latest after five seconds; a user's pool stays open. */
  close(): Promise<void>;
}
