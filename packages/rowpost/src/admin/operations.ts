/**
 * The console's port: who is logged in, what people did or were not allowed to do, and how large
 * the table is. Implemented by databases/sql.
 */

import type { MessageState } from "../message/states.ts";

/**
 * What became of it: `conflict`: a message had changed, `denied`: they may not. `begun`: it is
 * about to be done in transactions of its own, and another entry says what became of it; of a
 * change of many messages `cancelled` and `failed` too.
 */
export type AuditResult = "done" | "conflict" | "denied" | "begun" | "cancelled" | "failed";

/** A message as it was before a change by hand. */
export interface BeforeImage {
  /** Its id. */
  readonly id: string;
  /** Its state. */
  readonly state: MessageState | "unknown";
  /** Undefined where the layout has no lock_version. */
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
  /** Who. */
  readonly author: string;
  /** `cli`, `console`, `api`; null: from code. */
  readonly via: string | null;
  /** `retry`, `suspend`, `resume`, `archive`, `many retry`, `login`, … */
  readonly action: string;
  /** Why, in their own words. */
  readonly reason: string;
  /** What became of it. */
  readonly result: AuditResult;
  /** How many messages were changed. */
  readonly changed: number;
  /** Which ones. */
  readonly ids: readonly string[];
  /** The messages as they were before. */
  readonly before: readonly BeforeImage[];
  /** A rule, a topic, a route: what the entry is about beside messages. */
  readonly details: unknown;
}

/** Which entries are meant. Fields are ANDed. */
export interface AuditFilter {
  /** Exactly. */
  readonly author?: string | undefined;
  /** Exactly. */
  readonly action?: string | undefined;
  /** Exactly. */
  readonly result?: AuditResult | undefined;
}

/** A session of the console. */
export interface NewSession {
  /** SHA-256 of what the browser has, in hex: the table alone lets nobody in. */
  readonly hash: string;
  /** Who it is, as JSON. */
  readonly holder: string;
  /** It ends after this long, whatever happens. */
  readonly lifeMs: number;
}

/** How large the message table is, and its database's clock. */
export interface TableEstimate {
  /** About so many messages, finished ones too; undefined: the server does not know yet. */
  readonly messages: number | undefined;
  /** ISO 8601 UTC. */
  readonly clock: string;
}

/** What the console keeps in the database beside messages. */
export interface OperationsStore {
  /** Entries, the newest first; at most 1,000. */
  audit(request: {
    readonly filter: AuditFilter;
    readonly limit: number;
    readonly beforeId?: string | undefined;
  }): Promise<AuditRecord[]>;
  /** Writes an entry of something that changes no message. Entries are never changed or deleted. */
  record(entry: {
    readonly author: string;
    readonly via: string;
    readonly action: string;
    readonly reason: string;
    readonly result: AuditResult;
    readonly details?: unknown;
  }): Promise<void>;
  /** Adds a session, and forgets those that are over. */
  openSession(session: NewSession): Promise<void>;
  /** Who has this session; undefined: nobody, or it is over, or it was idle for `idleMs`. */
  readSession(hash: string, idleMs: number): Promise<string | undefined>;
  /** It is over. */
  endSession(hash: string): Promise<void>;
  /** From the server's statistics: reads no message but the first and the last. */
  estimate(): Promise<TableEstimate>;
  /** Ends its connections. */
  close(): Promise<void>;
}
