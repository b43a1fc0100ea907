export interface StoredGroupPartition {
  readonly group: string;
  readonly partition: number;
  /** The group's lowest unfinished id. */
  readonly nextId: string;
  /** Last id assigned. */
  readonly lastId: string;
  readonly round: number;
  readonly owner: string | null;
  readonly label: string | null;
  readonly heldSince: string | null;
  /** Time since the last settle; null: never. */
  readonly movedMs: number | null;
  /** Time since the owner's last heartbeat; null: it signed off. */
  readonly seenMs: number | null;
  readonly pausedAt: string | null;
  readonly pausedBy: string | null;
  readonly pauseReason: string | null;
}

export interface Unread {
  /** At most the limit. */
  readonly messages: number;
  readonly first: { readonly id: string; readonly key: string | null; readonly type: string | null } | undefined;
}

/** Counts the first rows of a partition in message_redelivery. */
export interface RedeliveryCounts {
  readonly waiting: number;
  /** Waiting behind another message of their ordering key. */
  readonly behind: number;
  readonly dead: number;
  /** The lowest waiting id. */
  readonly oldest: string | null;
}

export interface StoredRedelivery {
  readonly id: string;
  readonly partition: number;
  /** `aside`: set aside by a rewind. */
  readonly state: "waiting" | "dead" | "aside";
  readonly attempt: number;
  /** Null behind another message of its ordering key. */
  readonly nextAttemptAt: string | null;
  readonly failReason: string | null;
  readonly orderingKey: string | null;
  readonly changedAt: string;
}

export interface HandNote {
  readonly author: string;
  readonly reason: string;
  readonly ip: string | null;
}

export interface HandResult {
  readonly id: string;
  /** `absent`: no redelivery, and nothing to change. */
  readonly result: "changed" | "waiting" | "dead" | "aside" | "absent";
}

export interface Removal {
  readonly ids: readonly string[];
  readonly from: "dead" | "waiting or dead";
  readonly result: "skipped" | "discarded";
  readonly note: HandNote;
}
