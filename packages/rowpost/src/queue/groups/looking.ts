import type { QueueSql } from "../../databases/database.ts";
import { GROUP_TABLES } from "../../databases/sql/queue/names.ts";
import { openRoom, type Room, type Run } from "../../databases/sql/queue/room.ts";
import { integer, labelWithoutLock, type Row, text, textOrNull } from "../../databases/sql/rows.ts";
import type { GroupKey } from "../group-key.ts";
import { lockProgress } from "../rewinding/statements.ts";
import { type ChangesByHand, changesByHand, stateOf } from "./by-hand.ts";
import type { RedeliveryCounts, StoredGroupPartition, StoredRedelivery, Unread } from "./requests.ts";
import * as own from "./statements.ts";
import { firstUnread, monthsOf, type Unfinished } from "./unread.ts";

export interface Groups extends ChangesByHand {
  /** Ordered by group and partition; of one group, or all. */
  partitions(topic: string, group?: string): Promise<StoredGroupPartition[]>;
  /** Epoch milliseconds. */
  nowMs(): Promise<number>;
  /** In order. */
  months(topic: string): Promise<number[]>;
  /** Counts stop at `limit`. */
  unread(topic: string, months: readonly number[], range: Unfinished, limit: number): Promise<Unread>;
  redeliveries(key: GroupKey, partition: number, limit: number): Promise<RedeliveryCounts>;
  /** Ordered by partition and id, after the given place. */
  page(
    key: GroupKey,
    after: { readonly partition: number; readonly id: string },
    limit: number,
  ): Promise<StoredRedelivery[]>;
  /** Returns false when nothing changed. `pause` undefined: resumes. */
  setPause(key: GroupKey, pause: { readonly author: string; readonly reason: string } | undefined): Promise<boolean>;
  /**
   * Deletes everything except the records, or returns the labels of members seen within `silentMs`.
   * A new group of the same name gets a new round.
   */
  deleteGroup(key: GroupKey, silentMs: number): Promise<"deleted" | "absent" | readonly string[]>;
  close(): Promise<void>;
}

/** Opens no connection before its first use. */
export function createGroups(sql: QueueSql): Groups {
  const room = openRoom(sql, { lockWaitTimeoutMs: 5_000 });
  return room.plainly<Groups>({
    async partitions(topic, group) {
      return (await room.read(own.readGroups(topic, group))).map(groupPartition);
    },
    nowMs: () => room.nowMs(),
    months: (topic) => room.months(topic),
    async unread(topic, there, range, limit) {
      const months = monthsOf(there, range);
      const first = await firstUnread(room.run, months, { topic, ...range });
      let messages = 0;
      for (const month of months) {
        if (messages >= limit) break;
        const [row] = await room.read(own.countMessages({ topic, month, ...range }, limit - messages));
        messages += integer(row ?? {}, "n");
      }
      return { messages, first };
    },
    async redeliveries(key, partition, limit) {
      const [row = {}] = await room.read(own.countRedeliveries(key, partition, limit));
      const [waiting, behind] = [integer(row, "waiting"), integer(row, "behind")];
      return { waiting: waiting + behind, behind, dead: integer(row, "dead"), oldest: textOrNull(row, "oldest") };
    },
    async page(key, after, limit) {
      return (await room.read(own.pageRedeliveries(key, after, limit))).map(storedRedelivery);
    },
    async setPause(key, pause) {
      const statement = pause === undefined ? own.resume(key) : own.pause(key, pause.author, pause.reason);
      const { affected } = await room.run(statement, "settle");
      return affected > 0;
    },
    ...changesByHand(room),
    deleteGroup: (key, silentMs) => room.transaction((run) => deleteGroup(room, run, key, silentMs)),
    close: () => room.close(),
  });
}

/** Locks the progress first, as every settle and takeover does. */
async function deleteGroup(
  { statements }: Room,
  run: Run,
  key: GroupKey,
  silentMs: number,
): Promise<"deleted" | "absent" | readonly string[]> {
  const progress = (await run(lockProgress(key))).rows;
  if (progress.length === 0) return "absent";
  const members = (await run(statements.beats.readMembers([key]))).rows;
  const living = members
    .filter((row) => Math.abs(integer(row, "silent_ms")) <= silentMs)
    .map((row) => labelWithoutLock(text(row, "label")));
  if (living.length > 0) return living;
  const round = Math.max(...progress.map((row) => integer(row, "round"))) + 1;
  await run(own.putGroup(key));
  await run(own.forgetGroup(key, round));
  for (const table of GROUP_TABLES) await run(own.deleteRows(table, key));
  return "deleted";
}

function storedRedelivery(row: Row): StoredRedelivery {
  return {
    id: text(row, "id"),
    partition: integer(row, "partition_no"),
    state: stateOf(row),
    attempt: integer(row, "attempt"),
    nextAttemptAt: integer(row, "behind") === 1 ? null : text(row, "next_attempt_at"),
    failReason: textOrNull(row, "fail_reason"),
    orderingKey: textOrNull(row, "ordering_key"),
    changedAt: text(row, "changed_at"),
  };
}

function groupPartition(row: Row): StoredGroupPartition {
  return {
    group: text(row, "group_id"),
    partition: integer(row, "partition_no"),
    nextId: text(row, "next_id"),
    lastId: text(row, "last_id"),
    round: integer(row, "round"),
    owner: textOrNull(row, "owner"),
    label: row["label"] === null ? null : labelWithoutLock(text(row, "label")),
    heldSince: textOrNull(row, "held_since"),
    movedMs: row["moved_ms"] === null ? null : integer(row, "moved_ms"),
    seenMs: row["seen_ms"] === null ? null : integer(row, "seen_ms"),
    pausedAt: textOrNull(row, "paused_at"),
    pausedBy: textOrNull(row, "paused_by"),
    pauseReason: textOrNull(row, "pause_reason"),
  };
}
