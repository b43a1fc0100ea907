import { MEMBER_SILENT } from "../../../message/member-silent.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { ConsumeStatements } from "../../sql/queue/statements.ts";
import { RESULTS } from "../../sql/queue/values.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { jsonIds, msSince, NOW } from "../names.ts";

const COLUMNS = `CAST(m.message_id AS TEXT) AS id, m.partition_no AS partition_no, m.message_key AS message_key, m.message_type AS message_type,
  m.content_type AS content_type, m.headers AS headers, m.ordering_key AS ordering_key,
  CASE WHEN m.deliver_at IS NULL THEN 0 ELSE -${msSince("m.deliver_at")} END AS due_in_ms`;
const BYTES = "LENGTH(CAST(m.message_data AS BLOB))";
const SHORT_BODY = `CASE WHEN ${BYTES} <= ? THEN m.message_data END AS message_data, CASE WHEN ${BYTES} > ? THEN ${BYTES} END AS left_out_bytes`;

export const consume: ConsumeStatements = {
  readMessages: ({ topic, month, partition, fromId, toId, limit, bodyLimit }) => ({
    name: "readMessages",
    text: `SELECT ${COLUMNS}, ${SHORT_BODY}
FROM ${quoteName(infoTable(topic, month))} AS m
WHERE m.partition_no = ? AND m.message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
ORDER BY m.message_id LIMIT ?`,
    params: [bodyLimit, bodyLimit, partition, fromId, toId, limit],
  }),

  readIds: ({ topic, month, ids }) => ({
    name: "readIds",
    text: `SELECT ${COLUMNS}, m.message_data AS message_data
FROM json_each(?) AS wanted JOIN ${quoteName(infoTable(topic, month))} AS m ON m.partition_no = (wanted.value & 63) AND m.message_id = wanted.value
ORDER BY m.message_id`,
    params: [jsonIds(ids)],
  }),

  moveProgress: ({ topic, group }, { partition, owner, epoch, fromId, orId, nextId = null, month }) => ({
    name: "moveProgress",
    text: `UPDATE message_consumption
SET next_message_id = COALESCE(CAST(? AS INTEGER), next_message_id), message_date = CASE WHEN ? IS NULL THEN message_date ELSE ? END, update_time = ${NOW}
WHERE (? IS NULL OR next_message_id IN (CAST(? AS INTEGER), CAST(? AS INTEGER)))
  AND topic_id = ? AND consumer_group_id = ? AND partition_no = ? AND owner = ? AND epoch = ?`,
    params: [nextId, nextId, month, nextId, fromId, orId, topic, group, partition, owner, epoch],
  }),

  // Single reads of the primary key.
  readRecorded: ({ topic, group }, { month, round, ids }) => ({
    name: "readRecorded",
    text: `SELECT CAST(r.message_id AS TEXT) AS id, r.attempt AS attempt, CASE WHEN r.error LIKE '${MEMBER_SILENT}:%' THEN 1 ELSE 0 END AS silent
FROM json_each(?) AS wanted JOIN ${quoteName(recordTable(topic, month))} AS r
  ON r.message_id = wanted.value AND r.consumer_group_id = ? AND r.round = ?`,
    params: [jsonIds(ids), group, round],
  }),

  /** A repeated settle writes the same again; the end of an attempt replaces its start mark. */
  insertRecords: ({ topic, group }, { month, round, place, records }) => ({
    name: "insertRecords",
    text: `INSERT INTO ${quoteName(recordTable(topic, month))}
  (message_id, consumer_group_id, round, attempt, result, duration_ms, message_key, error, last_message_id, messages, ip, port, instance, consumption_time)
SELECT ${field(0)}, ?, ?, ${[1, 2, 3, 4, 5, 6, 7].map(field).join(", ")}, ?, ?, ?, ${NOW}
FROM json_each(?) WHERE true
ON CONFLICT (message_id, consumer_group_id, round, attempt) DO UPDATE
  SET result = excluded.result, duration_ms = excluded.duration_ms, error = excluded.error`,
    params: [
      group,
      round,
      place.ip,
      place.port,
      place.instance,
      `[${records
        .map(
          ({ id, lastId, messages, key, attempt, result, durationMs, error }) =>
            `[${id},${attempt},${RESULTS[result]},${durationMs},${JSON.stringify(key)},${JSON.stringify(error)},${lastId},${messages}]`,
        )
        .join(",")}]`,
    ],
  }),
};

function field(place: number): string {
  return `json_extract(value, '$[${place}]')`;
}
