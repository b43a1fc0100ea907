/**
 * The operator's port: look at messages and change them by hand. Implemented by databases/sql; used
 * by the CLI, the API and the console.
 */
import type { MessageState } from "../message/states.ts";
import type { RelayInstance, ShardLease, SuspensionRule } from "../relay/store.ts";

/**
 * A message as people see it. Instants are ISO 8601 UTC texts; ids decimal strings. Fields of
 * columns that a layout lacks are undefined.
 */
export interface StoredMessage {
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  readonly state: MessageState | "unknown";
  /** The value in the column, when `state` is `unknown`. */
  readonly rawState: string;
  readonly body: string;
  readonly headers: string | null | undefined;
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

/** Counts by state, and what waits longest. */
export interface OutboxStatus {
  readonly counts: readonly {
    readonly topic: string;
    readonly state: MessageState | "unknown";
    readonly count: number;
    readonly oldestAgeMs: number;
  }[];
  readonly leases: readonly ShardLease[];
  readonly instances: readonly RelayInstance[];
  readonly suspensions: readonly SuspensionRule[];
}

/**
 * Changes by hand: legal transitions only; `changed` rows, and the others with their real state.
 */
export interface ChangeReport {
  readonly changed: number;
  readonly conflicts: readonly { readonly id: string; readonly state: MessageState | "unknown" }[];
}

export interface MessageAdmin {
  status(): Promise<OutboxStatus>;
  /** Newest first, keyset paged: pass the last id as `beforeId`. At most 1,000. */
  list(request: {
    readonly filter: MessageFilter;
    readonly limit: number;
    readonly beforeId?: string;
    readonly archived?: boolean;
  }): Promise<StoredMessage[]>;
  show(
    identity: { readonly id: string } | { readonly type: string; readonly key: string },
  ): Promise<StoredMessage | undefined>;
  /** failed (and sent, with `resend`) -> pending, retry_count = 0. */
  retry(request: {
    readonly filter: MessageFilter;
    readonly action: OperatorAction;
    readonly resend?: boolean;
    readonly limit: number;
  }): Promise<ChangeReport>;
  /** pending, failed -> suspended. */
  suspend(request: {
    readonly filter: MessageFilter;
    readonly action: OperatorAction;
    readonly untilMs?: number;
    readonly limit: number;
  }): Promise<ChangeReport>;
  /** suspended -> pending. */
  resume(request: {
    readonly filter: MessageFilter;
    readonly action: OperatorAction;
    readonly limit: number;
  }): Promise<ChangeReport>;
  /** Adds or replaces a suspension rule; relays notice within a heartbeat. */
  suspendScope(rule: SuspensionRule): Promise<void>;
  /** Lifts a rule and resumes the rows that it suspended, in batches. Returns how many. */
  resumeScope(request: {
    readonly scope: SuspensionRule["scope"];
    readonly value: string;
    readonly action: OperatorAction;
  }): Promise<number>;
  /** sent, consumed (and failed, named) -> archive or deleted. */
  remove(request: {
    readonly filter: MessageFilter;
    readonly mode: "archive" | "delete";
    readonly action: OperatorAction;
    readonly limit: number;
  }): Promise<number>;
  close(): Promise<void>;
}
