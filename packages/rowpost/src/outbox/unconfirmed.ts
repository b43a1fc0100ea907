/** Messages that are sent and wait for what their consumers say, as operators see them. */
import type { MessageSummary } from "./message-summary.ts";

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
  /**
   * By type; up to 10,000 messages are counted of those whose deadline has come, and as many
   * others.
   */
  readonly counts: readonly UnconfirmedCount[];
  /**
   * Who has confirmed messages of a type lately: among the last 1,000 confirmations that named a
   * consumer. Types without any are not there.
   */
  readonly consumers: readonly { readonly type: string; readonly consumers: readonly string[] }[];
}
