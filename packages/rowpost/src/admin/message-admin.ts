/**
 * Port of operators: inspects messages and changes them by hand. Implemented by databases/sql; used
 * by the CLI, the API and the console.
 */
import type { MessageState } from "../message/states.ts";
import type { RelayStatus, ShardLease, SuspensionRule } from "../relay/store.ts";

/**
 * A message in a list, without body and headers. Instants are ISO 8601 UTC; ids decimal strings.
 * Fields of columns missing in the layout are undefined.
 */
export interface MessageSummary {
  /** Primary key, in decimal. */
  readonly id: string;
  /** First part of the identity. */
  readonly type: string;
  /** Second part of the identity. */
  readonly key: string;
  /** Destination on the broker. */
  readonly topic: string;
  /** `unknown`: a value that the layout does not name. */
  readonly state: MessageState | "unknown";
  /** The raw value when `state` is `unknown`. */
  readonly rawState: string;
  /** Media type of the body. */
  readonly contentType: string | null | undefined;
  /** Null: none. */
  readonly orderingKey: string | null | undefined;
  /** Counted attempts that failed. */
  readonly retryCount: number;
  /** Claims since the last settle. */
  readonly deliveryCount: number | undefined;
  /** Earliest delivery. */
  readonly deliverAt: string | null | undefined;
  /** When a relay looks at it again; null in `pending`: now, unless it is behind another. */
  readonly nextRetryAt: string | null;
  /** Id of the message that it waits behind. */
  readonly behindId: string | undefined;
  /** Sent, with an overdue confirmation that was reported. */
  readonly confirmOverdue?: true;
  /** Start of the last attempt. */
  readonly lastRetryAt: string | null | undefined;
  /** Error of the last attempt, or an operator's text. */
  readonly failReason: string | null;
  /** The broker's receipt. */
  readonly messageId: string | null | undefined;
  /** Version of the row, compared with {@link SeenMessage}. */
  readonly lockVersion: string | undefined;
  /** When the receipt came. */
  readonly sentAt: string | null | undefined;
  /** When the consumer confirmed. */
  readonly consumedAt: string | null | undefined;
  /** Who wrote it. */
  readonly createdBy: string | null | undefined;
  /** Who changed it by hand. */
  readonly updatedBy: string | null | undefined;
  /** When it was written. */
  readonly gmtCreate: string;
  /** When it was last changed. */
  readonly gmtModified: string;
  /** It is in the archive table. */
  readonly archived: boolean;
}

/** A message with its body and headers. */
export interface StoredMessage extends MessageSummary {
  /** As stored; bytes as base64. */
  readonly body: string;
  /** As stored: a JSON object. */
  readonly headers: string | null | undefined;
}

/** One page of messages, and how far the search came. */
export interface MessagePage {
  /** Newest first. */
  readonly messages: readonly MessageSummary[];
  /** Next `beforeId`; undefined on the last page. */
  readonly nextBeforeId: string | undefined;
  /** Time ran out before the page was full or the search complete. */
  readonly timeIsUp: boolean;
}

/** Selects messages. Fields are ANDed; operations that change rows refuse an empty filter. */
export interface MessageFilter {
  /** Any of these ids. */
  readonly ids?: readonly string[];
  /** Exact type. */
  readonly type?: string;
  /** Exact key; fast with `type`, and without it by trying all existing types. */
  readonly key?: string;
  /** Byte-wise prefix of the key; searched like `key`. */
  readonly keyPrefix?: string;
  /** Exact topic. */
  readonly topic?: string;
  /** Exact ordering key. */
  readonly orderingKey?: string;
  /** Any of these states. */
  readonly states?: readonly MessageState[];
  /** Part of fail_reason. */
  readonly failReasonContains?: string;
  /** ISO 8601 with a zone, exclusive. */
  readonly createdAfter?: string;
  /** ISO 8601 with a zone, exclusive. */
  readonly createdBefore?: string;
}

/**
 * Author and reason, stored in updated_by and the audit table. `fail_reason` keeps the last error.
 */
export interface OperatorAction {
  /** Author. */
  readonly author: string;
  /** Reason. */
  readonly reason: string;
  /** Origin: `cli`, `console`, `api`; undefined: from code. */
  readonly via?: string | undefined;
}

/** A change by hand, from the audit table. */
export interface ChangeByHand {
  /** When, ISO 8601 UTC. */
  readonly at: string;
  /** Author. */
  readonly author: string;
  /** `retry`, `suspend`, `resume`, `confirm`, `archive`, `delete`, `copy`, `copied`. */
  readonly action: string;
  /** Reason, in the author's words. */
  readonly reason: string;
  /** For `copy`: id of the new message. */
  readonly copyId?: string | undefined;
  /** For `copied`: id of the original. */
  readonly copyOf?: string | undefined;
}

/** What holds a message, or its fate. */
export type HeldBy =
  | "archived"
  | "sent"
  | "confirmation"
  | "consumed"
  | "failed"
  | "suspended"
  | "sending"
  | "unknown state"
  | "delay"
  | "backoff"
  | "ordering key"
  | "suspension rule"
  | "no relay"
  | "shard without owner"
  | "silent owner"
  | "broker away"
  | "topic rests"
  | "nothing";

/** The first rule that holds a message. */
export interface Explanation {
  /** The rule. */
  readonly heldBy: HeldBy;
  /** A sentence for people. */
  readonly text: string;
  /** End, ISO 8601 UTC, if known. */
  readonly until?: string | undefined;
  /** Begin, ISO 8601 UTC, if known. */
  readonly since?: string | undefined;
  /** Id of the message that it waits behind. */
  readonly behindId?: string | undefined;
  /** Name of the relay that holds its shard. */
  readonly relay?: string | undefined;
}

/** Messages of a topic in a state. */
export interface StateCount {
  /** The topic. */
  readonly topic: string;
  /** `unknown`: values that the layout does not name. */
  readonly state: MessageState | "unknown";
  /** Number counted. */
  readonly count: number;
  /** Only a part was examined: there may be more, and more topics in this state. */
  readonly atLeast: boolean;
  /** Age of the oldest one counted. */
  readonly oldestAgeMs: number;
}

/** Messages in a state. */
export interface StateTotal {
  /** `unknown`: values that the layout does not name. */
  readonly state: MessageState | "unknown";
  /** Number counted. */
  readonly count: number;
  /** There may be more; the count was limited. */
  readonly atLeast: boolean;
}

/** The message due for longest. */
export interface OldestDue {
  /** Its id. */
  readonly id: string;
  /** Its topic. */
  readonly topic: string;
  /** How long it has been due. */
  readonly waitingMs: number;
}

/** Counts by state, and the longest wait. */
export interface OutboxStatus {
  /** True: all states were counted; false: only pending, sending, failed and suspended. */
  readonly exact: boolean;
  /** By state, up to 10,000 each; empty states are left out. */
  readonly totals: readonly StateTotal[];
  /**
   * By topic and state. Partial where `atLeast` is true: for more than 300 messages of a state, or
   * more than 10,000 failed ones.
   */
  readonly counts: readonly StateCount[];
  /** Undefined: nothing is due. */
  readonly oldestDue: OldestDue | undefined;
  /** Leases of the shards. */
  readonly leases: readonly ShardLease[];
  /** Relays that reported within the last day. */
  readonly instances: readonly RelayStatus[];
  /** Rules that hold messages back. */
  readonly suspensions: readonly SuspensionRule[];
}

/** A message in the version that the operator saw. */
export interface SeenMessage {
  /** Its id. */
  readonly id: string;
  /** `lockVersion` of its {@link MessageSummary}. */
  readonly lockVersion: string;
}

/** A selected message that was not changed, in its current state. */
export interface ChangeConflict {
  /** Its id. */
  readonly id: string;
  /** Its current state. */
  readonly state: MessageState | "unknown";
  /** Undefined without lock_version in the layout. */
  readonly lockVersion: string | undefined;
}

/** Selects messages for a change by hand. */
export interface ChangeTarget {
  /** The messages; an empty filter is refused. */
  readonly filter: MessageFilter;
  /** Author and reason. */
  readonly action: OperatorAction;
  /** Most messages changed, lowest ids first. At most 1,000. */
  readonly limit: number;
  /** Only higher ids: `nextAfterId` of the previous call. */
  readonly afterId?: string | undefined;
  /**
   * Only these messages in the versions seen; any changed since is a conflict. Without lock_version
   * in the layout only the state is compared.
   */
  readonly seen?: readonly SeenMessage[] | undefined;
}

/** Result of a change by hand, with legal transitions only. */
export interface ChangeReport {
  /** Number of changed messages. */
  readonly changed: number;
  /** Selected messages in another state. */
  readonly conflicts: readonly ChangeConflict[];
  /** Next `afterId`; undefined: no other message matches. */
  readonly nextAfterId: string | undefined;
}

/** A message that waits for its confirmation. */
export interface UnconfirmedMessage extends MessageSummary {
  /** Consumers that have confirmed, for a type that names several. */
  readonly confirmedBy: readonly string[];
}

/** Number of waiting messages of a type. */
export interface UnconfirmedCount {
  /** The message type. */
  readonly type: string;
  /** The deadline has passed, or a consumer gave up: a relay has to act. */
  readonly overdue: boolean;
  /** Number counted. */
  readonly count: number;
  /** There may be more, and more types. */
  readonly atLeast: boolean;
}

/** Messages that wait for a confirmation. */
export interface Unconfirmed {
  /** Earliest deadline first. */
  readonly messages: readonly UnconfirmedMessage[];
  /** There are more than these. */
  readonly more: boolean;
  /** By type; counts up to 10,000 overdue messages, and as many others. */
  readonly counts: readonly UnconfirmedCount[];
  /**
   * Consumers of recent confirmations by type, from the last 1,000 that named one. Types without
   * any are left out.
   */
  readonly consumers: readonly { readonly type: string; readonly consumers: readonly string[] }[];
}

/** Changes of a copy; everything else comes from the original, except the delay: it has none. */
export interface CopyChange {
  /** Its own key: consumers identify a message by type and key. */
  readonly key: string;
  /** Another destination. */
  readonly topic?: string | undefined;
  /** As stored, see {@link StoredMessage}; a binary body in base64. */
  readonly body?: string | undefined;
  /** All headers, replacing the original's, from which rowpost's own are dropped. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Request for a copy. */
export interface CopyRequest {
  /** The original as seen: any change since is a conflict. If archived: its id. */
  readonly seen: SeenMessage;
  /** Fields to change. */
  readonly change: CopyChange;
  /**
   * Fate of the original in the same transaction. `keep`: unchanged; `suspend` (pending, failed):
   * suspended; `archive` (sent, consumed, failed): archived. An archived one stays.
   */
  readonly original: "keep" | "suspend" | "archive";
  /** Author and reason; also `created_by` of the copy. */
  readonly action: OperatorAction;
}

/** Result of a copy. */
export interface CopyReport {
  /** Id of the `pending` copy; undefined: nothing was changed. */
  readonly copyId: string | undefined;
  /**
   * The original, if it has changed or its state forbids the copy. Empty without a copy: it is
   * gone.
   */
  readonly conflicts: readonly ChangeConflict[];
}

/** Kind of change. */
export type ChangeKind = "retry" | "resend" | "suspend" | "resume" | "archive" | "delete";

/** Request to change many messages. */
export interface ManyMessages {
  /**
   * `resend` also takes failed messages if the filter names that state; `archive` and `delete` take
   * them only then.
   */
  readonly kind: ChangeKind;
  /** The messages; an empty filter is refused. */
  readonly filter: MessageFilter;
  /** Exactly these messages in the versions seen, regardless of the filter. */
  readonly seen?: readonly SeenMessage[] | undefined;
  /** For `retry` and `resend`: also pending messages in backoff. */
  readonly now?: boolean | undefined;
  /** Only higher ids: the last one changed by an interrupted `resend`. */
  readonly afterId?: string | undefined;
}

/** Preview of a change. */
export interface ManyPreview {
  /** Messages found, up to 10,000. */
  readonly found: number;
  /** There are no others. */
  readonly complete: boolean;
  /** The first 20. */
  readonly samples: readonly MessageSummary[];
  /** Highest existing id: later messages are not included. */
  readonly upToId: string;
}

/** A change of many messages. */
export interface ManyRequest extends ManyMessages {
  /** `upToId` of the preview. Default: the highest id at the start. */
  readonly upToId?: string | undefined;
  /** Most messages changed, lowest ids first. Default: all. */
  readonly limit?: number | undefined;
  /** Duration of a suspension. Default: until resumed. */
  readonly untilMs?: number | undefined;
  /** Author and reason. */
  readonly action: OperatorAction;
  /** Common id of its audit entries. Default: a new UUID. */
  readonly operation?: string | undefined;
  /** Ends the change after the current batch. */
  readonly signal?: AbortSignal | undefined;
  /** Called after each batch. */
  readonly onProgress?: ((progress: ManyProgress) => void) | undefined;
}

/** Progress of a change. Every message found is in one of the three counts. */
export interface ManyProgress {
  /** Messages changed. */
  readonly changed: number;
  /**
   * Messages left alone: in another state, changed since seen, or with nothing to do, such as one
   * already due (`now`).
   */
  readonly left: number;
  /** Messages that are gone. */
  readonly vanished: number;
  /** The first 1,000 left alone, in their current state. */
  readonly conflicts: readonly ChangeConflict[];
}

/** Result of a change. */
export interface ManyReport extends ManyProgress {
  /** `cancelled`: stopped by the signal, with the remaining messages unchanged. */
  readonly state: "done" | "cancelled";
}

/**
 * Inspects messages and changes them by hand, as `rowpost list`, `retry` and the other commands do.
 */
export interface MessageAdmin {
  /**
   * Counts unfinished messages, up to 10,000 of each state; with `exact` all messages, which reads
   * the whole table.
   */
  status(options?: { readonly exact?: boolean }): Promise<OutboxStatus>;
  /**
   * Newest first, at most 1,000. A filter without an index is searched in steps of 20,000 messages
   * until the page is full or `timeLimitMs` (default 5,000) is over. In the archive an id may
   * repeat after a TRUNCATE of the message table: a page includes all messages of its last id, so
   * it may exceed `limit`.
   */
  list(request: {
    readonly filter: MessageFilter;
    readonly limit: number;
    readonly beforeId?: string | undefined;
    readonly archived?: boolean;
    readonly timeLimitMs?: number | undefined;
  }): Promise<MessagePage>;
  /** One message with its body, also from the archive; undefined: not found. */
  show(
    identity: { readonly id: string } | { readonly type: string; readonly key: string },
  ): Promise<StoredMessage | undefined>;
  /** Why this message is not sent: the first rule of the relay that holds it. */
  explain(message: MessageSummary): Promise<Explanation>;
  /** Changes by hand to this message, newest first. */
  changes(id: string): Promise<ChangeByHand[]>;
  /** Sent messages with a confirmation deadline, earliest first; at most 1,000. */
  unconfirmed(request: { readonly limit: number }): Promise<Unconfirmed>;
  /**
   * failed (and sent, with `resend`) -> pending, retry_count = 0. With `now` also pending ones in
   * backoff: they are due at once. A delay is not shortened.
   */
  retry(request: ChangeTarget & { readonly resend?: boolean; readonly now?: boolean }): Promise<ChangeReport>;
  /**
   * Brings a topic's messages in backoff or slow retry forward, in id order, a millisecond apart.
   * Returns their number.
   */
  resetBackoff(request: { readonly topic: string; readonly action: OperatorAction }): Promise<number>;
  /** pending, failed -> suspended. */
  suspend(request: ChangeTarget & { readonly untilMs?: number }): Promise<ChangeReport>;
  /** suspended -> pending. */
  resume(request: ChangeTarget): Promise<ChangeReport>;
  /** sent -> consumed, regardless of the expected consumers. Consumers use `outbox.confirm`. */
  confirm(request: ChangeTarget): Promise<ChangeReport>;
  /** Adds or replaces a suspension rule; relays notice within a heartbeat. */
  suspendScope(rule: SuspensionRule): Promise<void>;
  /** Lifts a rule and resumes the rows it suspended, in batches. Returns their number. */
  resumeScope(request: {
    readonly scope: SuspensionRule["scope"];
    readonly value: string;
    readonly action: OperatorAction;
  }): Promise<number>;
  /** sent, consumed (and failed, if named) -> archived or deleted. */
  remove(request: ChangeTarget & { readonly mode: "archive" | "delete" }): Promise<ChangeReport>;
  /** Previews a change for at most four seconds. Changes nothing. */
  preview(request: ManyMessages): Promise<ManyPreview>;
  /**
   * Changes the existing messages that match, in id order: 500 per transaction, each with its audit
   * entry. The audit has `begun` before the first and `done`, `cancelled` or `failed` after the
   * last one. After `begun` alone, call it again with the same filter, which no longer matches the
   * changed ones.
   */
  changeMany(request: ManyRequest): Promise<ManyReport>;
  /**
   * Creates a modified copy of a message, in one transaction with the fate of the original. Throws,
   * with nothing written: `InvalidMessageError` (the copy could not be sent),
   * `DuplicateMessageError` (its key is taken), `ConfigurationError` (the table has no headers
   * column).
   */
  copy(request: CopyRequest): Promise<CopyReport>;
  /** Closes its connections. */
  close(): Promise<void>;
}
