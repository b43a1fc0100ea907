/**
 * The operator's port: look at messages and change them by hand. Implemented by databases/sql; used
 * by the CLI, the API and the console.
 */
import type { MessageState } from "../message/states.ts";
import type { RelayInstance, ShardLease, SuspensionRule } from "../relay/store.ts";

/**
 * What a list shows of a message: all but its body and headers. Instants are ISO 8601 UTC texts;
 * ids decimal strings. Fields of columns that a layout lacks are undefined.
 */
export interface MessageSummary {
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  readonly state: MessageState | "unknown";
  /** The value in the column, when `state` is `unknown`. */
  readonly rawState: string;
  readonly contentType: string | null | undefined;
  readonly orderingKey: string | null | undefined;
  readonly retryCount: number;
  readonly deliveryCount: number | undefined;
  readonly deliverAt: string | null | undefined;
  readonly nextRetryAt: string | null;
  /** Id of the message that this one is set behind, as nextRetryAt tells it. */
  readonly behindId: string | undefined;
  readonly lastRetryAt: string | null | undefined;
  readonly failReason: string | null;
  readonly messageId: string | null | undefined;
  readonly lockVersion: number | undefined;
  readonly sentAt: string | null | undefined;
  readonly consumedAt: string | null | undefined;
  readonly createdBy: string | null | undefined;
  readonly updatedBy: string | null | undefined;
  readonly gmtCreate: string;
  readonly gmtModified: string;
  readonly archived: boolean;
}

/** A message with its body and headers. */
export interface StoredMessage extends MessageSummary {
  readonly body: string;
  readonly headers: string | null | undefined;
}

/** Messages of one page, and how far the search for them came. */
export interface MessagePage {
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
  readonly ids?: readonly string[];
  readonly type?: string;
  readonly key?: string;
  readonly topic?: string;
  readonly orderingKey?: string;
  readonly states?: readonly MessageState[];
  /** Part of fail_reason. */
  readonly failReasonContains?: string;
  readonly createdAfter?: string;
  readonly createdBefore?: string;
}

/** Who did it and why; goes into updated_by and fail_reason. */
export interface OperatorAction {
  readonly author: string;
  readonly reason: string;
}

/** Messages of a topic in a state. */
export interface StateCount {
  readonly topic: string;
  readonly state: MessageState | "unknown";
  readonly count: number;
  /** There may be more of them, and more topics in this state: only a part was looked at. */
  readonly atLeast: boolean;
  /** Age of the oldest one that was counted. */
  readonly oldestAgeMs: number;
}

/** Messages in a state. */
export interface StateTotal {
  readonly state: MessageState | "unknown";
  readonly count: number;
  /** There may be more: the count ended there. */
  readonly atLeast: boolean;
}

/** The message that has been due for longest. */
export interface OldestDue {
  readonly id: string;
  readonly topic: string;
  readonly waitingMs: number;
}

/** Counts by state, and what waits longest. */
export interface OutboxStatus {
  /** All states were counted; else the unfinished ones: pending, sending, failed and suspended. */
  readonly exact: boolean;
  /** By state, up to 10,000 each. States without messages are left out. */
  readonly totals: readonly StateTotal[];
  /** By topic and state; of a state with more than 300 messages only a part. */
  readonly counts: readonly StateCount[];
  /** Undefined: nothing is due. */
  readonly oldestDue: OldestDue | undefined;
  readonly leases: readonly ShardLease[];
  readonly instances: readonly RelayInstance[];
  readonly suspensions: readonly SuspensionRule[];
}

/** A message as somebody saw it. */
export interface SeenMessage {
  readonly id: string;
  readonly lockVersion: number;
}

/** A message that was meant and not changed, as it is. */
export interface ChangeConflict {
  readonly id: string;
  readonly state: MessageState | "unknown";
  /** Undefined where the layout has no lock_version. */
  readonly lockVersion: number | undefined;
}

/** Which messages a change by hand means. */
export interface ChangeTarget {
  readonly filter: MessageFilter;
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
  readonly changed: number;
  readonly conflicts: readonly ChangeConflict[];
  /** Where to go on, as `afterId`; undefined: no other message matches. */
  readonly nextAfterId: string | undefined;
}

export interface MessageAdmin {
  /**
   * Counts of unfinished messages up to 10,000 of each state; with `exact` of all messages, which
   * reads the whole table.
   */
  status(options?: { readonly exact?: boolean }): Promise<OutboxStatus>;
  /**
   * Newest first, at most 1,000. A filter that no index leads to is looked for in steps of 20,000
   * messages until the page is full or `timeLimitMs` (default 5,000) is over.
   */
  list(request: {
    readonly filter: MessageFilter;
    readonly limit: number;
    readonly beforeId?: string | undefined;
    readonly archived?: boolean;
    readonly timeLimitMs?: number | undefined;
  }): Promise<MessagePage>;
  show(
    identity: { readonly id: string } | { readonly type: string; readonly key: string },
  ): Promise<StoredMessage | undefined>;
  /** failed (and sent, with `resend`) -> pending, retry_count = 0. */
  retry(request: ChangeTarget & { readonly resend?: boolean }): Promise<ChangeReport>;
  /** pending, failed -> suspended. */
  suspend(request: ChangeTarget & { readonly untilMs?: number }): Promise<ChangeReport>;
  /** suspended -> pending. */
  resume(request: ChangeTarget): Promise<ChangeReport>;
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
  close(): Promise<void>;
}
