/**
 * Store port of the relay, implemented once in databases/sql over whole statements per dialect.
 * Every change of a message checks in the same statement that this owner holds the shard at the
 * acquired epoch (rule: takeover-fence): a relay that lost its lease changes nothing.
 */
import type { Diagnosis, OldTransaction } from "../admin/doctor/diagnosis.ts";
import type { MessageState } from "../message/states.ts";
import type { RowRefusedError } from "../runtime/errors.ts";
import type { Executor } from "../transactions/executor.ts";
import type { EventMessage } from "./events.ts";
import type { MessageGauge } from "./housekeeping/gauge.ts";
import type { RelayReport } from "./relay-report.ts";

export type { RelayReport };

/** The lease of a shard, as stored. */
export interface ShardLease {
  /** Number from 0. */
  readonly shard: number;
  /** Random id of the owning relay; undefined: free. */
  readonly owner: string | undefined;
  /**
   * Decimal string. Grows with each acquisition, also by the same owner (rule: watched-sending).
   */
  readonly epoch: string;
  /** End by the database clock, as an opaque text: only compared for equality (rule: hand-over). */
  readonly leaseUntil: string;
  /** Lease length of the owner. */
  readonly leaseMs: number;
}

/**
 * A shard that this relay holds. There are 16, hash(ordering key, else message key) mod 16; SQLite
 * has one (rule: sqlite-handle).
 */
export interface HeldShard {
  readonly shard: number;
  readonly epoch: string;
}

/** Fences a statement: the owner, and the epoch of each shard of the statement's messages. */
export interface Fence {
  readonly owner: string;
  /** Index = shard; undefined = not held. */
  readonly epochs: readonly (string | undefined)[];
}

/** Abilities of the table, detected by {@link RelayStore.open}. */
export interface TableAbilities {
  /** An index begins with (state, topic) or, partial on waiting rows, with topic. */
  readonly scansByTopic: boolean;
  /**
   * next_retry_at has millisecond precision and reaches beyond the year 3000, and there is an
   * ordering key.
   */
  readonly setsBehind: boolean;
  /** One CREATE INDEX per missing ability, for the log. */
  readonly missingIndexes: readonly string[];
  /**
   * Zone with daylight saving of instants not in UTC: in the hour repeated in autumn, a wait can be
   * an hour longer.
   */
  readonly shiftingZone?: string | undefined;
  readonly findings?: readonly Diagnosis[];
}

/** A waiting message from a scan. */
export interface ScannedMessage {
  /** Decimal string. */
  readonly id: string;
  readonly shard: number;
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  /** Null when larger than the request's bodyLimit; {@link RelayStore.readBodies} reads it. */
  readonly body: string | null;
  readonly isBodyNull: boolean;
  /** 0 for a row of a shard that was not requested. */
  readonly bodyBytes: number;
  /** JSON text of the headers column; null = none. */
  readonly headers: string | null;
  /** Null = application/json. */
  readonly contentType: string | null;
  readonly orderingKey: string | null;
  readonly retryCount: number;
  /** 0 where the layout has no such column. */
  readonly deliveryCount: number;
  readonly lockVersion: string;
  readonly identityHash: string;
  /** It was `sent` before (a resend): outside its key's order (rule: key-order). */
  readonly resend: boolean;
  /**
   * Time since it could first be sent, by the database clock, regardless of attempts; for metrics
   * and the slow tier.
   */
  readonly waitingMs: number;
  /** From the due branch (next_retry_at <= now), or the immediate one. */
  readonly due: boolean;
}

export interface ScanRequest {
  /**
   * Undefined = all. With shards, other rows may be returned too, with an empty body: they must not
   * be claimed, but show how far the scan came (rule: bounded-scan).
   */
  readonly shards: readonly number[] | undefined;
  /**
   * Immediate branch: only greater ids; "0" = from the start. Valid within one sweep (rule:
   * bounded-scan).
   */
  readonly afterId: string;
  readonly immediateLimit: number;
  readonly dueLimit: number;
  /** Rows of other shards in the due branch, read in addition to `dueLimit`. Default 0. */
  readonly foreignDue?: number | undefined;
  /**
   * Only these topics, each with its own cursor and limits. Reads no others where the table has the
   * ability.
   */
  readonly topics?: readonly TopicScan[] | undefined;
  /** Bodies of more bytes are not returned. */
  readonly bodyLimit: number;
}

/** One topic of a scan by topic; see {@link ScanRequest}. */
export interface TopicScan {
  readonly topic: string;
  readonly afterId: string;
  readonly immediateLimit: number;
  readonly dueLimit: number;
  readonly foreignDue?: number | undefined;
}

/** May precede a candidate of its key (rule: key-order). Sorted by key, then id. */
export interface KeyQueueRow {
  readonly orderingKey: string;
  readonly id: string;
  readonly state: MessageState;
  /** pending, and its next_retry_at is NULL or has come. */
  readonly due: boolean;
  readonly resend: boolean;
  readonly retryCount: number;
  readonly type: string;
}

/** Identifies a row and its version. */
export interface RowToken {
  readonly id: string;
  readonly shard: number;
  /** claim: as scanned. settle: as claimed (= scanned + 1). */
  readonly deliveryCount: number;
  /** "0" where the layout has none. A string, since a user's own table may begin at a snowflake. */
  readonly lockVersion: string;
  /**
   * Hash of message type and key (SQLite: both in plain). After a fail-over that lost commits,
   * another message may have the same id and version (rule: claim-token).
   */
  readonly identityHash: string;
}

/** `from` to `toState` must be a legal transition. */
export interface Outcome extends RowToken {
  readonly toState: "sent" | "pending" | "failed";
  /** Broker's receipt; only for sent. */
  readonly messageId: string | null;
  /** Added to retry_count: 1 for a counted attempt. */
  readonly retryDelta: 0 | 1;
  /**
   * -1 reverts the claim of an uncounted return; a counted attempt sets delivery_count to the new
   * retry_count.
   */
  readonly deliveryDelta: number;
  /** Milliseconds from the database's now; null = NULL. For pending never below deliver_at. */
  readonly nextRetryInMs: number | null;
  /** Null keeps the column (sent: sets it NULL). */
  readonly failReason: string | null;
}

export interface RowNow {
  readonly id: string;
  readonly state: MessageState | "unknown";
  readonly deliveryCount: number;
  readonly lockVersion: string;
  readonly identityHash: string;
  /** Still ours, but locked: to be written later. */
  readonly isHeld?: boolean | undefined;
}

/** For the sweep of rule: watched-sending. */
export interface SendingRow extends RowToken {
  readonly topic: string;
}

export interface FailedStray extends EventMessage {
  readonly reason: string;
}

/** Unfinished messages by what they wait for; each count stops at about 10,000. */
export interface LeftMessages {
  /** Could be sent now. */
  readonly due: number;
  /** Wait for their next attempt. */
  readonly backoff: number;
  /** Time until the first is due; undefined: none. */
  readonly nextBackoffInMs: number | undefined;
  /** Wait for their delivery time. */
  readonly delayed: number;
  /** Wait behind an earlier message of their ordering key. */
  readonly behind: number;
  /** Claimed by a relay, which may be dead. */
  readonly sending: number;
  /** Retried late, or only by a person. */
  readonly failed: number;
  /** Held back by a person or a rule. */
  readonly suspended: number;
}

/** Its next_retry_at has come in `sent`, `failed` or `suspended`. */
export interface TimedRow extends SendingRow {
  readonly state: "sent" | "failed" | "suspended";
  readonly type: string;
  readonly key: string;
  readonly retryCount: number;
  /** Milliseconds since gmt_create. */
  readonly ageMs: number;
  /** Of a `sent` row: a consumer's report, `NOT_CONSUMED: …`. */
  readonly failReason: string | null;
}

/** Decision of housekeeping about a {@link TimedRow}. */
export interface TimedDecision extends RowToken {
  /**
   * `clearTimer` keeps the state: a `failed` row is not looked at again, a `sent` one has no
   * deadline any more.
   */
  readonly transition: "slowRetry" | "resume" | "confirmTimeoutResend" | "confirmTimeoutFail" | "clearTimer";
  readonly failReason: string | null;
  readonly nextRetryInMs: number | null;
}

/** A rule that suspends an ordering key, a topic, a type, or the whole relay. */
export interface SuspensionRule {
  /** Kind of suspended messages. */
  readonly scope: "ordering_key" | "topic" | "type" | "relay";
  /** The key, topic or type; "*" for the relay. */
  readonly value: string;
  /** Reason. */
  readonly reason: string;
  /** Author. */
  readonly author: string;
  /** Milliseconds until it ends; null = until lifted. */
  readonly endsInMs: number | null;
}

/** A relay instance that reported recently. */
export interface RelayInstance {
  /** Random id, as in the lease rows. */
  readonly owner: string;
  /** Readable name, host:pid. */
  readonly label: string;
  /** It reported recently. */
  readonly alive: boolean;
}

/** A relay that reported within the last day, as others see it. */
export interface RelayStatus extends RelayInstance {
  /** Time since its last report, by the database's clock. */
  readonly silentMs: number;
  /** Undefined: none written yet, or by an older version. */
  readonly report: RelayReport | undefined;
  /** Age of the report. Its durations are adjusted to now. */
  readonly reportAgeMs: number | undefined;
}

export interface LeaseView {
  readonly leases: readonly ShardLease[];
  readonly instances: readonly (RelayInstance & SessionLock)[];
  readonly suspensions: readonly SuspensionRule[];
}

/** Proves a relay dead before its leases end (rule: session-lock). */
export interface SessionLock {
  /** Held by the lease session while it lives; undefined: only the lease counts. */
  readonly lock?: string | undefined;
}

/** Leases, in a port small enough to simulate. */
export interface LeaseStore {
  /**
   * Extends this instance's leases to now + leaseMs, and reads all leases, live instances and
   * suspension rules. A held shard missing from `held` is lost.
   */
  heartbeat(request: {
    readonly owner: string;
    readonly label: string;
    readonly leaseMs: number;
    readonly instanceTimeoutMs: number;
    readonly held: readonly HeldShard[];
  }): Promise<LeaseView & { readonly held: readonly HeldShard[] }>;
  /**
   * Takes shards whose lease row is exactly as observed (owner, epoch, lease_until), with epoch +
   * 1. The same transaction brings their `sending` rows back to pending (`sendingMark: "off"`: adds
   * 1 to delivery_count of the listed ids). Returns the shards and the number of recovered rows.
   */
  acquire(request: {
    readonly owner: string;
    readonly leaseMs: number;
    readonly observed: readonly ShardLease[];
  }): Promise<{ readonly acquired: readonly HeldShard[]; readonly recovered: number }>;
  /** Sets owner to NULL, only for shards still ours at that epoch. */
  release(request: { readonly owner: string; readonly shards: readonly HeldShard[] }): Promise<void>;
  reports(): Promise<readonly RelayStatus[]>;
  /** JSON, for people elsewhere. */
  report(request: { readonly owner: string; readonly report: string }): Promise<void>;
  leave(owner: string): Promise<void>;
  /** Free locks: their sessions have ended. */
  freeLocks(locks: readonly string[]): Promise<readonly string[]>;
  /** Called when our own lock's session is lost. */
  onSessionLost(listener: () => void): void;
}

export interface RelayStore {
  /**
   * Checks the layout against the live table. Throws `SchemaError` that names what is missing and
   * the command to fix it.
   */
  open(options: RelayStoreOptions): Promise<TableAbilities>;
  readonly leases: LeaseStore;
  readonly housekeeping: HousekeepingStore;
  /** Due and immediate pending rows, READ COMMITTED, no locks. */
  scan(request: ScanRequest): Promise<ScannedMessage[]>;
  /** By id; deleted rows are missing. */
  readBodies(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Topics outside `known` with waiting rows, due or not: a superset is cheaper. */
  waitingTopics(request: { readonly known: readonly string[]; readonly limit: number }): Promise<string[]>;
  /** Unfinished rows of these keys (failed when `failedBlocks`) with id <= the given id. */
  keyQueues(request: {
    readonly keys: readonly { readonly orderingKey: string; readonly upToId: string }[];
    readonly failedBlocks: boolean;
  }): Promise<KeyQueueRow[]>;
  /**
   * pending -> sending, delivery_count + 1, lock_version + 1. Returns the number of rows. Skips
   * rows that the table refuses, as all housekeeping does.
   */
  claim(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Promise<number>;
  /**
   * Claimed rows in `sending` with exactly this token while the fence holds (rule:
   * watched-sending).
   */
  verifyClaim(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Promise<string[]>;
  /**
   * `sendingMark: "off"`: replaces each held shard's list of ids in flight in its lease row,
   * fenced. Only ids of the returned shards may be published (rule: listed-in-flight).
   */
  listInFlight(request: {
    readonly fence: Fence;
    readonly idsByShard: readonly { readonly shard: number; readonly ids: readonly string[] }[];
  }): Promise<number[]>;
  /**
   * Writes outcomes, one statement for those `sent` and one for the rest. `elapsedMs`: since the
   * attempt began (last_retry_at). Returns rows that differ from their outcome: none when all were
   * written, now or by an earlier copy of this settle. A locked row is returned with `isHeld`.
   * Throws `RowRefusedError` when the table refuses one; those `sent` may be written then.
   */
  settle(request: {
    readonly fence: Fence;
    readonly outcomes: readonly Outcome[];
    readonly elapsedMs: number;
    /** `pending` with sendingMark off. */
    readonly from: "sending" | "pending";
    /**
     * Applied at once to rows `sent` without confirmation; a row that is gone counts as settled.
     * Default `keep`.
     */
    readonly onSent?: "keep" | "archive" | "delete" | undefined;
  }): Promise<RowNow[]>;
  /**
   * For a broker in this database: locks the free rows that are as claimed, calls `store` with
   * their ids, writes the results (all `sent`), and commits. Resolves to the settled ids; to none,
   * with nothing written, when the fence passes fewer rows than were stored. Rejects with errors of
   * `store` and the database, and with `CommitUnknownError` when it may have been written.
   */
  settleWithin(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly from: "sending" | "pending";
    readonly onSent: "keep" | "archive" | "delete";
    readonly elapsedMs: () => number;
    readonly store: (tx: Executor, ids: ReadonlySet<string>) => Promise<readonly Outcome[]>;
    /** For tests. */
    readonly beforeCommit: () => void | Promise<void>;
  }): Promise<ReadonlySet<string>>;
  /**
   * Drops every session and proves that none of their statements can still take effect (rule:
   * claim-token). The next call opens new ones.
   */
  abandonSessions(): Promise<void>;
  close(): Promise<void>;
}

export interface RelayStoreOptions {
  readonly sendingMark: "on" | "off";
  readonly statementTimeoutMs: number;
  readonly lockWaitTimeoutMs: number;
  /** On abort every connection is cut and every call fails. */
  readonly signal?: AbortSignal | undefined;
  readonly onRowRefused?: ((refusal: RowRefusal) => void) | undefined;
}

/** Refused by a CHECK, a trigger or a foreign key. Other rows of the statement were written. */
export interface RowRefusal {
  readonly doing:
    | "claim"
    | "recover"
    | "timer"
    | "fail"
    | "suspend"
    | "park"
    | "set behind"
    | "bring back"
    | "bring forward"
    | "archive"
    | "delete";
  /** Undefined: the statement selects its rows itself. */
  readonly id: string | undefined;
  /** Contains the database's message. */
  readonly error: RowRefusedError;
}

/**
 * Work of the holder of shard 0, in small batches. Fenced by that lease, and for owned messages by
 * their own shard's.
 */
export interface HousekeepingStore {
  listSending(request: {
    readonly shards: readonly number[] | undefined;
    readonly limit: number;
  }): Promise<SendingRow[]>;
  /** sending -> pending, fenced, token compared. Skips locked rows. Returns the number. */
  recover(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Promise<number>;
  /** Their next_retry_at has come. */
  listTimed(request: { readonly limit: number }): Promise<TimedRow[]>;
  /** Skips locked rows, which stay due. Returns the number of changed rows. */
  applyTimed(request: { readonly decisions: readonly TimedDecision[] }): Promise<number>;
  /**
   * Rows in an unknown state, and pending ones with an id below 1, where no scan looks -> failed,
   * with a reason.
   */
  failUnknownStates(request: { readonly limit: number }): Promise<readonly FailedStray[]>;
  left(): Promise<LeftMessages>;
  /**
   * pending -> failed for rows that cannot be sent (broken headers or body, too many recoveries).
   * Fenced. Skips locked rows, as the next two do.
   */
  failPending(request: {
    readonly fence: Fence;
    readonly rows: readonly (RowToken & { readonly failReason: string })[];
    readonly nextRetryInMs: number | null;
  }): Promise<number>;
  /**
   * pending -> suspended under a rule that still exists in the table: a row suspended by a lifted
   * rule would never be resumed. Fenced. Returns the number.
   */
  suspendPending(request: {
    /** Undefined: not looked up. */
    readonly rule?: Pick<SuspensionRule, "scope" | "value"> | undefined;
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly failReason: string;
    readonly endsInMs: number | null;
  }): Promise<number>;
  /**
   * Parks pending rows: next_retry_at = now + parkMs, fenced; not a transition (rule:
   * bounded-scan).
   */
  park(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly parkMs: number;
  }): Promise<number>;
  /**
   * Sets pending rows behind their head, out of every scan until they are brought back. Not a
   * transition. Fenced, token compared; only while the head is unfinished with the same ordering
   * key. Locks the head, so that it cannot settle meanwhile and strand its followers. Skips locked
   * heads and rows, and rows behind a head whose id is above 2.0e14. Returns the number of changed
   * rows.
   */
  setBehind(request: {
    readonly fence: Fence;
    readonly rows: readonly (RowToken & { readonly headId: string })[];
  }): Promise<number>;
  /**
   * Brings back rows behind these messages, lowest head first, then lowest ids: next_retry_at =
   * deliver_at when that is ahead, else NULL. Skips locked rows. Below `limit`: no others are free.
   */
  bringBack(request: { readonly headIds: readonly string[]; readonly limit: number }): Promise<number>;
  /**
   * The next messages in id order with rows behind them, and whether each still blocks: pending,
   * sending or suspended, or failed where that blocks.
   */
  headsOfBehind(request: {
    readonly afterHeadId: string;
    readonly limit: number;
    readonly failedBlocks: boolean;
  }): Promise<readonly { readonly headId: string; readonly stands: boolean }[]>;
  /**
   * Brings a topic's pending rows in backoff and slow retries forward, in id order, ramped; never
   * below deliver_at (rule: delay-is-not-retry). Rows behind a head stay.
   */
  resetBackoff(request: { readonly topic: string; readonly limit: number; readonly stepMs: number }): Promise<number>;
  /** Epoch milliseconds. */
  clockMs(): Promise<number>;
  /**
   * Transactions older than that which retain the row versions of this many others: at most 5,
   * worst first. Undefined: not permitted or not available.
   */
  oldTransactions(request: {
    readonly olderThanMs: number;
    readonly heldTransactions: number;
  }): Promise<readonly OldTransaction[] | undefined>;
  /**
   * Brings forward pending rows that failed before and wait longer than `beyondMs`, in id order,
   * ramped; never below deliver_at. Rows behind a head, and locked ones, stay.
   */
  shortenWaits(request: {
    readonly beyondMs: number;
    readonly limit: number;
    readonly stepMs: number;
  }): Promise<number>;
  /**
   * Archives or deletes finished rows: locked with their state, one transaction, counts compared
   * (rule: checked-move). Returns the number.
   */
  removeFinished(request: {
    readonly mode: "archive" | "delete";
    readonly states: readonly ("sent" | "consumed")[];
    readonly olderThanMs: number;
    readonly limit: number;
  }): Promise<number>;
  /** Deletes archived rows older than this. */
  purgeArchive(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  /** Deletes consumer confirmations older than this. */
  forgetConfirmations(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  forgetUnknown(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  /** Unfinished rows by topic and state, with the oldest waiting one. Bounded work. */
  gauges(): Promise<readonly MessageGauge[]>;
}
