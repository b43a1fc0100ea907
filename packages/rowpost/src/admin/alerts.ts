/**
 * The port of alerts: who evaluates them, what they know and have told, what is silenced, and the
 * looks at the message table that `status` does not take. Implemented by databases/sql; used by
 * `rowpost-server`.
 */
import type { OperatorAction } from "./message-admin.ts";

/** Who evaluates, and for how long at most nobody else does. */
export interface AlertLease {
  /** Random id of an evaluator. */
  readonly owner: string;
  /** Another one takes over after this long. */
  readonly leaseMs: number;
}

/** What the evaluators of a table know and have told. */
export interface StoredAlerts {
  /** JSON, which the evaluator makes and reads; undefined: nobody has evaluated yet. */
  readonly state: string | undefined;
  /** The database's clock, in epoch milliseconds. */
  readonly nowMs: number;
  /** When the state was written, by that clock; undefined: never. */
  readonly savedMs: number | undefined;
}

/** What no notice is sent of. */
export interface NewSilence {
  /** Name of a rule; undefined: every rule. */
  readonly rule: string | undefined;
  /** Topic, type or broker; undefined: all. */
  readonly subject: string | undefined;
  /** It ends by itself after this long. */
  readonly forMs: number;
}

/** A silence as it is kept. */
export interface Silence extends Omit<NewSilence, "forMs"> {
  /** A UUID. */
  readonly id: string;
  /** Who. */
  readonly author: string;
  /** Why. */
  readonly reason: string;
  /** ISO 8601 UTC. */
  readonly createdAt: string;
  /** ISO 8601 UTC. */
  readonly endsAt: string;
  /** It has not ended. */
  readonly active: boolean;
}

/** Messages of a topic or type that are late. */
export interface LateMessages {
  /** The topic, or the type. */
  readonly name: string;
  /** How many, of 10,000 that are looked at. */
  readonly count: number;
  /** Of the one that is late for longest. */
  readonly lateMs: number;
}

/** Alerts of one message table. */
export interface AlertStore {
  /** Takes or prolongs the lease, and reads what is known. Undefined: somebody else has it. */
  take(lease: AlertLease): Promise<StoredAlerts | undefined>;
  /** Writes what is known, and prolongs the lease. False: it is somebody else's. */
  save(request: AlertLease & { readonly state: string }): Promise<boolean>;
  /** Gives the lease up. */
  release(owner: string): Promise<void>;
  /** What is known, whoever evaluates. Writes nothing. */
  read(): Promise<StoredAlerts>;
  /**
   * Sent messages by type whose confirmation is `unconfirmedMs` late, and messages by topic that
   * were claimed `sendingMs` ago and not settled. Reads 10,000 rows of each at most.
   */
  late(limits: {
    readonly unconfirmedMs: number;
    readonly sendingMs: number;
  }): Promise<{ readonly unconfirmed: readonly LateMessages[]; readonly sending: readonly LateMessages[] }>;
  /** Is there a message queue where the connection leads? Reads a catalog. */
  hasQueue(): Promise<boolean>;
  /** Active ones, and those that ended within 30 days; the newest first, at most 100. */
  silences(): Promise<Silence[]>;
  /** Adds one and writes it into the audit; returns its id. */
  silence(request: NewSilence & { readonly action: OperatorAction }): Promise<string>;
  /** Ends one now, and writes that into the audit. False: there is none that is active. */
  endSilence(request: { readonly id: string; readonly action: OperatorAction }): Promise<boolean>;
  /** Ends its connections. */
  close(): Promise<void>;
}
