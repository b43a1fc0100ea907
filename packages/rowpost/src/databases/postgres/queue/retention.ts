/** Dropping whole months: the marks, and what an archive reads. */
import { infoTable } from "../../sql/queue/names.ts";
import type { RetentionStatements } from "../../sql/queue/retention-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { isoText, NOW } from "../names.ts";

const MARK = "topic_id = $1 AND message_date = $2";

export const retention: RetentionStatements = {
  /** Settles and rewinds of the topic's groups wait until the month is marked. */
  lockGroups: (topic) => ({
    name: "lockGroups",
    text: `SELECT consumer_group_id AS group_id, partition_no AS partitionno, next_message_id::text AS nextid
FROM message_consumption WHERE topic_id = $1 ORDER BY consumer_group_id, partition_no FOR UPDATE`,
    params: [topic],
  }),

  /** Two that drop one month come one after the other. */
  lockMark: (topic, month) => ({
    name: "lockMark",
    text: `SELECT owner, CASE WHEN gmt_modified BETWEEN ${NOW} - interval '1 minute' AND ${NOW} + interval '1 minute' THEN 1 ELSE 0 END AS fresh
FROM message_dropped_month WHERE ${MARK} FOR UPDATE`,
    params: [topic, month],
  }),

  /** From its commit on nobody rewinds to the month. If we die then, the next call goes on. */
  insertMark: ({ topic, month, owner, author, reason }) => ({
    name: "insertMark",
    text: "INSERT INTO message_dropped_month (topic_id, message_date, owner, author, reason) VALUES ($1, $2, $3, $4, $5)",
    params: [topic, month, owner, author, reason],
  }),

  /** Of a row that this transaction has locked. */
  takeMark: ({ topic, month, owner }) => ({
    name: "takeMark",
    text: `UPDATE message_dropped_month SET owner = $3, gmt_modified = ${NOW} WHERE ${MARK}`,
    params: [topic, month, owner],
  }),

  /** Locks the mark. No row when another call has taken it over; so do the next ones. */
  touchMark: ({ topic, month, owner }, counts, archive) => ({
    name: "touchMark",
    text: `UPDATE message_dropped_month SET messages = COALESCE($4::bigint, messages), records = COALESCE($5::bigint, records), archive = COALESCE($6, archive), gmt_modified = ${NOW}
WHERE ${MARK} AND owner = $3`,
    params: [topic, month, owner, counts?.messages ?? null, counts?.records ?? null, archive ?? null],
  }),

  /** As above. */
  releaseMark: ({ topic, month, owner }) => ({
    name: "releaseMark",
    text: `UPDATE message_dropped_month SET gmt_modified = '1970-01-01T00:00:00Z' WHERE ${MARK} AND owner = $3`,
    params: [topic, month, owner],
  }),

  /** As above; behind the DROP. */
  finishMark: ({ topic, month, owner }, redeliveries) => ({
    name: "finishMark",
    text: `UPDATE message_dropped_month SET owner = NULL, redeliveries = redeliveries + $4::bigint, gmt_modified = ${NOW} WHERE ${MARK} AND owner = $3`,
    params: [topic, month, owner, redeliveries],
  }),

  /** As above; before any DROP. */
  removeMark: ({ topic, month, owner }) => ({
    name: "removeMark",
    text: `DELETE FROM message_dropped_month WHERE ${MARK} AND owner = $3`,
    params: [topic, month, owner],
  }),

  isUnreadFrom: ({ topic, month, partition, fromId }) => ({
    name: "isUnreadFrom",
    text: `SELECT CASE WHEN EXISTS (SELECT 1 FROM ${quoteName(infoTable(topic, month))} m WHERE m.partition_no = $1 AND m.message_id >= $2::bigint) THEN 1 ELSE 0 END AS unread`,
    params: [partition, fromId],
  }),

  waitingIn: (topic, fromId, toId) => ({
    name: "waitingIn",
    text: `SELECT consumer_group_id AS group_id, count(*)::text AS n FROM message_redelivery
WHERE topic_id = $1 AND message_id BETWEEN $2::bigint AND $3::bigint AND state = 0 GROUP BY consumer_group_id ORDER BY consumer_group_id`,
    params: [topic, fromId, toId],
  }),

  /** Locks redeliveries whose messages are gone: nobody can deliver them. */
  deleteBetween: (table, topic, fromId, toId) => ({
    name: "deleteBetween",
    text: `DELETE FROM ${table} WHERE topic_id = $1 AND message_id BETWEEN $2::bigint AND $3::bigint`,
    params: [topic, fromId, toId],
  }),

  countRows: (table) => ({
    name: "countRows",
    text: `SELECT count(*)::text AS n FROM ${quoteName(table)}`,
    params: [],
  }),

  archiveMessages: (table, { partition, id }, limit) => ({
    name: "archiveMessages",
    text: `SELECT partition_no AS partition, message_id::text AS id, message_key AS key, message_type AS type, message_data AS data, content_type AS "contentType",
  headers, ordering_key AS "orderingKey", ${isoText("deliver_at")} AS "deliverAt", ip, port, producer_group AS "producerGroup"
FROM ${quoteName(table)}
WHERE (partition_no, message_id) > ($1::integer, $2::bigint)
ORDER BY partition_no, message_id LIMIT $3::bigint`,
    params: [partition, id, limit],
  }),

  archiveRecords: (table, { id, group, round, attempt }, limit) => ({
    name: "archiveRecords",
    text: `SELECT message_id::text AS id, consumer_group_id AS "group", round, attempt, message_key AS key, last_message_id::text AS "lastId", messages,
  ip, port, instance, ${isoText("consumption_time")} AS "consumedAt", result, duration_ms AS "durationMs", error
FROM ${quoteName(table)}
WHERE (message_id, consumer_group_id, round, attempt) > ($1::bigint, $2::varchar, $3::integer, $4::integer)
ORDER BY message_id, consumer_group_id, round, attempt LIMIT $5::bigint`,
    params: [id, group, round, attempt, limit],
  }),

  /** Locks the topic's row. The second one of two finds the time of the first. */
  elect: (topic, everyMs) => ({
    name: "elect",
    text: `UPDATE message_topic SET housekept_at = ${NOW}
WHERE topic_id = $1 AND (housekept_at IS NULL OR housekept_at NOT BETWEEN ${NOW} - $2::bigint * interval '1 millisecond' AND ${NOW})`,
    params: [topic, everyMs],
  }),
};
