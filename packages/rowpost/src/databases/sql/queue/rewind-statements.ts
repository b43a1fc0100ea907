/** What a dialect supplies for moving the progress of a group. */
import type { RewindEntry } from "../../../queue/rewinding/store.ts";
import type { GroupKey } from "../../../queue/store.ts";
import type { Statement } from "../../../transactions/executor.ts";

/** Messages of one partition in one month, with both ends. */
export interface CountRequest {
  readonly month: number;
  readonly partition: number;
  readonly fromId: string;
  readonly toId: string;
}

export interface RewindStatements {
  /** Aliases: partitionno nextid round. In order of the partitions, and locked. */
  lockProgress(key: GroupKey): Statement;
  /** 1 row when the partition still is at `from`, else none. */
  movePartition(
    key: GroupKey,
    request: { readonly partition: number; readonly from: string; readonly to: string; readonly month: number },
  ): Statement;
  insertRewind(key: GroupKey, entry: Omit<RewindEntry, "at">): Statement;
  /**
   * The newest first. Aliases: rewind_no partition_no round from_id to_id undo_of author reason at.
   */
  readRewinds(key: GroupKey, limit: number): Statement;
  /** Those set aside that were replayed meanwhile: below this id. */
  forgetReplayed(key: GroupKey, partition: number, belowId: string): Statement;
  /** Those set aside that will not be replayed: below this id. */
  restore(key: GroupKey, partition: number, belowId: string): Statement;
  /** Those whose messages come again: from this id on. */
  setAside(key: GroupKey, partition: number, fromId: string): Statement;
  /** Aliases: n. */
  countMessages(topic: string, request: CountRequest): Statement;
  /** Aliases: n. */
  countConsumed(key: GroupKey, request: CountRequest): Statement;
  /** Aliases: id. The message so many places before this id in its partition. */
  placesBefore(
    topic: string,
    request: { readonly month: number; readonly partition: number; readonly id: string; readonly places: number },
  ): Statement;
  /** Aliases: id. The message so many places behind this id in its partition. */
  placesBehind(
    topic: string,
    request: { readonly month: number; readonly partition: number; readonly id: string; readonly places: number },
  ): Statement;
  /**
   * Aliases: n id. Of the first `limit` milestones from the month's first message to before this
   * id: how many, and the last one. Those of a topic of this name that was deleted lie before it.
   */
  passedMilestones(
    topic: string,
    request: { readonly month: number; readonly partition: number; readonly beforeId: string; readonly limit: number },
  ): Statement;
  /** No row when it is there. */
  insertMilestone(topic: string, milestone: { readonly partition: number; readonly id: string }): Statement;
}
