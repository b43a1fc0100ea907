/** Dropping whole months: the marks, and what an archive reads. */
import { MARK, markStatements } from "../../sql/queue/month-marks.ts";
import { infoTable } from "../../sql/queue/names.ts";
import type { RetentionStatements } from "../../sql/queue/retention-statements.ts";
import { isoText, COMPANION_NOW as NOW, whole } from "../clock.ts";
import { quoteName } from "../names.ts";

export const retention: RetentionStatements = {
  /** Settles and rewinds of the topic's groups wait until the month is marked. */
  lockGroups: (topic) => ({
    name: "lockGroups",
    text: `SELECT consumer_group_id AS group_id, partition_no AS partitionno, CAST(next_message_id AS CHAR) AS nextid
  FROM message_consumption WHERE topic_id = ? ORDER BY consumer_group_id, partition_no FOR UPDATE`,
    params: [topic],
  }),

  /** Two that drop one month come one after the other. */
  lockMark: (topic, month) => ({
    name: "lockMark",
    text: `SELECT owner, gmt_modified BETWEEN ${NOW} - INTERVAL 60 SECOND AND ${NOW} + INTERVAL 60 SECOND AS fresh
  FROM message_dropped_month WHERE ${MARK} FOR UPDATE`,
    params: [topic, month],
  }),

  ...markStatements({ now: NOW, longAgo: "'1970-01-01 00:00:00'" }),

  isUnreadFrom: ({ topic, month, partition, fromId }) => ({
    name: "isUnreadFrom",
    text: `SELECT EXISTS (SELECT 1 FROM ${quoteName(infoTable(topic, month))} AS m FORCE INDEX (PRIMARY) WHERE m.partition_no = ${whole(partition)} AND m.message_id >= ?) AS unread`,
    params: [fromId],
  }),

  waitingIn: (topic, fromId, toId) => ({
    name: "waitingIn",
    text: `SELECT consumer_group_id AS group_id, COUNT(*) AS n FROM message_redelivery
  WHERE topic_id = ? AND message_id BETWEEN ? AND ? AND state = 0 GROUP BY consumer_group_id ORDER BY consumer_group_id`,
    params: [topic, fromId, toId],
  }),

  /** Locks redeliveries whose messages are gone: nobody can deliver them. */
  deleteBetween: (table, topic, fromId, toId) => ({
    name: "deleteBetween",
    text: `DELETE FROM ${table} WHERE topic_id = ? AND message_id BETWEEN ? AND ?`,
    params: [topic, fromId, toId],
  }),

  countRows: (table) => ({ name: "countRows", text: `SELECT COUNT(*) AS n FROM ${quoteName(table)}`, params: [] }),

  archiveMessages: (table, { partition, id }, limit) => ({
    name: "archiveMessages",
    text: `SELECT partition_no AS \`partition\`, CAST(message_id AS CHAR) AS id, message_key AS \`key\`, message_type AS type, message_data AS data, content_type AS contentType,
    headers, ordering_key AS orderingKey, ${isoText("deliver_at")} AS deliverAt, ip, port, producer_group AS producerGroup
  FROM ${quoteName(table)} FORCE INDEX (PRIMARY)
  WHERE partition_no >= ${whole(partition)} AND (partition_no > ${whole(partition)} OR message_id > ?)
  ORDER BY partition_no, message_id LIMIT ${whole(limit)}`,
    params: [id],
  }),

  archiveRecords: (table, { id, group, round, attempt }, limit) => ({
    name: "archiveRecords",
    text: `SELECT CAST(message_id AS CHAR) AS id, consumer_group_id AS \`group\`, round, attempt, message_key AS \`key\`, CAST(last_message_id AS CHAR) AS lastId, messages,
    ip, port, instance, ${isoText("consumption_time")} AS consumedAt, result, duration_ms AS durationMs, error
  FROM ${quoteName(table)} FORCE INDEX (PRIMARY)
  WHERE message_id >= ? AND (message_id > ? OR consumer_group_id > ? OR (consumer_group_id = ? AND (round > ${whole(round)} OR (round = ${whole(round)} AND attempt > ${whole(attempt)}))))
  ORDER BY message_id, consumer_group_id, round, attempt LIMIT ${whole(limit)}`,
    params: [id, id, group, group],
  }),

  /** Locks the topic's row. The second one of two finds the time of the first. */
  elect: (topic, everyMs) => ({
    name: "elect",
    text: `UPDATE message_topic SET housekept_at = ${NOW}
  WHERE topic_id = ? AND (housekept_at IS NULL OR housekept_at NOT BETWEEN ${NOW} - INTERVAL ${whole(everyMs)} * 1000 MICROSECOND AND ${NOW})`,
    params: [topic],
  }),
};
