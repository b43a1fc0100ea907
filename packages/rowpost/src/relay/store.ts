/**
 * The relay's store port: leases, scan, claim, settle, and the small work of housekeeping.
 * Implemented once in databases/sql over whole statements per dialect. Every method that changes a
 * message checks, in the same statement, that this owner still holds the message's shard at the
 * epoch it acquired (rule: takeover-fence): a relay that lost its lease changes nothing.
 */
import type { Diagnosis, OldTransaction } from "../admin/doctor/diagnosis.ts";
import type { MessageState } from "../message/states.ts";
import type { RowRefusedError } from "../runtime/errors.ts";
import type { Executor } from "../transactions/executor.ts";
import type { EventMessage } from "./events.ts";
import type { MessageGauge } from "./housekeeping/gauge.ts";
import type { RelayReport } from "./relay-report.ts";

export type { RelayReport };

/** Who may relay a shard until when, as it stands in the table. */
export interface ShardLease {
  /** Its number, from 0. */
  readonly shard: number;
  /** Random id of the owning relay's start; undefined = free. */
  readonly owner: string | undefined;
  /** Decimal string. Grows with each acquisition, one's own too (rule: watched-sending). */
  readonly epoch: string;
  /**
   * Lease end by the database clock, as an opaque text: only compared for being unchanged (rule:
   * hand-over).
   */
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

/**
 * What fences a statement: the owner, and the epoch of each shard that the statement's messages
 * belong to.
 */
export interface Fence {
  readonly owner: string;
  /** Index = shard; undefined = not held. */
  readonly epochs: readonly (string | undefined)[];
}

/** What this table lets a relay do, found out by {@link RelayStore.open}. */
export interface TableAbilities {
  /**
   * There is an index that begins with (state, topic) or, partial on waiting rows, with topic:
   * waiting rows are found by topic without reading those of others.
   */
  readonly scansByTopic: boolean;
  /**
   * next_retry_at is precise to the millisecond and reaches beyond the year 3000, and there is an
   * ordering key.
   */
  readonly setsBehind: boolean;
  /**
   * For each missing ability that an index would give: the one CREATE INDEX statement, for the log.
   */
  readonly missingIndexes: readonly string[];
  /**
   * The zone of the table's instants, where they are not in UTC and it has daylight saving: in the
   * hour that it repeats in autumn, a wait can be an hour longer.
   */
  readonly shiftingZone?: string | undefined;
  /** What else is wrong with the table, though a relay can work on it. */
  readonly findings?: readonly Diagnosis[];
}

/** A waiting message, as a scan returns it. */
export interface ScannedMessage {
  /** Decimal string. */
  readonly id: string;
  readonly shard: number;
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  /** Null: larger than the request's bodyLimit; {@link RelayStore.readBodies} reads it. */
  readonly body: string | null;
  /** The column holds NULL: nobody can send it. */
  readonly isBodyNull: boolean;
  /** Length of the body as it is stored; 0 for a row of a shard that was not asked for. */
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
  /** It was `sent` before (a resend): stands outside its key's order (rule: key-order). */
  readonly resend: boolean;
  /**
   * Milliseconds since it could first be sent, by the database clock, however often it was tried
   * since; for metrics, and for how long the slow tier tries it.
   */
  readonly waitingMs: number;
  /** True: from the due branch (next_retry_at <= now); false: from the immediate branch. */
  readonly due: boolean;
}

export interface ScanRequest {
  /**
   * Shards to look at; undefined = all (no shard predicate in the statement). With shards, rows of
   * other shards that the scan met may be returned as well, with an empty body: nobody may claim
   * them, but they tell how far the scan came and whether a branch was full (rule: bounded-scan).
   */
  readonly shards: readonly number[] | undefined;
  /**
   * Immediate branch: only ids greater than this; "0" = from the start. A hint within one sweep,
   * never a position (rule: bounded-scan).
   */
  readonly afterId: string;
  readonly immediateLimit: number;
  readonly dueLimit: number;
  /**
   * Due branch: rows of other shards that are known to stand in it, read on top of `dueLimit`.
   * Default 0.
   */
  readonly foreignDue?: number | undefined;
  /**
   * When given: only rows of these topics, each with its own cursor and limits; those of the
   * request itself are then ignored. Reads nothing of other topics where the table has the ability.
   */
  readonly topics?: readonly TopicScan[] | undefined;
  /** A body of more bytes than this is not returned. */
  readonly bodyLimit: number;
}

/** What a scan by topic asks of one topic; as in {@link ScanRequest}. */
export interface TopicScan {
  readonly topic: string;
  readonly afterId: string;
  readonly immediateLimit: number;
  readonly dueLimit: number;
  readonly foreignDue?: number | undefined;
}

/**
 * An unfinished row of an ordering key: what may stand before a candidate (rule: key-order). Sorted
 * by key, then id.
 */
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

/**
 * Which row a claim, a settle or a recovery means: the row, its shard, and its version when it was
 * read.
 */
export interface RowToken {
  readonly id: string;
  readonly shard: number;
  /** claim: as scanned. settle: as claimed (= scanned + 1). */
  readonly deliveryCount: number;
  /**
   * Decimal string, since a table of somebody's own may begin at a snowflake. "0" where the layout
   * has none.
   */
  readonly lockVersion: string;
  /**
   * The database's hash of message type and key (SQLite: both as they are): whose row it is. After
   * a fail-over that lost commits another message may stand under the same id, at the same version
   * (rule: claim-token).
   */
  readonly identityHash: string;
}

/** Outcome of one message. `toState` with `from` must be a legal transition. */
export interface Outcome extends RowToken {
  readonly toState: "sent" | "pending" | "failed";
  /** Broker's receipt; only for sent. */
  readonly messageId: string | null;
  /** Added to retry_count: 1 for a counted attempt. */
  readonly retryDelta: 0 | 1;
  /**
   * Added to delivery_count: -1 takes back what the claim of an uncounted return has added; a
   * counted attempt makes it what retry_count becomes.
   */
  readonly deliveryDelta: number;
  /**
   * next_retry_at in milliseconds from the database's now; null = NULL. For pending it is never set
   * below deliver_at.
   */
  readonly nextRetryInMs: number | null;
  /** Null leaves the column as it is (sent: sets it NULL). */
  readonly failReason: string | null;
}

/** A row as it is now. */
export interface RowNow {
  readonly id: string;
  readonly state: MessageState | "unknown";
  readonly deliveryCount: number;
  readonly lockVersion: string;
  readonly identityHash: string;
  /** It is still in our hands, but somebody holds its lock: to be written later. */
  readonly isHeld?: boolean | undefined;
}

/** A row in `sending`, for the sweep of rule: watched-sending. */
export interface SendingRow extends RowToken {
  readonly topic: string;
}

/** A row that housekeeping failed because nobody could ever have sent it. */
export interface FailedStray extends EventMessage {
  readonly reason: string;
}

/** Unfinished messages by what they wait for; each count ends at about 10,000. */
export interface LeftMessages {
  /** Could be sent now. */
  readonly due: number;
  /** Wait for their next attempt. */
  readonly backoff: number;
  /** Until the first of them is due; undefined: there is none. */
  readonly nextBackoffInMs: number | undefined;
  /** Wait for the time that they were enqueued with. */
  readonly delayed: number;
  /** Are set behind an earlier message of their ordering key. */
  readonly behind: number;
  /** In the hands of a relay, perhaps of a dead one. */
  readonly sending: number;
  /** Tried again late, or only by a person. */
  readonly failed: number;
  /** Held back by a person or a rule. */
  readonly suspended: number;
}

/**
 * A row that housekeeping has to decide about: next_retry_at has come in `sent`, `failed` or
 * `suspended`.
 */
export interface TimedRow extends SendingRow {
  readonly state: "sent" | "failed" | "suspended";
  readonly type: string;
  readonly key: string;
  readonly retryCount: number;
  /** Milliseconds since gmt_create. */
  readonly ageMs: number;
  /** Of a `sent` row: what a consumer has reported, `NOT_CONSUMED: …`. */
  readonly failReason: string | null;
}

/** What housekeeping decided for a {@link TimedRow}. */
export interface TimedDecision extends RowToken {
  /**
   * `clearTimer` changes no state: a `failed` row is not looked at again; a `sent` one goes on
   * waiting for its confirmation, without a deadline.
   */
  readonly transition: "slowRetry" | "resume" | "confirmTimeoutResend" | "confirmTimeoutFail" | "clearTimer";
  readonly failReason: string | null;
  readonly nextRetryInMs: number | null;
}

/**
 * A rule that suspends more than one message: an ordering key, a topic, a type, or the whole relay.
 */
export interface SuspensionRule {
  /** What it holds back. */
  readonly scope: "ordering_key" | "topic" | "type" | "relay";
  /** The key, topic or type; "*" for the relay. */
  readonly value: string;
  /** Why. */
  readonly reason: string;
  /** Who. */
  readonly author: string;
  /** Milliseconds until it ends; null = until it is lifted. */
  readonly endsInMs: number | null;
}

/** A relay instance that reported lately. */
export interface RelayInstance {
  /** Random id, as in the lease rows. */
  readonly owner: string;
  /** host:pid, for people. */
  readonly label: string;
  /** It has told of itself lately. */
  readonly alive: boolean;
}

/** A relay that has reported itself within the last day, as others see it. */
export interface RelayStatus extends RelayInstance {
  /** Since its last sign of life, by the database's clock. */
  readonly silentMs: number;
  /** Undefined: it has written none yet, or its version writes none. */
  readonly report: RelayReport | undefined;
  /** Age of the report. Its own durations count to now. */
  readonly reportAgeMs: number | undefined;
}

export interface LeaseView {
  readonly leases: readonly ShardLease[];
  readonly instances: readonly (RelayInstance & SessionLock)[];
  readonly suspensions: readonly SuspensionRule[];
}

/** What tells that a relay is dead before its leases end (rule: session-lock). */
export interface SessionLock {
  /**
   * Name of the lock that the relay's lease session holds, for as long as it lives; undefined: its
   * connection proves nothing, the lease alone decides.
   */
  readonly lock?: string | undefined;
}

/** Leases: narrow enough to be simulated. */
export interface LeaseStore {
  /**
   * Reports this instance as alive, prolongs its leases to now + leaseMs, and reads all leases,
   * live instances and suspension rules. Returns which held shards were still ours: a shard missing
   * from `held` is lost.
   */
  heartbeat(request: {
    readonly owner: string;
    readonly label: string;
    readonly leaseMs: number;
    /** An instance silent for this long is not alive. */
    readonly instanceTimeoutMs: number;
    readonly held: readonly HeldShard[];
  }): Promise<LeaseView & { readonly held: readonly HeldShard[] }>;
  /**
   * Takes shards whose lease row still is exactly as observed (owner, epoch, lease_until), epoch +
   * 1, and in the same transaction, by a second statement, brings their `sending` rows back to
   * pending (and in `sendingMark: "off"` mode adds 1 to delivery_count of the listed ids). Returns
   * the shards taken and the number of rows recovered.
   */
  acquire(request: {
    readonly owner: string;
    readonly leaseMs: number;
    readonly observed: readonly ShardLease[];
  }): Promise<{ readonly acquired: readonly HeldShard[]; readonly recovered: number }>;
  /** Gives shards away: owner NULL. Only those still ours at that epoch. */
  release(request: { readonly owner: string; readonly shards: readonly HeldShard[] }): Promise<void>;
  /** What the relays of the last day say of themselves. */
  reports(): Promise<readonly RelayStatus[]>;
  /** Writes what this instance says of itself beside its heartbeat: JSON, for people elsewhere. */
  report(request: { readonly owner: string; readonly report: string }): Promise<void>;
  /** Removes this instance from the registry. */
  leave(owner: string): Promise<void>;
  /** Of these session locks, those that nobody holds: their sessions have ended. */
  freeLocks(locks: readonly string[]): Promise<readonly string[]>;
  /** Calls `listener` each time the session that holds our own lock is lost. */
  onSessionLost(listener: () => void): void;
}

/** The relay's work on messages. */
export interface RelayStore {
  /**
   * Opens sessions, checks the layout against the live table. Throws `SchemaError` that names what
   * is missing and the command that helps.
   */
  open(options: RelayStoreOptions): Promise<TableAbilities>;
  readonly leases: LeaseStore;
  readonly housekeeping: HousekeepingStore;
  /** Due and immediate pending rows, READ COMMITTED, no locks. */
  scan(request: ScanRequest): Promise<ScannedMessage[]>;
  /** Bodies that a scan left out, by id. A row that is gone is missing. */
  readBodies(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Topics that have waiting rows, at any time, and are not in `known`; at most `limit`. Some may
   * have no row that is due: a superset is cheaper.
   */
  waitingTopics(request: { readonly known: readonly string[]; readonly limit: number }): Promise<string[]>;
  /**
   * Unfinished rows (pending, sending, suspended, and failed when `failedBlocks`) of these keys
   * with id <= the given id.
   */
  keyQueues(request: {
    readonly keys: readonly { readonly orderingKey: string; readonly upToId: string }[];
    readonly failedBlocks: boolean;
  }): Promise<KeyQueueRow[]>;
  /**
   * pending -> sending, delivery_count + 1, lock_version + 1. Returns the number of rows that
   * changed. Passes over rows that the table refuses, as every call of housekeeping does.
   */
  claim(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Promise<number>;
  /**
   * Of the rows given as claimed, those that ARE in `sending` with exactly this token while the
   * fence still holds (rule: watched-sending).
   */
  verifyClaim(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Promise<string[]>;
  /**
   * `sendingMark: "off"`: replaces each held shard's list of ids in flight in its own lease row,
   * fenced. Returns the shards that matched; only their ids may be published (rule:
   * listed-in-flight).
   */
  listInFlight(request: {
    readonly fence: Fence;
    readonly idsByShard: readonly { readonly shard: number; readonly ids: readonly string[] }[];
  }): Promise<number[]>;
  /**
   * Writes outcomes, one statement for those `sent` and one for the rest. `elapsedMs`: how long ago
   * the attempt began (last_retry_at). Returns the rows that are not as their outcome says, as they
   * are now: empty when all were written, now or by an earlier copy of this settle. A row that
   * somebody holds locked keeps no other one waiting: it comes back with `isHeld`. Throws
   * `RowRefusedError` when the table does not take one of them; those `sent` may be written then.
   */
  settle(request: {
    readonly fence: Fence;
    readonly outcomes: readonly Outcome[];
    readonly elapsedMs: number;
    /** State that the rows were claimed in: `sending`, or `pending` with sendingMark off. */
    readonly from: "sending" | "pending";
    /**
     * `archive`, `delete`: what becomes at once of rows that are `sent` and wait for no
     * confirmation; a row that is gone counts as settled. Default `keep`.
     */
    readonly onSent?: "keep" | "archive" | "delete" | undefined;
  }): Promise<RowNow[]>;
  /**
   * Storing and settling in one transaction, for a broker that keeps messages in this database:
   * locks those of these rows that are as they were claimed and that nobody else holds, calls
   * `store` with their ids, writes what it resolves to (all `sent`), and commits. Resolves to the
   * ids that were settled. When the fence lets fewer rows through than were stored, nothing is
   * written, and it resolves to none. Rejects with what `store` rejects with, with errors of the
   * database, and, perhaps written, with `CommitUnknownError`.
   */
  settleWithin(request: {
    readonly fence: Fence;
    /** As claimed. */
    readonly rows: readonly RowToken[];
    readonly from: "sending" | "pending";
    readonly onSent: "keep" | "archive" | "delete";
    readonly elapsedMs: () => number;
    readonly store: (tx: Executor, ids: ReadonlySet<string>) => Promise<readonly Outcome[]>;
    /** For tests. */
    readonly beforeCommit: () => void | Promise<void>;
  }): Promise<ReadonlySet<string>>;
  /**
   * Drops every session, and proves that none of their statements can still take effect (rule:
   * claim-token for layouts without a claim token). New sessions are opened on the next call.
   */
  abandonSessions(): Promise<void>;
  close(): Promise<void>;
}

/** Options of {@link RelayStore.open}. */
export interface RelayStoreOptions {
  readonly sendingMark: "on" | "off";
  readonly statementTimeoutMs: number;
  readonly lockWaitTimeoutMs: number;
  /** Aborted: every connection is cut, every call fails at once, and none is opened any more. */
  readonly signal?: AbortSignal | undefined;
  /** Called for each row that a call has passed over because the table refuses it. */
  readonly onRowRefused?: ((refusal: RowRefusal) => void) | undefined;
}

/**
 * A row that the table does not take as it was to be written: a CHECK, a trigger, a foreign key.
 * Others of its statement were written without it.
 */
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
  /** Undefined: the statement picks its rows itself. */
  readonly id: string | undefined;
  /** With the database's words. */
  readonly error: RowRefusedError;
}

/**
 * Housekeeping: by the holder of shard 0, small batches. All fenced by that lease, and for messages
 * by their own shard's where a relay owns them.
 */
export interface HousekeepingStore {
  /** Rows in `sending` in these shards, at most `limit`. */
  listSending(request: {
    readonly shards: readonly number[] | undefined;
    readonly limit: number;
  }): Promise<SendingRow[]>;
  /**
   * sending -> pending, fenced, token compared. Passes over rows that somebody else holds locked.
   * Returns the number of rows.
   */
  recover(request: { readonly fence: Fence; readonly rows: readonly RowToken[] }): Promise<number>;
  /** Rows in sent, failed, suspended whose next_retry_at has come. */
  listTimed(request: { readonly limit: number }): Promise<TimedRow[]>;
  /**
   * Passes over rows that somebody else holds locked: they stay due and are listed again. Returns
   * the number of rows that changed.
   */
  applyTimed(request: { readonly decisions: readonly TimedDecision[] }): Promise<number>;
  /**
   * Rows in no known state, and pending ones whose id is below 1, where no scan looks -> failed,
   * with a reason. Returns them.
   */
  failUnknownStates(request: { readonly limit: number }): Promise<readonly FailedStray[]>;
  /** What is left to be sent, bounded: each count ends at about 10,000. */
  left(): Promise<LeftMessages>;
  /**
   * pending -> failed for rows that cannot be sent as they are (broken headers or body, too many
   * recoveries). Fenced. Passes over rows that somebody else holds locked, as the next two do.
   */
  failPending(request: {
    readonly fence: Fence;
    readonly rows: readonly (RowToken & { readonly failReason: string })[];
    readonly nextRetryInMs: number | null;
  }): Promise<number>;
  /**
   * pending -> suspended for rows under a suspension rule, when the rule still stands in the table:
   * the caller's may be as old as its last heartbeat, and a row suspended by a rule that was lifted
   * meanwhile would never be resumed. Fenced. Returns the number.
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
   * Parks pending rows of a broken topic or behind a blocked head: next_retry_at = now + parkMs,
   * fenced; not a transition (rule: bounded-scan).
   */
  park(request: {
    readonly fence: Fence;
    readonly rows: readonly RowToken[];
    readonly parkMs: number;
  }): Promise<number>;
  /**
   * Sets pending rows behind their head message: out of every scan until they are brought back. Not
   * a transition. Fenced, token compared; and only while the head stands there unfinished (pending,
   * sending, suspended, failed) with the same ordering key. The statement locks the head, so that
   * it cannot settle between the look at it and the write: nobody would bring the followers back.
   * Passes over heads and rows that somebody else holds locked. Rows behind a head whose id is
   * above 2.0e14 stay. Returns the number of rows that changed.
   */
  setBehind(request: {
    readonly fence: Fence;
    readonly rows: readonly (RowToken & { readonly headId: string })[];
  }): Promise<number>;
  /**
   * Brings rows back that stand behind these messages, those behind the lowest head first, lowest
   * ids first: next_retry_at = deliver_at when that is ahead, else NULL. Passes over rows that
   * somebody else holds locked. Returns the number of rows; below `limit`: there are no others that
   * are free.
   */
  bringBack(request: { readonly headIds: readonly string[]; readonly limit: number }): Promise<number>;
  /**
   * The next messages in the order of ids that have rows behind them, and whether each still stands
   * in front: it is there, pending, sending or suspended, or failed where that blocks.
   */
  headsOfBehind(request: {
    readonly afterHeadId: string;
    readonly limit: number;
    readonly failedBlocks: boolean;
  }): Promise<readonly { readonly headId: string; readonly stands: boolean }[]>;
  /**
   * Brings backed-off pending rows of a topic forward, and the slow retry of failed ones, in id
   * order, ramped; never below deliver_at (rule: delay-is-not-retry). Rows that are set behind
   * stay.
   */
  resetBackoff(request: { readonly topic: string; readonly limit: number; readonly stepMs: number }): Promise<number>;
  /** The database's clock, in milliseconds of the epoch. */
  clockMs(): Promise<number>;
  /**
   * Transactions that are older than that and keep the row versions of so many others: at most 5,
   * the worst first. Undefined: this user may not look, or this database knows no such thing.
   */
  oldTransactions(request: {
    readonly olderThanMs: number;
    readonly heldTransactions: number;
  }): Promise<readonly OldTransaction[] | undefined>;
  /**
   * Brings pending rows that have failed before, and wait longer than `beyondMs` from now, forward,
   * in id order, ramped; never below deliver_at. Rows that are set behind, and held ones, stay.
   */
  shortenWaits(request: {
    readonly beyondMs: number;
    readonly limit: number;
    readonly stepMs: number;
  }): Promise<number>;
  /**
   * Moves finished rows to the archive, or deletes them: locked with their state, one transaction,
   * counts compared (rule: checked-move). Returns the number.
   */
  removeFinished(request: {
    readonly mode: "archive" | "delete";
    readonly states: readonly ("sent" | "consumed")[];
    /** Only rows that have been in that state this long. */
    readonly olderThanMs: number;
    readonly limit: number;
  }): Promise<number>;
  /** Deletes archived rows older than this. */
  purgeArchive(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  /** Deletes what consumers have confirmed that long ago. */
  forgetConfirmations(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  /** Deletes confirmations of unknown messages that were last said that long ago. */
  forgetUnknown(request: { readonly olderThanMs: number; readonly limit: number }): Promise<number>;
  /**
   * Numbers for gauges: rows by topic and state for unfinished states, and the age of the oldest
   * waiting one. Bounded work.
   */
  gauges(): Promise<readonly MessageGauge[]>;
}
