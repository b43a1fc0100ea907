/**
 * Port of the console: sessions, the audit of actions done and denied, and the size of the table.
 * Implemented by databases/sql.
 */

import type { MessageState } from "../message/states.ts";

/**
 * Result of an action. `conflict`: a message had changed; `denied`: not allowed. `begun`: follows
 * in separate transactions, and another entry has the result; `cancelled` and `failed` occur for
 * changes of many messages.
 */
export type AuditResult = "done" | "conflict" | "denied" | "begun" | "cancelled" | "failed";

/** A message before a change by hand. */
export interface BeforeImage {
  /** Its id. */
  readonly id: string;
  /** Its state. */
  readonly state: MessageState | "unknown";
  /** Undefined without lock_version in the layout. */
  readonly lockVersion?: string | undefined;
  /** The first 200 characters. */
  readonly failReason: string | null;
}

/** An entry of the audit table. */
export interface AuditRecord {
  /** Grows with time. */
  readonly id: string;
  /** When, ISO 8601 UTC. */
  readonly at: string;
  /** Author. */
  readonly author: string;
  /** `cli`, `console`, `api`; null: from code. */
  readonly via: string | null;
  /** `retry`, `suspend`, `resume`, `archive`, `many retry`, `login`, … */
  readonly action: string;
  /** Reason, in the author's words. */
  readonly reason: string;
  /** Result of the action. */
  readonly result: AuditResult;
  /** Number of changed messages. */
  readonly changed: number;
  /** Their ids. */
  readonly ids: readonly string[];
  /** The messages before the change. */
  readonly before: readonly BeforeImage[];
  /** Other subjects of the entry: a rule, a topic, a route. */
  readonly details: unknown;
}

/** Selects entries. Fields are ANDed. */
export interface AuditFilter {
  /** Exact author. */
  readonly author?: string | undefined;
  /** Exact action. */
  readonly action?: string | undefined;
  /** Exact result. */
  readonly result?: AuditResult | undefined;
}

/** A session of the console. */
export interface NewSession {
  /** SHA-256 of the browser's token, in hex: reading the table grants no access. */
  readonly hash: string;
  /** Its user, as JSON. */
  readonly holder: string;
  /** Ends after this long in any case. */
  readonly lifeMs: number;
}

/** Size of the message table, and the database's clock. */
export interface TableEstimate {
  /**
   * Approximate number of messages, finished ones included; undefined: the server has no statistics
   * yet.
   */
  readonly messages: number | undefined;
  /** ISO 8601 UTC. */
  readonly clock: string;
}

/** What the console keeps in the database besides messages. */
export interface OperationsStore {
  /** Entries, newest first; at most 1,000. */
  audit(request: {
    readonly filter: AuditFilter;
    readonly limit: number;
    readonly beforeId?: string | undefined;
  }): Promise<AuditRecord[]>;
  /**
   * Adds an entry about an action that changes no message. Entries are never changed or deleted.
   */
  record(entry: {
    readonly author: string;
    readonly via: string;
    readonly action: string;
    readonly reason: string;
    readonly result: AuditResult;
    readonly details?: unknown;
  }): Promise<void>;
  /** Adds a session and deletes ended ones. */
  openSession(session: NewSession): Promise<void>;
  /** The holder of this session; undefined: no such session, ended, or idle for `idleMs`. */
  readSession(hash: string, idleMs: number): Promise<string | undefined>;
  /** Ends the session. */
  endSession(hash: string): Promise<void>;
  /** From the server's statistics; reads only the first and the last message. */
  estimate(): Promise<TableEstimate>;
  /** Closes its connections. */
  close(): Promise<void>;
}
