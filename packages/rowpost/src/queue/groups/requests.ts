/** What is asked of groups, and what is answered. */

/** A partition of a group as its rows say. */
export interface StoredGroupPartition {
  readonly group: string;
  readonly partition: number;
  /** The lowest id that the group has not finished. */
  readonly nextId: string;
  /** The last one that was given. */
  readonly lastId: string;
  readonly round: number;
  readonly owner: string | null;
  readonly label: string | null;
  readonly heldSince: string | null;
  /** Since a settle was written last; null: never. */
  readonly movedMs: number | null;
  /** Since the owner's last sign of life; null: it has signed off. */
  readonly seenMs: number | null;
  readonly pausedAt: string | null;
  readonly pausedBy: string | null;
  readonly pauseReason: string | null;
}

/** What a group has not read of a partition. */
export interface Unread {
  /** At most the limit. */
  readonly messages: number;
  readonly first: { readonly id: string; readonly key: string | null; readonly type: string | null } | undefined;
}

/** Of the first rows of a partition in message_redelivery. */
export interface RedeliveryCounts {
  readonly waiting: number;
  /** Of these, what waits behind another one of its ordering key. */
  readonly behind: number;
  readonly dead: number;
  /** The lowest waiting id. */
  readonly oldest: string | null;
}

/** A row of message_redelivery. */
export interface StoredRedelivery {
  readonly id: string;
  readonly partition: number;
  /** A rewind sets rows aside: those are neither. */
  readonly state: "waiting" | "dead" | "aside";
  readonly attempt: number;
  /** Null for one that waits behind another one of its ordering key. */
  readonly nextAttemptAt: string | null;
  readonly failReason: string | null;
  readonly orderingKey: string | null;
  readonly changedAt: string;
}

/** Who did it, and why. */
export interface HandNote {
  readonly author: string;
  readonly reason: string;
  readonly ip: string | null;
}

/** What became of one message of a change by hand. */
export interface HandResult {
  readonly id: string;
  /** `absent`: it is in no state that could be changed, and there is no redelivery of it. */
  readonly result: "changed" | "waiting" | "dead" | "aside" | "absent";
}

/** A message is taken out of a group's hands: by whom, and what its record says. */
export interface Removal {
  readonly ids: readonly string[];
  readonly from: "dead" | "waiting or dead";
  readonly result: "skipped" | "discarded";
  readonly note: HandNote;
}
