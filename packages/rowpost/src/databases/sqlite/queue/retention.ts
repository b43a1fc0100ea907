/** Dropping whole months: the marks, and what an archive reads. */
import { MARK, markStatements } from "../../sql/queue/month-marks.ts";
import { infoTable } from "../../sql/queue/names.ts";
import type { RetentionStatements } from "../../sql/queue/retention-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { before, isoText, NOW } from "../names.ts";

export const retention: RetentionStatements = {
  lockGroups: (topic) => ({
    name: "lockGroups",
    text: `SELECT consumer_group_id AS group_id, partition_no AS partitionno, CAST(next_message_id AS TEXT) AS nextid
FROM message_consumption WHERE topic_id = ? ORDER BY consumer_group_id, partition_no`,
    params: [topic],
  }),

  lockMark: (topic, month) => ({
    name: "lockMark",
    text: `SELECT owner, abs(julianday('now') - julianday(gmt_modified)) * 86400 < 60 AS fresh FROM message_dropped_month WHERE ${MARK}`,
    params: [topic, month],
  }),

  ...markStatements({ now: NOW, longAgo: "'1970-01-01 00:00:00.000'" }),

  isUnreadFrom: ({ topic, month, partition, fromId }) => ({
    name: "isUnreadFrom",
    text: `SELECT EXISTS (SELECT 1 FROM ${quoteName(infoTable(topic, month))} AS m WHERE m.partition_no = ? AND m.message_id >= CAST(? AS INTEGER)) AS unread`,
    params: [partition, fromId],
  }),

  waitingIn: (topic, fromId, toId) => ({
    name: "waitingIn",
    text: `SELECT consumer_group_id AS group_id, count(*) AS n FROM message_redelivery
WHERE topic_id = ? AND message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER) AND state = 0 GROUP BY consumer_group_id ORDER BY consumer_group_id`,
    params: [topic, fromId, toId],
  }),

  deleteBetween: (table, topic, fromId, toId) => ({
    name: "deleteBetween",
    text: `DELETE FROM ${table} WHERE topic_id = ? AND message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)`,
    params: [topic, fromId, toId],
  }),

  countRows: (table) => ({ name: "countRows", text: `SELECT count(*) AS n FROM ${quoteName(table)}`, params: [] }),

  archiveMessages: (table, { partition, id }, limit) => ({
    name: "archiveMessages",
    text: `SELECT partition_no AS partition, CAST(message_id AS TEXT) AS id, message_key AS key, message_type AS type, message_data AS data, content_type AS contentType,
  headers, ordering_key AS orderingKey, ${isoText("deliver_at")} AS deliverAt, ip, port, producer_group AS producerGroup
FROM ${quoteName(table)}
WHERE (partition_no, message_id) > (?, CAST(? AS INTEGER))
ORDER BY partition_no, message_id LIMIT ?`,
    params: [partition, id, limit],
  }),

  archiveRecords: (table, { id, group, round, attempt }, limit) => ({
    name: "archiveRecords",
    text: `SELECT CAST(message_id AS TEXT) AS id, consumer_group_id AS "group", round, attempt, message_key AS key, CAST(last_message_id AS TEXT) AS lastId, messages,
  ip, port, instance, ${isoText("consumption_time")} AS consumedAt, result, duration_ms AS durationMs, error
FROM ${quoteName(table)}
WHERE (message_id, consumer_group_id, round, attempt) > (CAST(? AS INTEGER), ?, ?, ?)
ORDER BY message_id, consumer_group_id, round, attempt LIMIT ?`,
    params: [id, group, round, attempt, limit],
  }),

  /** The second one of two finds the time of the first. */
  elect: (topic, everyMs) => ({
    name: "elect",
    text: `UPDATE message_topic SET housekept_at = ${NOW} WHERE topic_id = ? AND (housekept_at IS NULL OR housekept_at NOT BETWEEN ${before("?")} AND ${NOW})`,
    params: [topic, everyMs],
  }),
};
