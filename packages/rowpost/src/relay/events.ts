/**
 * Events of a relay. Listeners must be quick; an error of one is logged and has no other effect.
 */
import type { MessageState } from "../message/states.ts";

/** A message in an event. */
export interface EventMessage {
  /** Primary key of the row, in decimal. */
  readonly id: string;
  /** First part of the identity. */
  readonly type: string;
  /** Second part of the identity. */
  readonly key: string;
  /** Destination on the broker. */
  readonly topic: string;
}

/** Events by name, with their payloads. */
export interface RelayEvents {
  /** The broker's receipt is in the table. */
  readonly sent: { readonly message: EventMessage; readonly messageId: string };
  /** A counted attempt failed; the next follows after `retryInMs`. */
  readonly retry: { readonly message: EventMessage; readonly reason: string; readonly retryInMs: number };
  /**
   * The message is `failed`; use it for alerts. `slowRetryInMs` null: only a person can bring it
   * back.
   */
  readonly failed: { readonly message: EventMessage; readonly reason: string; readonly slowRetryInMs: number | null };
  /**
   * No confirmation came in time (`reason` begins with NOT_CONFIRMED), or a consumer reported that
   * it could not handle the message (NOT_CONSUMED). `action` comes from the type's rule.
   */
  readonly confirmTimeout: {
    readonly message: EventMessage;
    readonly action: "resend" | "fail" | "alert";
    readonly reason: string;
  };
  /**
   * A write changed nothing because the lease was lost or the row changed meanwhile; `state` is the
   * current state of the row.
   */
  readonly fenced: { readonly id: string; readonly state: MessageState | "unknown" };
  /**
   * The outcome of a publish could not be recorded before the lease ended: the next owner publishes
   * the message again.
   */
  readonly outcomeLost: { readonly message: EventMessage };
  /** This relay took shards; `recovered` messages were left in `sending` by their last owner. */
  readonly shardsAcquired: { readonly shards: readonly number[]; readonly recovered: number };
  /** Leases ended before they were renewed: nothing more of these shards is started. */
  readonly shardsLost: { readonly shards: readonly number[] };
  /** Shards were given to others, or back by `stop`. */
  readonly shardsReleased: { readonly shards: readonly number[] };
  /** Rows in `sending` outside any window were brought back to pending (rule: watched-sending). */
  readonly recovered: { readonly count: number };
  /** A topic rests after failures; its messages wait. `reason` is the broker's text. */
  readonly topicPaused: { readonly topic: string; readonly reason: string };
  /** The topic takes messages again. */
  readonly topicResumed: { readonly topic: string };
  /**
   * The broker is away; its messages wait, uncounted. `broker` is its name; with `routes`, the name
   * of the route's broker.
   */
  readonly brokerAway: { readonly broker: string; readonly reason: string };
  /** The broker is reachable again. */
  readonly brokerBack: { readonly broker: string };
  /**
   * The database is unreachable or refuses a part of the relay with `error`; emitted once until
   * `databaseBack`.
   */
  readonly databaseAway: { readonly error: unknown };
  /** The database works again. */
  readonly databaseBack: Record<string, never>;
}
