/**
 * Port of alerts: evaluator lease, stored state, silences, and the queries on the message table
 * that `status` does not make. Implemented by databases/sql; used by `rowpost-server`.
 */
import type { OperatorAction } from "./message-admin.ts";

/** Lease of the one evaluator. */
export interface AlertLease {
  /** Random id of an evaluator. */
  readonly owner: string;
  /** Another evaluator takes over after this long. */
  readonly leaseMs: number;
}

/** Stored state of the evaluators of a table. */
export interface StoredAlerts {
  /** JSON of the evaluator; undefined: never evaluated. */
  readonly state: string | undefined;
  /** Database clock, in epoch milliseconds. */
  readonly nowMs: number;
  /** When the state was written, by that clock; undefined: never. */
  readonly savedMs: number | undefined;
}

/** Suppresses notices. */
export interface NewSilence {
  /** Name of a rule; undefined: every rule. */
  readonly rule: string | undefined;
  /** Topic, type or broker; undefined: all. */
  readonly subject: string | undefined;
  /** Duration, after which it ends by itself. */
  readonly forMs: number;
}

/** A stored silence. */
export interface Silence extends Omit<NewSilence, "forMs"> {
  /** UUID. */
  readonly id: string;
  /** Author. */
  readonly author: string;
  /** Reason. */
  readonly reason: string;
  /** ISO 8601 UTC. */
  readonly createdAt: string;
  /** ISO 8601 UTC. */
  readonly endsAt: string;
  /** It has not ended. */
  readonly active: boolean;
}

/** Late messages of a topic or type. */
export interface LateMessages {
  /** The topic or type. */
  readonly name: string;
  /** Number among the 10,000 examined. */
  readonly count: number;
  /** Longest delay of one of them. */
  readonly lateMs: number;
}

/** Alerts of one message table. */
export interface AlertStore {
  /** Takes or extends the lease, and reads the state. Undefined: another evaluator holds it. */
  take(lease: AlertLease): Promise<StoredAlerts | undefined>;
  /** Writes the state and extends the lease. False: another evaluator holds it. */
  save(request: AlertLease & { readonly state: string }): Promise<boolean>;
  /** Releases the lease. */
  release(owner: string): Promise<void>;
  /** Reads the state without the lease; writes nothing. */
  read(): Promise<StoredAlerts>;
  /**
   * Sent messages by type whose confirmation is `unconfirmedMs` late, and messages by topic claimed
   * `sendingMs` ago and not settled. Reads at most 10,000 rows of each.
   */
  late(limits: {
    readonly unconfirmedMs: number;
    readonly sendingMs: number;
  }): Promise<{ readonly unconfirmed: readonly LateMessages[]; readonly sending: readonly LateMessages[] }>;
  /** Whether the connection's database has a message queue. Reads a catalog. */
  hasQueue(): Promise<boolean>;
  /** Active silences, and those ended within 30 days; newest first, at most 100. */
  silences(): Promise<Silence[]>;
  /** Adds a silence with an audit entry; returns its id. */
  silence(request: NewSilence & { readonly action: OperatorAction }): Promise<string>;
  /** Ends a silence now, with an audit entry. False: none is active. */
  endSilence(request: { readonly id: string; readonly action: OperatorAction }): Promise<boolean>;
  /** Closes its connections. */
  close(): Promise<void>;
}
