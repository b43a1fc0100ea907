import {
  after,
  behind,
  by,
  type Cold,
  cold,
  forUpdate,
  id,
  instant,
  iso,
  now,
  part,
  plain,
  quoted,
  type Sql,
  textOf,
} from "../../databases/sql/cold.ts";
import { infoTable } from "../../databases/sql/queue/names.ts";
import type { ArchiveRow, DropRequest, MonthCounts } from "./requests.ts";

const MINUTE_MS = 60_000;

type Month = Pick<DropRequest, "topic" | "month">;
type Mark = Pick<DropRequest, "topic" | "month" | "owner">;

const ofMonth = ({ topic, month }: Month): Sql => part`topic_id = ${topic} AND message_date = ${month}`;
const ofOwner = (mark: Mark): Sql => part`${ofMonth(mark)} AND owner = ${mark.owner}`;

export const droppedMonths = (topic: string): Cold => cold("droppedMonths")`
SELECT message_date AS month, owner, messages, records, redeliveries, author, reason, ${iso("gmt_create")} AS dropped_at, archive
FROM message_dropped_month WHERE topic_id = ${topic} ORDER BY message_date`;

/** Settles and rewinds wait until the month is marked. */
export const lockGroups = (topic: string): Cold => cold("lockGroups")`
SELECT consumer_group_id AS group_id, partition_no AS partitionno, ${textOf("next_message_id")} AS nextid
FROM message_consumption WHERE topic_id = ${topic} ORDER BY consumer_group_id, partition_no${forUpdate}`;

/** Drops of one month run one after the other. */
export const lockMark = (month: Month): Cold => cold("lockMark")`
SELECT owner, CASE WHEN gmt_modified BETWEEN ${after(-MINUTE_MS)} AND ${after(MINUTE_MS)} THEN 1 ELSE 0 END AS fresh
FROM message_dropped_month WHERE ${ofMonth(month)}${forUpdate}`;

/** From its commit on no rewind goes there. If the process dies, the next call continues. */
export const insertMark = ({ topic, month, owner, author, reason }: DropRequest): Cold => cold("insertMark")`
INSERT INTO message_dropped_month (topic_id, message_date, owner, author, reason, gmt_create, gmt_modified)
VALUES (${topic}, ${month}, ${owner}, ${author}, ${reason}, ${now}, ${now})`;

/** In the transaction that holds the lock. */
export const takeMark = (mark: Mark): Cold => cold("takeMark")`
UPDATE message_dropped_month SET owner = ${mark.owner}, gmt_modified = ${now} WHERE ${ofMonth(mark)}`;

/** Locks the mark. Changes no row when another call has taken it over. */
export const touchMark = (mark: Mark, counts?: MonthCounts, archive?: string): Cold => cold("touchMark")`
UPDATE message_dropped_month SET messages = COALESCE(${counts?.messages ?? null}, messages), records = COALESCE(${counts?.records ?? null}, records),
  archive = COALESCE(${archive ?? null}, archive), gmt_modified = ${now}
WHERE ${ofOwner(mark)}`;

/** Locks the mark; the next call can take it at once. */
export const releaseMark = (mark: Mark): Cold => cold("releaseMark")`
UPDATE message_dropped_month SET gmt_modified = ${instant("1970-01-01 00:00:00.000")} WHERE ${ofOwner(mark)}`;

/** Locks the mark. After the DROP: the month is gone. */
export const finishMark = (mark: Mark, redeliveries: number): Cold => cold("finishMark")`
UPDATE message_dropped_month SET owner = NULL, redeliveries = redeliveries + ${redeliveries}, gmt_modified = ${now} WHERE ${ofOwner(mark)}`;

/** Locks the mark. Runs before any DROP: the month stays. */
export const removeMark = (mark: Mark): Cold => cold("removeMark")`
DELETE FROM message_dropped_month WHERE ${ofOwner(mark)}`;

type From = Month & { readonly partition: number; readonly fromId: string };

export const isUnreadFrom = ({ topic, month, partition, fromId }: From): Cold => cold("isUnreadFrom")`
SELECT CASE WHEN EXISTS (SELECT 1 FROM ${quoted(infoTable(topic, month))} AS m${by("PRIMARY")} WHERE m.partition_no = ${partition} AND m.message_id >= ${id(fromId)})
  THEN 1 ELSE 0 END AS unread`;

/** Rows set aside by a rewind count as unread while still to come. */
export const waitingIn = (topic: string, fromId: string, toId: string): Cold => cold("waitingIn")`
SELECT consumer_group_id AS group_id, count(*) AS n FROM message_redelivery
WHERE topic_id = ${topic} AND message_id BETWEEN ${id(fromId)} AND ${id(toId)} AND state = 0 GROUP BY consumer_group_id ORDER BY consumer_group_id`;

type OfMessages = "message_redelivery" | "message_milestone";

/** Locks redeliveries of messages that are gone. */
export const deleteBetween = (table: OfMessages, topic: string, fromId: string, toId: string): Cold => cold(
  "deleteBetween",
)`
DELETE FROM ${plain(table)} WHERE topic_id = ${topic} AND message_id BETWEEN ${id(fromId)} AND ${id(toId)}`;

export const countRows = (table: string): Cold => cold("countRows")`SELECT count(*) AS n FROM ${quoted(table)}`;

/** In order, after this one; `{}`: from the first. */
export const archiveMessages = (table: string, last: ArchiveRow, limit: number): Cold => cold("archiveMessages")`
SELECT partition_no AS ${quoted("partition")}, ${textOf("message_id")} AS id, message_key AS ${quoted("key")}, message_type AS type, message_data AS data,
  content_type AS ${quoted("contentType")}, headers, ordering_key AS ${quoted("orderingKey")}, ${iso("deliver_at")} AS ${quoted("deliverAt")},
  ip, port, producer_group AS ${quoted("producerGroup")}
FROM ${quoted(table)}${by("PRIMARY")}
WHERE ${behind([
  ["partition_no", last["partition"] ?? -1],
  ["message_id", id(String(last["id"] ?? 0))],
])}
ORDER BY partition_no, message_id LIMIT ${limit}`;

/** In order, after this one; `{}`: from the first. */
export const archiveRecords = (table: string, last: ArchiveRow, limit: number): Cold => cold("archiveRecords")`
SELECT ${textOf("message_id")} AS id, consumer_group_id AS ${quoted("group")}, round, attempt, message_key AS ${quoted("key")},
  ${textOf("last_message_id")} AS ${quoted("lastId")}, messages, ip, port, instance, ${iso("consumption_time")} AS ${quoted("consumedAt")},
  result, duration_ms AS ${quoted("durationMs")}, error
FROM ${quoted(table)}${by("PRIMARY")}
WHERE ${behind([
  ["message_id", id(String(last["id"] ?? 0))],
  ["consumer_group_id", last["group"] ?? ""],
  ["round", last["round"] ?? -1],
  ["attempt", last["attempt"] ?? -1],
])}
ORDER BY message_id, consumer_group_id, round, attempt LIMIT ${limit}`;

/** Locks the topic's row. The second caller finds the time set by the first. */
export const elect = (topic: string, everyMs: number): Cold => cold("elect")`
UPDATE message_topic SET housekept_at = ${now}
WHERE topic_id = ${topic} AND (housekept_at IS NULL OR housekept_at NOT BETWEEN ${after(-everyMs)} AND ${now})`;
