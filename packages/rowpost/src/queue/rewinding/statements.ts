import {
  by,
  type Cold,
  cold,
  forUpdate,
  id,
  insertNew,
  instant,
  iso,
  now,
  orNothing,
  quoted,
  textOf,
} from "../../databases/sql/cold.ts";
import { infoTable, recordTable } from "../../databases/sql/queue/names.ts";
import { type GroupKey, ofGroup } from "../group-key.ts";
import type { RewindEntry } from "./requests.ts";

/** Messages of one partition in one month. */
export interface Stretch {
  readonly topic: string;
  readonly month: number;
  readonly partition: number;
}

/** Both ends included. */
export interface Range {
  readonly month: number;
  readonly partition: number;
  readonly fromId: string;
  readonly toId: string;
}

/** Settles and takeovers wait, or came before and are seen. */
export const lockProgress = (key: GroupKey): Cold => cold("lockProgress")`
SELECT partition_no AS partitionno, ${textOf("next_message_id")} AS nextid, round
FROM message_consumption WHERE ${ofGroup(key)} ORDER BY partition_no${forUpdate}`;

/**
 * In the transaction that holds the lock. With the new epoch and no owner, later writes of the
 * former member match nothing. If the process dies right after it, nothing has moved.
 */
export const movePartition = (
  key: GroupKey,
  move: { readonly partition: number; readonly from: string; readonly to: string; readonly month: number },
): Cold => cold("movePartition")`
UPDATE message_consumption
SET next_message_id = ${id(move.to)}, message_date = ${move.month}, round = round + 1, epoch = epoch + 1, owner = NULL,
  lease_until = ${instant("1970-01-01 00:00:00.000")}, update_time = ${now}
WHERE ${ofGroup(key)} AND partition_no = ${move.partition} AND next_message_id = ${id(move.from)}`;

type NewEntry = Omit<RewindEntry, "at">;

/** In the same transaction, numbered under the progress locks. */
export const insertRewind = ({ topic, group }: GroupKey, entry: NewEntry): Cold => cold("insertRewind")`
INSERT INTO message_rewind (topic_id, consumer_group_id, rewind_no, partition_no, round, from_message_id, to_message_id, undo_of, author, reason, gmt_create)
VALUES (${topic}, ${group}, ${entry.rewind}, ${entry.partition}, ${entry.round}, ${id(entry.from)}, ${id(entry.to)}, ${entry.undoOf}, ${entry.author}, ${entry.reason}, ${now})`;

/** Newest first. */
export const readRewinds = (key: GroupKey, limit: number): Cold => cold("readRewinds")`
SELECT rewind_no, partition_no, round, ${textOf("from_message_id")} AS from_id, ${textOf("to_message_id")} AS to_id, undo_of, author, reason, ${iso("gmt_create")} AS at
FROM message_rewind WHERE ${ofGroup(key)} ORDER BY rewind_no DESC, partition_no DESC LIMIT ${limit}`;

/**
 * Deletes rows set aside and replayed since. Nobody else writes them while the progress is locked;
 * the same holds for the next two.
 */
export const forgetReplayed = (key: GroupKey, partition: number, belowId: string): Cold => cold("forgetReplayed")`
DELETE FROM message_redelivery WHERE ${ofGroup(key)} AND partition_no = ${partition} AND message_id < ${id(belowId)} AND state >= 2`;

/** Those that will not be replayed. */
export const restore = (key: GroupKey, partition: number, belowId: string): Cold => cold("restore")`
UPDATE message_redelivery SET state = state - 2, gmt_modified = ${now}
WHERE ${ofGroup(key)} AND partition_no = ${partition} AND message_id < ${id(belowId)} AND state >= 2`;

/** Sets aside rows whose messages come again. */
export const setAside = (key: GroupKey, partition: number, fromId: string): Cold => cold("setAside")`
UPDATE message_redelivery SET state = state + 2, gmt_modified = ${now}
WHERE ${ofGroup(key)} AND partition_no = ${partition} AND message_id >= ${id(fromId)} AND state < 2`;

export const countMessages = (topic: string, range: Range): Cold => cold("countMessages")`
SELECT count(*) AS n FROM ${quoted(infoTable(topic, range.month))} AS m${by("PRIMARY")}
WHERE m.partition_no = ${range.partition} AND m.message_id BETWEEN ${id(range.fromId)} AND ${id(range.toId)}`;

export const countConsumed = ({ topic, group }: GroupKey, range: Range): Cold => cold("countConsumed")`
SELECT count(DISTINCT CASE WHEN r.last_message_id IS NULL THEN r.message_id END) + COALESCE(sum(CASE WHEN r.last_message_id IS NOT NULL THEN r.messages END), 0) AS n
FROM ${quoted(recordTable(topic, range.month))} AS r${by("PRIMARY")}
WHERE r.message_id BETWEEN ${id(range.fromId)} AND ${id(range.toId)} AND r.consumer_group_id = ${group} AND r.result = 0 AND r.message_id % 64 = ${range.partition}`;

interface Places extends Stretch {
  readonly id: string;
  readonly places: number;
}

export const placesBefore = (at: Places): Cold => cold("placesBefore")`
SELECT ${textOf("m.message_id")} AS id FROM ${quoted(infoTable(at.topic, at.month))} AS m${by("PRIMARY")}
WHERE m.partition_no = ${at.partition} AND m.message_id < ${id(at.id)}
ORDER BY m.message_id DESC LIMIT 1 OFFSET ${at.places - 1}`;

export const placesBehind = (at: Places): Cold => cold("placesBehind")`
SELECT ${textOf("m.message_id")} AS id FROM ${quoted(infoTable(at.topic, at.month))} AS m${by("PRIMARY")}
WHERE m.partition_no = ${at.partition} AND m.message_id > ${id(at.id)}
ORDER BY m.message_id LIMIT 1 OFFSET ${at.places - 1}`;

/**
 * Number and last of the first `limit` milestones before this id. Those of a deleted topic of the
 * same name lie before the month's first message.
 */
export const passedMilestones = (
  { topic, month, partition }: Stretch,
  { beforeId, limit }: { readonly beforeId: string; readonly limit: number },
): Cold => cold("passedMilestones")`
SELECT count(*) AS n, ${textOf("max(m.message_id)")} AS id FROM (
  SELECT message_id FROM message_milestone${by("PRIMARY")}
  WHERE topic_id = ${topic} AND partition_no = ${partition} AND message_id < ${id(beforeId)} AND message_id >=
    (SELECT min(i.message_id) FROM ${quoted(infoTable(topic, month))} AS i${by("PRIMARY")} WHERE i.partition_no = ${partition})
  ORDER BY message_id LIMIT ${limit}) AS m`;

/** Locks the new row. A second insert waits and changes nothing. */
export const insertMilestone = (topic: string, partition: number, at: string): Cold => cold("insertMilestone")`
${insertNew} message_milestone (topic_id, partition_no, message_id) VALUES (${topic}, ${partition}, ${id(at)})${orNothing("topic_id, partition_no, message_id")}`;
