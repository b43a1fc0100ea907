/**
 * What a relay tells about itself. Listeners must be quick; a throwing one is logged and changes
 * nothing.
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
  /** A counted attempt failed; the message is tried again after `retryInMs`. */
  readonly retry: { readonly message: EventMessage; readonly reason: string; readonly retryInMs: number };
  /**
   * The message is `failed`: for alerts. `slowRetryInMs` null = only a person can bring it back.
   */
  readonly failed: { readonly message: EventMessage; readonly reason: string; readonly slowRetryInMs: number | null };
  /**
   * No confirmation came in time (`reason` begins with NOT_CONFIRMED), or a consumer has reported
   * that it could not handle the message (NOT_CONSUMED). `action` = what the type's rule says.
   */
  readonly confirmTimeout: {
    readonly message: EventMessage;
    readonly action: "resend" | "fail" | "alert";
    readonly reason: string;
  };
  /**
   * A write changed nothing because the lease was lost or the row changed meanwhile; `state` is
   * what the row is now.
   */
  readonly fenced: { readonly id: string; readonly state: MessageState | "unknown" };
  /**
   * The outcome of a publish could not be recorded before the lease ended: the next owner publishes
   * the message again.
   */
  readonly outcomeLost: { readonly message: EventMessage };
  /** Shards are ours now; `recovered`: messages that their last owner had left in `sending`. */
  readonly shardsAcquired: { readonly shards: readonly number[]; readonly recovered: number };
  /** Leases ended before they were renewed: nothing of these shards is started any more. */
  readonly shardsLost: { readonly shards: readonly number[] };
  /** Shards were given to others, or given back by `stop`. */
  readonly shardsReleased: { readonly shards: readonly number[] };
  /** Rows in `sending` that no window held were brought back to pending (rule: watched-sending). */
  readonly recovered: { readonly count: number };
  /** A topic rests after failures; its messages wait. `reason`: the words of the broker. */
  readonly topicPaused: { readonly topic: string; readonly reason: string };
  /** The topic takes messages again. */
  readonly topicResumed: { readonly topic: string };
  /** Its messages wait, uncounted. `broker`: its name, or behind `routes` the name of the one. */
  readonly brokerAway: { readonly broker: string; readonly reason: string };
  /** The broker can be reached again. */
  readonly brokerBack: { readonly broker: string };
  /**
   * The database cannot be reached, or refuses what a part of the relay asks of it, as `error`
   * says; told once until `databaseBack`.
   */
  readonly databaseAway: { readonly error: unknown };
  /** It does its work again. */
  readonly databaseBack: Record<string, never>;
}
