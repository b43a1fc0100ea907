/**
 * The port of bulk operations: a change by hand of many messages, decided on a preview, that
 * survives the process which does it. Implemented by databases/sql; worked by the console.
 */
import type { MessageState } from "../message/states.ts";
import type { MessageFilter, MessageSummary, OperatorAction, SeenMessage } from "./message-admin.ts";

/** What is done to each message. */
export type BulkKind = "retry" | "resend" | "suspend" | "resume" | "archive" | "delete";

/** `preview`: nobody has started it; `paused` and `running` go on, the others are over. */
export type BulkState = "preview" | "running" | "paused" | "done" | "cancelled" | "failed";

/**
 * A bulk operation. Its messages are those that were found when it was planned, as they were then.
 * In the end `total = changed + conflicts + vanished`.
 */
export interface BulkOperation {
  /** A UUID. */
  readonly id: string;
  /** What is done. */
  readonly kind: BulkKind;
  /** How far it is. */
  readonly state: BulkState;
  /** Which messages were asked for. */
  readonly filter: MessageFilter;
  /** Messages that were found so far. */
  readonly total: number;
  /** All were found; else `total` still grows. */
  readonly planned: boolean;
  /** Messages that were changed. */
  readonly changed: number;
  /** Messages that somebody had changed since: left as they are. */
  readonly conflicts: number;
  /** Messages that are gone. */
  readonly vanished: number;
  /** At most so many messages a second. */
  readonly rate: number;
  /** Who made the preview, and started it. */
  readonly author: string;
  /** Why; empty in a preview. */
  readonly reason: string;
  /** Why it failed; null: it has not. */
  readonly error: string | null;
  /** ISO 8601 UTC. */
  readonly createdAt: string;
  /** ISO 8601 UTC; null: not started. */
  readonly startedAt: string | null;
  /** ISO 8601 UTC; null: not over. */
  readonly endedAt: string | null;
}

/** A message that an operation left as it was. */
export interface BulkConflict {
  /** Its id. */
  readonly id: string;
  /** The state that it was found in. */
  readonly state: MessageState | "unknown";
}

/** What is to be done to which messages. */
export interface BulkRequest {
  /** What is done. */
  readonly kind: BulkKind;
  /** Which messages; an empty one is refused. */
  readonly filter: MessageFilter;
  /** Exactly these, whatever the filter says. At most 10,000. */
  readonly seen?: readonly SeenMessage[] | undefined;
  /** Who asks; nobody else can start it. */
  readonly author: string;
}

/** What a worker has done: a step of an operation, or nothing yet. */
export type BulkStep = { readonly id: string } | { readonly waitMs: number };

/** Bulk operations of one message table. */
export interface BulkStore {
  /**
   * Finds what is meant, up to 10,000 messages of those that there are now, and keeps it for ten
   * minutes. `samples`: the first 20.
   */
  preview(
    request: BulkRequest,
  ): Promise<{ readonly operation: BulkOperation; readonly samples: readonly MessageSummary[] }>;
  /**
   * Lets a preview run; `rate` messages a second, at most. `untilMs`: how long messages are
   * suspended. Started once more it is the same operation. Undefined: there is none of this author,
   * or it is older than ten minutes.
   */
  start(request: {
    readonly id: string;
    readonly action: OperatorAction;
    readonly rate: number;
    readonly untilMs?: number | undefined;
  }): Promise<BulkOperation | undefined>;
  /** Pauses, resumes or cancels it, between two batches. False: it is over, or in that state. */
  move(request: {
    readonly id: string;
    readonly to: "paused" | "running" | "cancelled";
    readonly action: OperatorAction;
  }): Promise<boolean>;
  /** Undefined: there is none. */
  read(id: string): Promise<BulkOperation | undefined>;
  /** The newest first, without previews; at most 100. */
  list(): Promise<BulkOperation[]>;
  /** In the order of ids; at most 10,000 of an operation are kept. */
  conflicts(request: {
    readonly id: string;
    readonly afterId: string;
    readonly limit: number;
  }): Promise<BulkConflict[]>;
  /**
   * Does one batch of an operation that nobody else works on, in one transaction: of the one that
   * has waited longest, so that a slow one holds up no other. Undefined: there is nothing to do.
   * `waitMs`: nothing was done; each that runs keeps its rate for so long.
   */
  work(worker: { readonly owner: string; readonly leaseMs: number }): Promise<BulkStep | undefined>;
  /** Ends its connections. */
  close(): Promise<void>;
}
