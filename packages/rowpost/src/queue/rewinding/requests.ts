import type { GroupKey } from "../group-key.ts";

export type RewindTarget =
  | { readonly kind: "start" | "end" }
  /** From this id on. A `time` past the last message means the end; an id is refused. */
  | { readonly kind: "id" | "time"; readonly id: string }
  | { readonly kind: "group"; readonly group: string }
  /** This many messages back in each partition. */
  | { readonly kind: "back"; readonly messages: number }
  /** Reverts the last rewind of the group. */
  | { readonly kind: "undo" };

export interface RewindRequest extends GroupKey {
  readonly target: RewindTarget;
  /** Undefined: all. */
  readonly partitions: readonly number[] | undefined;
  /** Refused when a partition has moved since. */
  readonly expected: readonly { readonly partition: number; readonly from: string }[] | undefined;
  /** Begins at the first existing month. */
  readonly overDroppedMonths: boolean;
  readonly author: string;
  readonly reason: string;
}

/** One partition of a rewind. */
export interface RewoundPartition {
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** The group's lowest unfinished id before. */
  readonly from: string;
  /** The same after it. */
  readonly to: string;
}

/** Result of a dry run. */
export interface CountedPartition extends RewoundPartition {
  /** Messages between `from` and `to`. */
  readonly messages: number;
  /** Those the group has consumed. */
  readonly consumed: number;
}

export type RewindRefusal =
  | { readonly refused: "unknown group"; readonly group: string }
  | { readonly refused: "moved"; readonly partitions: readonly { readonly partition: number; readonly at: string }[] }
  | { readonly refused: "dropped months"; readonly months: readonly number[] }
  | { readonly refused: "ahead"; readonly lastId: string }
  | { readonly refused: "nothing to undo" };

export interface RewindPlan {
  readonly partitions: readonly CountedPartition[];
  /** Dropped months in the range. */
  readonly droppedMonths: readonly number[];
}

export interface RewindDone {
  /** Number of the rewind in the log; undefined: nothing moved. */
  readonly rewind: number | undefined;
  readonly partitions: readonly RewoundPartition[];
  readonly droppedMonths: readonly number[];
  /** Redeliveries and dead letters whose messages come again anyway. */
  readonly setAside: number;
  /** Those of an earlier rewind restored because they are not replayed. */
  readonly restored: number;
}

/** An entry of the log of rewinds. */
export interface RewindEntry extends RewoundPartition {
  /** Number of the rewind within the group. */
  readonly rewind: number;
  /** Round that began with it. */
  readonly round: number;
  /** Number of the rewind that it reverts. */
  readonly undoOf: number | null;
  /** Author. */
  readonly author: string;
  /** Reason. */
  readonly reason: string;
  /** ISO 8601, in UTC. */
  readonly at: string;
}
