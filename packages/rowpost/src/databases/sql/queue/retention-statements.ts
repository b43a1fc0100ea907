/** What a dialect supplies for dropping months. */
import type { DropRequest } from "../../../queue/retention/store.ts";
import type { Statement } from "../../../transactions/executor.ts";
import type { TOPIC_TABLES } from "./names.ts";

/** Behind this record; the first one: undefined. */
export interface RecordPlace {
  readonly id: string;
  readonly group: string;
  readonly round: number;
  readonly attempt: number;
}

export interface RetentionStatements {
  /** Aliases: group_id partitionno nextid. Locked, in their order. */
  lockGroups(topic: string): Statement;
  /** Aliases: owner fresh (1: touched within a minute). Locked. */
  lockMark(topic: string, month: number): Statement;
  insertMark(request: DropRequest): Statement;
  /** Another call goes on with it. */
  takeMark(request: DropRequest): Statement;
  touchMark(
    request: DropRequest,
    counts: { readonly messages: number; readonly records: number } | undefined,
    archive: string | undefined,
  ): Statement;
  releaseMark(request: DropRequest): Statement;
  finishMark(request: DropRequest, redeliveries: number): Statement;
  removeMark(request: DropRequest): Statement;
  /** Aliases: unread. 1 when the partition has a message from this id on. */
  isUnreadFrom(request: {
    readonly topic: string;
    readonly month: number;
    readonly partition: number;
    readonly fromId: string;
  }): Statement;
  /**
   * Aliases: group_id n. Messages between these ids that groups get again. Of what a rewind has set
   * aside, that which is still to come is unread.
   */
  waitingIn(topic: string, fromId: string, toId: string): Statement;
  /** Every row between these ids, with both ends. */
  deleteBetween(
    table: Extract<(typeof TOPIC_TABLES)[number], "message_milestone" | "message_redelivery">,
    topic: string,
    fromId: string,
    toId: string,
  ): Statement;
  /** Aliases: n. */
  countRows(table: string): Statement;
  /** In order of partition and id, behind this message. Values as text or whole numbers. */
  archiveMessages(table: string, after: { readonly partition: number; readonly id: string }, limit: number): Statement;
  /** In order of the primary key, behind this record. Values as text or whole numbers. */
  archiveRecords(table: string, after: RecordPlace, limit: number): Statement;
  /** 1 row, when nobody has done so for that long. */
  elect(topic: string, everyMs: number): Statement;
}
