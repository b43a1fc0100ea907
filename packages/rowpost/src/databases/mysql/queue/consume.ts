/** Reading for a group, and writing what it has finished. */
import { MEMBER_SILENT } from "../../../message/member-silent.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { ConsumeStatements } from "../../sql/queue/statements.ts";
import { RESULTS, startId } from "../../sql/queue/values.ts";
import { COMPANION_NOW as NOW, whole } from "../clock.ts";
import { quoteName } from "../names.ts";

const COLUMNS = `CAST(m.message_id AS CHAR) AS id, m.partition_no AS partition_no, m.message_key AS message_key, m.message_type AS message_type,
    m.content_type AS content_type, m.headers AS headers, m.ordering_key AS ordering_key,
    COALESCE(TIMESTAMPDIFF(MICROSECOND, ${NOW}, m.deliver_at) DIV 1000, 0) AS due_in_ms`;
/** 200 bodies of 4,000 bytes take 1 ms longer so, of 1,000 bytes no longer (MariaDB 10.11). */
const SHORT_BODY = `IF(OCTET_LENGTH(m.message_data) <= ?, m.message_data, NULL) AS message_data,
    IF(OCTET_LENGTH(m.message_data) <= ?, NULL, OCTET_LENGTH(m.message_data)) AS left_out_bytes`;

/** Records of a deleted group stay: another round lets one of its name write its own. */
const BEGINS_IN =
  "COALESCE((SELECT g.round FROM message_group AS g WHERE g.topic_id = c.topic_id AND g.consumer_group_id = ?), 0)";
const BEHIND_LAST = "(c.last_id + 1) * 64 + c.partition_no";

export const consume: ConsumeStatements = {
  /** Two members that join at once meet at the primary key; what is there stays as it is. */
  insertProgress: ({ topic, group }, start) => ({
    name: "insertProgress",
    text: `INSERT INTO message_consumption (topic_id, consumer_group_id, partition_no, begin_message_id, next_message_id, message_date, round)
  SELECT c.topic_id, ?, c.partition_no, ${start === "end" ? `${BEHIND_LAST}, ${BEHIND_LAST}` : "?, ?"}, 0, ${BEGINS_IN}
  FROM message_topic_partition AS c WHERE c.topic_id = ?
  ON DUPLICATE KEY UPDATE message_date = message_consumption.message_date`,
    params: [group, ...(start === "end" ? [] : [startId(start), startId(start)]), group, topic],
  }),

  readProgress: ({ topic, group }) => ({
    name: "readProgress",
    text: `SELECT partition_no AS partitionno, CAST(next_message_id AS CHAR) AS nextid, round, epoch
  FROM message_consumption WHERE topic_id = ? AND consumer_group_id = ?`,
    params: [topic, group],
  }),

  readCounters: ({ topic, group }) => ({
    name: "readCounters",
    text: `SELECT c.partition_no AS partitionno, CAST(c.last_id AS CHAR) AS lastid, CASE WHEN g.paused_at IS NULL THEN 0 ELSE 1 END AS paused
FROM message_topic_partition AS c LEFT JOIN message_group AS g ON g.topic_id = c.topic_id AND g.consumer_group_id = ?
WHERE c.topic_id = ?`,
    params: [group, topic],
  }),

  readMessages: ({ topic, month, partition, fromId, toId, limit, bodyLimit }) => ({
    name: "readMessages",
    text: `SELECT ${COLUMNS}, ${SHORT_BODY}
  FROM ${quoteName(infoTable(topic, month))} AS m FORCE INDEX (PRIMARY)
  WHERE m.partition_no = ${whole(partition)} AND m.message_id BETWEEN ? AND ?
  ORDER BY m.message_id LIMIT ${whole(limit)}`,
    params: [bodyLimit, bodyLimit, fromId, toId],
  }),

  readIds: ({ topic, month, ids }) => ({
    name: "readIds",
    text: `SELECT ${COLUMNS}, m.message_data AS message_data
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j
  STRAIGHT_JOIN ${quoteName(infoTable(topic, month))} AS m FORCE INDEX (PRIMARY) ON m.partition_no = j.id % 64 AND m.message_id = j.id
  ORDER BY m.message_id`,
    params: [`[${ids.join(",")}]`],
  }),

  /**
   * Locks the partition's row until the transaction ends, so that a takeover or rewind comes before
   * it, and then this matches nothing, or after it. If we die right after it, nothing has moved.
   */
  moveProgress: ({ topic, group }, { partition, owner, epoch, fromId, orId, nextId = null, month }) => ({
    name: "moveProgress",
    text: `UPDATE message_consumption
  SET next_message_id = COALESCE(CAST(? AS SIGNED), next_message_id), message_date = IF(? IS NULL, message_date, ?), update_time = ${NOW}
  WHERE topic_id = ? AND consumer_group_id = ? AND partition_no = ? AND owner = ? AND epoch = ?
    AND (? IS NULL OR next_message_id IN (CAST(? AS SIGNED), CAST(? AS SIGNED)))`,
    params: [nextId, nextId, month, topic, group, partition, owner, epoch, nextId, fromId, orId],
  }),

  // Single reads of the primary key.
  readRecorded: ({ topic, group }, { month, round, ids }) => ({
    name: "readRecorded",
    text: `SELECT CAST(r.message_id AS CHAR) AS id, r.attempt AS attempt, CASE WHEN r.error LIKE '${MEMBER_SILENT}:%' THEN 1 ELSE 0 END AS silent
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j
  STRAIGHT_JOIN ${quoteName(recordTable(topic, month))} AS r FORCE INDEX (PRIMARY) ON r.message_id = j.id AND r.consumer_group_id = ? AND r.round = ?`,
    params: [`[${ids.join(",")}]`, group, round],
  }),

  /**
   * In the transaction that has the partition's progress locked. A settle without an answer writes
   * the same again; the end of an attempt takes the place of the mark of its begin.
   */
  insertRecords: ({ topic, group }, { month, round, place, records }) => ({
    name: "insertRecords",
    text: `INSERT INTO ${quoteName(recordTable(topic, month))}
  (message_id, consumer_group_id, round, attempt, message_key, last_message_id, messages, ip, port, instance, consumption_time, result, duration_ms, error)
  SELECT j.id, ?, ${whole(round)}, j.attempt, j.message_key, j.last_id, j.messages, ?, ?, ?, ${NOW}, j.result, j.duration_ms, j.error
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', attempt INT PATH '$[1]', result INT PATH '$[2]', duration_ms INT PATH '$[3]',
    message_key VARCHAR(128) CHARACTER SET utf8mb4 PATH '$[4]', error VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[5]', last_id BIGINT PATH '$[6]', messages INT PATH '$[7]' DEFAULT '1' ON EMPTY)) AS j
  ON DUPLICATE KEY UPDATE result = VALUES(result), duration_ms = VALUES(duration_ms), error = VALUES(error)`,
    params: [
      group,
      place.ip,
      place.port,
      place.instance,
      `[${records
        .map(({ id, lastId, messages, key, attempt, result, durationMs, error }) => {
          const head = `[${id},${attempt},${RESULTS[result]},${durationMs},${JSON.stringify(key)}`;
          return lastId === null && error === null
            ? `${head}]`
            : `${head},${JSON.stringify(error)},${lastId},${messages}]`;
        })
        .join(",")}]`,
    ],
  }),
};
