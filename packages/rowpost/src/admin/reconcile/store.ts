/** Database port of reconciling. Implemented by databases/sql. Types only. */
import type { MessageState } from "../../message/states.ts";

export interface Identity {
  readonly type: string;
  readonly key: string;
}

/** A window of time, from `fromMs` and before `toMs`, in epoch milliseconds. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A SELECT of the operator, with both `:from` and `:to` or neither. */
export interface UserQuery {
  readonly text: string;
  /** Undefined: each row has it in message_type. */
  readonly type: string | undefined;
  /** Of the wall clock of `:from` and `:to`; undefined: the table's own clock. */
  readonly timeZone: string | undefined;
}

/** Rows of a {@link UserQuery}. */
export interface UserRows {
  readonly identities: readonly Identity[];
  /** Rows without a key. */
  readonly withoutKey: number;
  /** There are more than requested. */
  readonly more: boolean;
}

/** An identity that a query returned more than once. */
export interface RepeatedIdentity extends Identity {
  readonly times: number;
}

/** A message without its body. */
export interface WrittenMessage extends Identity {
  readonly id: string;
  readonly state: MessageState | "unknown";
  readonly createdMs: number;
  /** Broker's receipt; undefined without such a column in the layout. */
  readonly receipt: string | null | undefined;
  /** Of a `sent` message: deadline of its confirmation, if any. */
  readonly dueMs: number | undefined;
}

/** Confirmations of a missing message. */
export interface UnknownConfirmation {
  /** Message type. */
  readonly type: string;
  /** Message key. */
  readonly key: string;
  /** The consumer, if named. */
  readonly consumer: string | undefined;
  /** The last reported error; undefined: it was consumed. */
  readonly error: string | undefined;
  /** Number of confirmations. */
  readonly times: number;
  /** First one: ISO 8601, UTC. */
  readonly firstAt: string;
  /** Last one. */
  readonly lastAt: string;
  /**
   * The message exists now, in the table or its archive. Earlier confirmations were not applied,
   * since they could end a message that was never sent.
   */
  readonly isThere: boolean;
}

/** Locks and writes nothing. */
export interface ReconcileView {
  /** Database clock. */
  clock(): Promise<number>;
  /**
   * When the oldest finished message was finished, also in the archive: earlier ones may have been
   * deleted. Undefined: none.
   */
  keptSince(): Promise<number | undefined>;
  rows(query: UserQuery, window: Window, limit: number): Promise<UserRows>;
  /** Compared byte for byte; at most `limit`. */
  repeated(query: UserQuery, window: Window, limit: number): Promise<readonly RepeatedIdentity[]>;
  /** Those missing from both the table and its archive. */
  missing(identities: readonly Identity[]): Promise<Identity[]>;
  /** In batches; `types` undefined: all. */
  messages(
    window: Window,
    types: readonly string[] | undefined,
    each: (batch: readonly WrittenMessage[]) => void,
  ): Promise<void>;
  /** Confirmations of missing messages, latest first; at most `limit`. */
  unknownConfirmations(limit: number): Promise<readonly UnknownConfirmation[]>;
  /** Types of the existing messages, at most `limit`. */
  types(limit: number): Promise<readonly string[]>;
}

export interface ReconcileStore {
  /** Throws `ConfigurationError` for only one of them. */
  isWindowed(query: string): boolean;
  /** Does not retry after a lost connection. */
  view<T>(work: (view: ReconcileView) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}
