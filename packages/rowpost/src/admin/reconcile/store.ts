/**
 * The port of reconciling: what it reads of a database. Implemented by databases/sql. Types only.
 */
import type { MessageState } from "../../message/states.ts";

/** What a message is known by. */
export interface Identity {
  readonly type: string;
  readonly key: string;
}

/** A window of time, from `fromMs` on and before `toMs`, in milliseconds since the epoch. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A SELECT that the operator wrote, which names `:from` and `:to` or neither of them. */
export interface UserQuery {
  readonly text: string;
  /** Type of all its keys; undefined: its column message_type says it of each row. */
  readonly type: string | undefined;
  /** IANA zone of the wall clock that `:from` and `:to` are; undefined: the table's own clock. */
  readonly timeZone: string | undefined;
}

/** Rows of a {@link UserQuery}. */
export interface UserRows {
  readonly identities: readonly Identity[];
  /** Rows without a key. */
  readonly withoutKey: number;
  /** There are more than were asked for. */
  readonly more: boolean;
}

/** An identity that a query returned more than once. */
export interface RepeatedIdentity extends Identity {
  readonly times: number;
}

/** A message, without its body. */
export interface WrittenMessage extends Identity {
  readonly id: string;
  readonly state: MessageState | "unknown";
  readonly createdMs: number;
  /** Broker's receipt; undefined where the layout has no column for it. */
  readonly receipt: string | null | undefined;
  /** Of a `sent` message: when its confirmation is due. Undefined: none is waited for. */
  readonly dueMs: number | undefined;
}

/** What consumers have said of a message that was not there. */
export interface UnknownConfirmation {
  /** Message type. */
  readonly type: string;
  /** Message key. */
  readonly key: string;
  /** Who said it; undefined: it gave no name. */
  readonly consumer: string | undefined;
  /** Why it could not be handled; undefined: it was consumed. What was said last. */
  readonly error: string | undefined;
  /** How often it was said. */
  readonly times: number;
  /** When first: ISO 8601, UTC. */
  readonly firstAt: string;
  /** When last. */
  readonly lastAt: string;
  /**
   * The message is there now, in the table or its archive. What was said of it before was not
   * applied: it would end a message that may never have been sent.
   */
  readonly isThere: boolean;
}

/** One state of the database: all calls see the same. Nothing is locked, and nothing is written. */
export interface ReconcileView {
  /** Now, by the database's clock. */
  clock(): Promise<number>;
  /**
   * When the oldest message that is finished was finished, in the table or its archive, as
   * retention counts it: what was finished before may have been deleted. Undefined: none is
   * finished.
   */
  keptSince(): Promise<number | undefined>;
  rows(query: UserQuery, window: Window, limit: number): Promise<UserRows>;
  /** What the query returned more than once, compared byte for byte; at most `limit`. */
  repeated(query: UserQuery, window: Window, limit: number): Promise<readonly RepeatedIdentity[]>;
  /** Those of them that are neither in the table nor in its archive. */
  missing(identities: readonly Identity[]): Promise<Identity[]>;
  /** Messages that were created in the window, of these types (undefined: of all), in batches. */
  messages(
    window: Window,
    types: readonly string[] | undefined,
    each: (batch: readonly WrittenMessage[]) => void,
  ): Promise<void>;
  /** What consumers have said of messages that were not there, the last first; at most `limit`. */
  unknownConfirmations(limit: number): Promise<readonly UnknownConfirmation[]>;
  /** Types of the messages that there are, at most `limit`. */
  types(limit: number): Promise<readonly string[]>;
}

/** The port. */
export interface ReconcileStore {
  /** Does the query name `:from` and `:to`? Throws `ConfigurationError` for one of them alone. */
  isWindowed(query: string): boolean;
  /** Runs `work` on one state of the database. Again after a lost connection: not by itself. */
  view<T>(work: (view: ReconcileView) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}
