/** What is asked of a rewind, and what is answered. */
import type { GroupKey } from "../group-key.ts";

/** Where to. */
export type RewindTarget =
  | { readonly kind: "start" | "end" }
  /** From this id on. A `time` ahead of the last message is the end; an id is refused. */
  | { readonly kind: "id" | "time"; readonly id: string }
  | { readonly kind: "group"; readonly group: string }
  /** So many messages before, in each partition. */
  | { readonly kind: "back"; readonly messages: number }
  /** Takes the last rewind of the group back. */
  | { readonly kind: "undo" };

export interface RewindRequest extends GroupKey {
  readonly target: RewindTarget;
  /** Undefined: all. */
  readonly partitions: readonly number[] | undefined;
  /** Refused when a partition is not there any more. */
  readonly expected: readonly { readonly partition: number; readonly from: string }[] | undefined;
  /** Begin at the first month that is there. */
  readonly overDroppedMonths: boolean;
  readonly author: string;
  readonly reason: string;
}

/** One partition of a rewind. */
export interface RewoundPartition {
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** The lowest id that the group had not finished. */
  readonly from: string;
  /** The same after it. */
  readonly to: string;
}

/** What a dry run counts. */
export interface CountedPartition extends RewoundPartition {
  /** Messages between `from` and `to`. */
  readonly messages: number;
  /** Those of them that the group has consumed. */
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
  /** Months that would be replayed if they were there. */
  readonly droppedMonths: readonly number[];
}

export interface RewindDone {
  /** Number of the rewind in the log; undefined: the group was there already. */
  readonly rewind: number | undefined;
  readonly partitions: readonly RewoundPartition[];
  readonly droppedMonths: readonly number[];
  /** Redeliveries and dead letters whose messages come again anyway. */
  readonly setAside: number;
  /** Those of an earlier rewind that are not replayed, and so are there again. */
  readonly restored: number;
}

/** A row of the log. */
export interface RewindEntry extends RewoundPartition {
  /** Counts the rewinds of the group. */
  readonly rewind: number;
  /** That began with it. */
  readonly round: number;
  /** Number of the rewind that it takes back. */
  readonly undoOf: number | null;
  /** Who did it. */
  readonly author: string;
  /** Why. */
  readonly reason: string;
  /** ISO 8601, in UTC. */
  readonly at: string;
}
