/** What a dialect supplies for looking at groups, and for what people do to them. */
import type { GroupKey } from "../../../queue/store.ts";
import type { Statement } from "../../../transactions/executor.ts";
import type { GROUP_TABLES } from "./names.ts";

export interface UnreadRange {
  readonly topic: string;
  readonly month: number;
  readonly partition: number;
  readonly fromId: string;
  readonly toId: string;
}

/** A place in message_redelivery: of a partition, behind an id. */
export interface RedeliveryPlace {
  readonly partition: number;
  readonly id: string;
}

export interface GroupStatements {
  /** The group's row; one that is there stays as it is. */
  putGroup(key: GroupKey): Statement;
  /** 1 row when the group is there and was not paused; `pause` undefined: when it was. */
  setPause(key: GroupKey, pause: { readonly author: string; readonly reason: string } | undefined): Statement;
  /**
   * A row for each partition of each group, in order. Aliases: group_id partition_no next_id
   * last_id round owner label held_since moved_ms paused_at paused_by pause_reason.
   */
  readGroups(topic: string, group: string | undefined): Statement;
  /** Aliases: n. At most `limit`. */
  countMessages(range: UnreadRange, limit: number): Statement;
  /** Aliases: id message_key message_type. */
  firstMessage(range: UnreadRange): Statement;
  /** Of the first `limit` rows of a partition. Aliases: waiting behind dead oldest. */
  countRedeliveries(key: GroupKey, partition: number, limit: number): Statement;
  /**
   * In order of partition and id. Aliases: id partition_no state attempt first_attempt
   * next_attempt_at behind fail_reason ordering_key changed_at.
   */
  pageRedeliveries(key: GroupKey, after: RedeliveryPlace, limit: number): Statement;
  /** Locks the partition's progress as a settle does. Aliases: nextid round. */
  lockProgress(key: GroupKey, partition: number): Statement;
  /** Of the locked partition: whoever holds it is fenced out. */
  passHead(key: GroupKey, partition: number, next: { readonly id: string; readonly month: number }): Statement;
  /** Of the locked partition. Aliases: id state attempt ordering_key behind. */
  lockRedeliveries(key: GroupKey, partition: number, ids: readonly string[]): Statement;
  /** Of the locked partition: due now, and a dead letter has all its attempts again. */
  redeliverNow(key: GroupKey, partition: number, ids: readonly string[]): Statement;
  /** Nobody has paused it; a group of its name begins in this round. */
  forgetGroup(key: GroupKey, round: number): Statement;
  /** Its rows in one of {@link GROUP_TABLES}. */
  deleteGroup(table: (typeof GROUP_TABLES)[number], key: GroupKey): Statement;
}
