/**
 * The operator's port: look at messages and change them by hand. Implemented by databases/sql; used
 * by the CLI, the API and the console.
 */
import type { MessageState } from "../message/states.ts";
import type { RelayStatus, ShardLease, SuspensionRule } from "../relay/store.ts";

/**
 * What a list shows of a message: all but its body and headers. Instants are ISO 8601 UTC texts;
 * ids decimal strings. Fields of columns that a layout lacks are undefined.
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
  /** `unknown`: the column holds a value that the layout does not name. */
  readonly state: MessageState | "unknown";
  /** The value in the column, when `state` is `unknown`. */
  readonly rawState: string;
  /** Media type of the body. */
  readonly contentType: string | null | undefined;
  /** Null: it has none. */
  readonly orderingKey: string | null | undefined;
  /** Counted attempts that failed. */
  readonly retryCount: number;
  /** Claims since the last settle. */
  readonly deliveryCount: number | undefined;
  /** Not before then. */
  readonly deliverAt: string | null | undefined;
  /** When a relay has to look at it again; null in `pending`: now, unless it is behind another. */
  readonly nextRetryAt: string | null;
  /** Id of the message that this one is set behind: its turn comes after that one's. */
  readonly behindId: string | undefined;
  /** Sent, and its confirmation did not come in time, which was told. */
  readonly confirmOverdue?: true;
  /** Start of the last attempt. */
  readonly lastRetryAt: string | null | undefined;
  /** Why the last attempt failed, or what an operator said. */
  readonly failReason: string | null;
  /** The broker's receipt. */
  readonly messageId: string | null | undefined;
  /** Changes so far; what {@link SeenMessage} compares. */
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
  /** As stored: bytes are base64. */
  readonly body: string;
  /** As stored: a JSON object. */
  readonly headers: string | null | undefined;
}

/** Messages of one page, and how far the search for them came. */
export interface MessagePage {
  /** The newest first. */
  readonly messages: readonly MessageSummary[];
  /** Where to go on, as `beforeId`; undefined: there are no others. */
  readonly nextBeforeId: string | undefined;
  /** The time was over before the page was full or all messages were looked at. */
  readonly timeIsUp: boolean;
}

/**
 * Which messages an operation means. Fields are ANDed; an empty filter is refused by everything
 * that changes rows.
 */
export interface MessageFilter {
  /** Any of these. */
  readonly ids?: readonly string[];
  /** Exactly. */
  readonly type?: string;
  /** Exactly; fast together with `type`, and without it by the types that there are. */
  readonly key?: string;
  /** Begins with this, byte for byte; found as `key` is. */
  readonly keyPrefix?: string;
  /** Exactly. */
  readonly topic?: string;
  /** Exactly. */
  readonly orderingKey?: string;
  /** Any of these. */
  readonly states?: readonly MessageState[];
  /** Part of fail_reason. */
  readonly failReasonContains?: string;
  /** ISO 8601 with a zone; later than this. */
  readonly createdAfter?: string;
  /** ISO 8601 with a zone; earlier than this. */
  readonly createdBefore?: string;
}

/**
 * Who did it and why; goes into updated_by and the audit table. `fail_reason` keeps the last error.
 */
export interface OperatorAction {
  /** Who. */
  readonly author: string;
  /** Why. */
  readonly reason: string;
  /** How it came in: `cli`, `console`, `api`; undefined: from code. */
  readonly via?: string | undefined;
}

/** What a person did to a message, as the audit table has it. */
export interface ChangeByHand {
  /** When, ISO 8601 UTC. */
  readonly at: string;
  /** Who. */
  readonly author: string;
  /** `retry`, `suspend`, `resume`, `confirm`, `archive`, `delete`, `copy`, `copied`. */
  readonly action: string;
  /** Why, in their own words. */
  readonly reason: string;
  /** Of `copy`: id of the new message that was made of this one. */
  readonly copyId?: string | undefined;
  /** Of `copied`: id of the message that this one was made of. */
  readonly copyOf?: string | undefined;
}

/** What holds a message, or what became of it. */
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
  /** ISO 8601 UTC: when it ends, as far as that is known. */
  readonly until?: string | undefined;
  /** ISO 8601 UTC: since when, as far as that is known. */
  readonly since?: string | undefined;
  /** Id of the message in front of it. */
  readonly behindId?: string | undefined;
  /** Name of the relay that has its shard. */
  readonly relay?: string | undefined;
}

/** Messages of a topic in a state. */
export interface StateCount {
  /** The topic. */
  readonly topic: string;
  /** `unknown`: values that the layout does not name. */
  readonly state: MessageState | "unknown";
  /** How many were counted. */
  readonly count: number;
  /** There may be more of them, and more topics in this state: only a part was looked at. */
  readonly atLeast: boolean;
  /** Age of the oldest one that was counted. */
  readonly oldestAgeMs: number;
}

/** Messages in a state. */
export interface StateTotal {
  /** `unknown`: values that the layout does not name. */
  readonly state: MessageState | "unknown";
  /** How many were counted. */
  readonly count: number;
  /** There may be more: the count ended there. */
  readonly atLeast: boolean;
}

/** The message that has been due for longest. */
export interface OldestDue {
  /** Its id. */
  readonly id: string;
  /** Its topic. */
  readonly topic: string;
  /** For how long it could have been sent. */
  readonly waitingMs: number;
}

/** Counts by state, and what waits longest. */
export interface OutboxStatus {
  /** All states were counted; else the unfinished ones: pending, sending, failed and suspended. */
  readonly exact: boolean;
  /** By state, up to 10,000 each. States without messages are left out. */
  readonly totals: readonly StateTotal[];
  /**
   * By topic and state. Only a part, where `atLeast` says so: of more than 300 messages of a state,
   * of more than 10,000 failed ones.
   */
  readonly counts: readonly StateCount[];
  /** Undefined: nothing is due. */
  readonly oldestDue: OldestDue | undefined;
  /** Which relay holds which shard. */
  readonly leases: readonly ShardLease[];
  /** Relays that have reported themselves within the last day. */
  readonly instances: readonly RelayStatus[];
  /** Rules that hold messages back. */
  readonly suspensions: readonly SuspensionRule[];
}

/** A message as somebody saw it. */
export interface SeenMessage {
  /** Its id. */
  readonly id: string;
  /** `lockVersion` of its {@link MessageSummary}. */
  readonly lockVersion: string;
}

/** A message that was meant and not changed, as it is. */
export interface ChangeConflict {
  /** Its id. */
  readonly id: string;
  /** The state that it is in. */
  readonly state: MessageState | "unknown";
  /** Undefined where the layout has no lock_version. */
  readonly lockVersion: string | undefined;
}

/** Which messages a change by hand means. */
export interface ChangeTarget {
  /** Which messages; an empty one is refused. */
  readonly filter: MessageFilter;
  /** Who changes them, and why. */
  readonly action: OperatorAction;
  /** At most this many, the lowest ids first. At most 1,000. */
  readonly limit: number;
  /** Only messages with higher ids: `nextAfterId` of the call before. */
  readonly afterId?: string | undefined;
  /**
   * Only these, and only as they were seen: one that has changed since is a conflict. Where the
   * layout has no lock_version, its state alone is looked at.
   */
  readonly seen?: readonly SeenMessage[] | undefined;
}

/**
 * Changes by hand: legal transitions only; `changed` rows, and the others with their real state.
 */
export interface ChangeReport {
  /** How many were changed. */
  readonly changed: number;
  /** Those that were meant and are in another state. */
  readonly conflicts: readonly ChangeConflict[];
  /** Where to go on, as `afterId`; undefined: no other message matches. */
  readonly nextAfterId: string | undefined;
}

/** A message that waits for its confirmation. */
export interface UnconfirmedMessage extends MessageSummary {
  /** Consumers that have confirmed it, of a type that names several. */
  readonly confirmedBy: readonly string[];
}

/** How many messages of a type wait. */
export interface UnconfirmedCount {
  /** The message type. */
  readonly type: string;
  /** The deadline has come, or a consumer has given up: a relay has to act on it. */
  readonly overdue: boolean;
  /** As far as it was counted. */
  readonly count: number;
  /** There are more, perhaps, and more types. */
  readonly atLeast: boolean;
}

/** What waits for a confirmation. */
export interface Unconfirmed {
  /** The earliest deadline first. */
  readonly messages: readonly UnconfirmedMessage[];
  /** There are more than these. */
  readonly more: boolean;
  /** By type; up to 10,000 are counted of those whose deadline has come, and as many others. */
  readonly counts: readonly UnconfirmedCount[];
  /**
   * Who has confirmed messages of a type lately: among the last 1,000 confirmations that named a
   * consumer. Types without any are not there.
   */
  readonly consumers: readonly { readonly type: string; readonly consumers: readonly string[] }[];
}

/** What is different in a copy; the rest is as in the original, but for its delay: it has none. */
export interface CopyChange {
  /** A key of its own: consumers know a message by its type and key. */
  readonly key: string;
  /** Another destination. */
  readonly topic?: string | undefined;
  /** As it is stored, see {@link StoredMessage}: of a binary message base64. */
  readonly body?: string | undefined;
  /** All of them; those that rowpost makes itself are left out of the original's. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** What a copy is made of. */
export interface CopyRequest {
  /** The original as it was seen: one that has changed since is a conflict. Archived: its id. */
  readonly seen: SeenMessage;
  /** What is different. */
  readonly change: CopyChange;
  /**
   * What becomes of the original in the same transaction. `keep`: nothing, whatever its state;
   * `suspend` (pending, failed): it is held back; `archive` (sent, consumed, failed): it goes into
   * the archive. One that is archived already is kept.
   */
  readonly original: "keep" | "suspend" | "archive";
  /** Who copies it, and why; also `created_by` of the copy. */
  readonly action: OperatorAction;
}

/** What became of it. */
export interface CopyReport {
  /** Id of the copy, which is `pending`; undefined: there is none, and nothing has changed. */
  readonly copyId: string | undefined;
  /** The original, if it has changed or its state forbids it. Empty, and no copy: it is gone. */
  readonly conflicts: readonly ChangeConflict[];
}

/** What is done to each message. */
export type ChangeKind = "retry" | "resend" | "suspend" | "resume" | "archive" | "delete";

/** What is to be done to which messages. */
export interface ManyMessages {
  /**
   * `resend` takes failed messages too where the filter names that state; `archive` and `delete`
   * take them only there.
   */
  readonly kind: ChangeKind;
  /** Which messages; an empty one is refused. */
  readonly filter: MessageFilter;
  /** Exactly these, and only as they were seen, whatever the filter says. */
  readonly seen?: readonly SeenMessage[] | undefined;
  /** Of `retry` and `resend`: pending messages too that wait for their next attempt. */
  readonly now?: boolean | undefined;
  /** Only messages with higher ids: the last one that an interrupted `resend` has changed. */
  readonly afterId?: string | undefined;
}

/** What a change would mean. */
export interface ManyPreview {
  /** How many messages were found, up to 10,000. */
  readonly found: number;
  /** There are no others. */
  readonly complete: boolean;
  /** The first 20. */
  readonly samples: readonly MessageSummary[];
  /** The highest id that there is: messages behind it came later, and are not meant. */
  readonly upToId: string;
}

/** A change of many messages. */
export interface ManyRequest extends ManyMessages {
  /** `upToId` of the preview. Default: the highest id that there is at the beginning. */
  readonly upToId?: string | undefined;
  /** At most so many are changed, the lowest ids first. Default: all. */
  readonly limit?: number | undefined;
  /** How long messages are suspended. Default: until somebody resumes them. */
  readonly untilMs?: number | undefined;
  /** Who changes them, and why. */
  readonly action: OperatorAction;
  /** What its entries in the audit have in common. Default: a new UUID. */
  readonly operation?: string | undefined;
  /** Ends the change behind the batch that runs. */
  readonly signal?: AbortSignal | undefined;
  /** Told after each batch. */
  readonly onProgress?: ((progress: ManyProgress) => void) | undefined;
}

/** How far a change is. Messages that were found are in one of the three counts. */
export interface ManyProgress {
  /** Messages that were changed. */
  readonly changed: number;
  /**
   * Messages that were left as they are: in another state, changed since they were seen, or with
   * nothing to do, such as one that is due already (`now`).
   */
  readonly left: number;
  /** Messages that are gone. */
  readonly vanished: number;
  /** The first 1,000 of those that were left, as they are. */
  readonly conflicts: readonly ChangeConflict[];
}

/** What became of a change. */
export interface ManyReport extends ManyProgress {
  /** `cancelled`: by the signal; the messages that it did not come to are as they were. */
  readonly state: "done" | "cancelled";
}

/** Looks at messages and changes them by hand: what `rowpost list`, `retry` and the others do. */
export interface MessageAdmin {
  /**
   * Counts of unfinished messages up to 10,000 of each state; with `exact` of all messages, which
   * reads the whole table.
   */
  status(options?: { readonly exact?: boolean }): Promise<OutboxStatus>;
  /**
   * Newest first, at most 1,000. A filter that no index leads to is looked for in steps of 20,000
   * messages until the page is full or `timeLimitMs` (default 5,000) is over. In the archive an id
   * may come again, after a TRUNCATE of the message table: a page holds all messages of its last
   * id, so it may be longer than `limit`.
   */
  list(request: {
    readonly filter: MessageFilter;
    readonly limit: number;
    readonly beforeId?: string | undefined;
    readonly archived?: boolean;
    readonly timeLimitMs?: number | undefined;
  }): Promise<MessagePage>;
  /** One message with its body, from the archive too; undefined: there is none. */
  show(
    identity: { readonly id: string } | { readonly type: string; readonly key: string },
  ): Promise<StoredMessage | undefined>;
  /** Why this message is not sent: the first rule of the relay that holds it. */
  explain(message: MessageSummary): Promise<Explanation>;
  /** What people did to the message with this id, the newest first. */
  changes(id: string): Promise<ChangeByHand[]>;
  /** Sent messages with a deadline for their confirmation, the earliest first; at most 1,000. */
  unconfirmed(request: { readonly limit: number }): Promise<Unconfirmed>;
  /**
   * failed (and sent, with `resend`) -> pending, retry_count = 0. With `now` also pending ones that
   * wait for their next attempt: they are due at once. A delay is not cut short.
   */
  retry(request: ChangeTarget & { readonly resend?: boolean; readonly now?: boolean }): Promise<ChangeReport>;
  /**
   * Brings all messages of a topic forward that wait for their next attempt, or for the slow retry
   * of failed ones, in the order of ids, a millisecond apart. Returns how many.
   */
  resetBackoff(request: { readonly topic: string; readonly action: OperatorAction }): Promise<number>;
  /** pending, failed -> suspended. */
  suspend(request: ChangeTarget & { readonly untilMs?: number }): Promise<ChangeReport>;
  /** suspended -> pending. */
  resume(request: ChangeTarget): Promise<ChangeReport>;
  /** sent -> consumed, whoever should have confirmed. Consumers use `outbox.confirm`. */
  confirm(request: ChangeTarget): Promise<ChangeReport>;
  /** Adds or replaces a suspension rule; relays notice within a heartbeat. */
  suspendScope(rule: SuspensionRule): Promise<void>;
  /** Lifts a rule and resumes the rows that it suspended, in batches. Returns how many. */
  resumeScope(request: {
    readonly scope: SuspensionRule["scope"];
    readonly value: string;
    readonly action: OperatorAction;
  }): Promise<number>;
  /** sent, consumed (and failed, named) -> archive or deleted. */
  remove(request: ChangeTarget & { readonly mode: "archive" | "delete" }): Promise<ChangeReport>;
  /** Looks for what a change would mean, for four seconds at most. Changes nothing. */
  preview(request: ManyMessages): Promise<ManyPreview>;
  /**
   * Changes what matches, of the messages that there are now, in the order of ids: 500 in a
   * transaction, each with its entry in the audit. The audit says `begun` before the first and
   * `done`, `cancelled` or `failed` after the last one. Whoever finds `begun` alone calls it again
   * with the same filter, which no longer matches what was changed.
   */
  changeMany(request: ManyRequest): Promise<ManyReport>;
  /**
   * A new message like this one with something changed, in one transaction with what becomes of the
   * original. Throws, with nothing written: `InvalidMessageError` (a copy that could not be sent),
   * `DuplicateMessageError` (its key is taken), `ConfigurationError` (the table has no column for
   * headers).
   */
  copy(request: CopyRequest): Promise<CopyReport>;
  /** Ends its connections. */
  close(): Promise<void>;
}
