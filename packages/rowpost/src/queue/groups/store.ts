/** The port for looking at consumer groups, and for what people do to them. Types only. */
import type { Executor } from "../../transactions/executor.ts";
import type { GroupKey } from "../group-key.ts";

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

export interface GroupStore {
  /** In order of groups and partitions; of one group, or all. */
  partitions(topic: string, group?: string): Promise<StoredGroupPartition[]>;
  /** Epoch milliseconds of the database's clock. */
  nowMs(): Promise<number>;
  /** Months that have a message table, in order. */
  months(topic: string): Promise<number[]>;
  /** What there is in a partition from one id to another, in these months; counts up to `limit`. */
  unread(
    topic: string,
    months: readonly number[],
    range: { readonly partition: number; readonly fromId: string; readonly toId: string },
    limit: number,
  ): Promise<Unread>;
  redeliveries(key: GroupKey, partition: number, limit: number): Promise<RedeliveryCounts>;
  /** In order of partition and id, from behind this one on. */
  page(
    key: GroupKey,
    after: { readonly partition: number; readonly id: string },
    limit: number,
  ): Promise<StoredRedelivery[]>;
  /** False: it was so already. `pause` undefined: go on. */
  setPause(key: GroupKey, pause: { readonly author: string; readonly reason: string } | undefined): Promise<boolean>;
  /**
   * Due now, under the lock of the partition's progress; a dead letter with all its attempts. What
   * waits behind another one of its ordering key goes on waiting. With a record of each.
   */
  redeliver(key: GroupKey, partition: number, ids: readonly string[], note: HandNote): Promise<HandResult[]>;
  /** Out of message_redelivery, with a record, under the lock of the partition's progress. */
  removeIn(tx: Executor, key: GroupKey, partition: number, removal: Removal): Promise<HandResult[]>;
  remove(key: GroupKey, partition: number, removal: Removal): Promise<HandResult[]>;
  /**
   * Moves the progress behind this message if it is the first that the group has not finished, and
   * fences out whoever holds the partition. `finished`: the group is behind it already.
   */
  skipHead(key: GroupKey, id: string, note: HandNote): Promise<"skipped" | "finished" | "not the first" | "no message">;
  /**
   * What there is of the group, but for its records, unless a member was seen within `silentMs`:
   * then their labels. A group of its name begins anew, in a round of its own.
   */
  deleteGroup(key: GroupKey, silentMs: number): Promise<"deleted" | "absent" | readonly string[]>;
  close(): Promise<void>;
}
