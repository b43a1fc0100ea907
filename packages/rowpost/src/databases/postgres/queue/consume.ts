/** Reading for a group, and writing what it has finished. */
import { MEMBER_SILENT } from "../../../message/member-silent.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { ConsumeStatements } from "../../sql/queue/statements.ts";
import { RESULTS, startId } from "../../sql/queue/values.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { msBetween, NOW, numberArray, textArray } from "../names.ts";

const COLUMNS = `m.message_id::text AS id, m.partition_no AS partition_no, m.message_key AS message_key, m.message_type AS message_type,
  m.content_type AS content_type, m.headers AS headers, m.ordering_key AS ordering_key,
  CASE WHEN m.deliver_at IS NULL THEN 0 ELSE ${msBetween(NOW, "m.deliver_at")} END AS due_in_ms`;
const SHORT_BODY = `CASE WHEN octet_length(m.message_data) <= $5::bigint THEN m.message_data END AS message_data,
  CASE WHEN octet_length(m.message_data) > $5::bigint THEN octet_length(m.message_data) END AS left_out_bytes`;

/** Records of a deleted group stay: another round lets one of its name write its own. */
const BEGINS_IN =
  "COALESCE((SELECT g.round FROM message_group g WHERE g.topic_id = c.topic_id AND g.consumer_group_id = $2::varchar), 0)";
const BEHIND_LAST = "(c.last_id + 1) * 64 + c.partition_no";

export const consume: ConsumeStatements = {
  /** Two members that join at once meet at the primary key; what is there stays as it is. */
  insertProgress: ({ topic, group }, start) => ({
    name: "insertProgress",
    text: `INSERT INTO message_consumption (topic_id, consumer_group_id, partition_no, begin_message_id, next_message_id, message_date, round)
SELECT c.topic_id, $2::varchar, c.partition_no, ${start === "end" ? `${BEHIND_LAST}, ${BEHIND_LAST}` : "$3::bigint, $3::bigint"}, 0, ${BEGINS_IN}
FROM message_topic_partition c WHERE c.topic_id = $1
ON CONFLICT (topic_id, consumer_group_id, partition_no) DO NOTHING`,
    params: [topic, group, ...(start === "end" ? [] : [startId(start)])],
  }),

  readProgress: ({ topic, group }) => ({
    name: "readProgress",
    text: `SELECT partition_no AS partitionno, next_message_id::text AS nextid, round, epoch
FROM message_consumption WHERE topic_id = $1 AND consumer_group_id = $2`,
    params: [topic, group],
  }),

  readCounters: ({ topic, group }) => ({
    name: "readCounters",
    text: `SELECT c.partition_no AS partitionno, c.last_id::text AS lastid, CASE WHEN g.paused_at IS NULL THEN 0 ELSE 1 END AS paused
FROM message_topic_partition AS c LEFT JOIN message_group AS g ON g.topic_id = c.topic_id AND g.consumer_group_id = $2
WHERE c.topic_id = $1`,
    params: [topic, group],
  }),

  // By the primary key also without statistics: the session plans without sequential and bitmap
  // scans.
  readMessages: ({ topic, month, partition, fromId, toId, limit, bodyLimit }) => ({
    name: "readMessages",
    text: `SELECT ${COLUMNS}, ${SHORT_BODY}
FROM ${quoteName(infoTable(topic, month))} m
WHERE m.partition_no = $1 AND m.message_id BETWEEN $2::bigint AND $3::bigint
ORDER BY m.message_id LIMIT $4::bigint`,
    params: [partition, fromId, toId, limit, bodyLimit],
  }),

  // OFFSET 0: looked up one by one, also by a plan that was made when the month had a few rows.
  readIds: ({ topic, month, ids }) => ({
    name: "readIds",
    text: `SELECT ${COLUMNS}, m.message_data AS message_data
FROM unnest($1::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT * FROM ${quoteName(infoTable(topic, month))} i
  WHERE i.partition_no = (wanted.id % 64)::integer AND i.message_id = wanted.id OFFSET 0) m
ORDER BY m.message_id`,
    params: [numberArray(ids)],
  }),

  /**
   * Locks the partition's row until the transaction ends, so that a takeover or rewind comes before
   * it, and then this matches nothing, or after it. If we die right after it, nothing has moved.
   */
  moveProgress: ({ topic, group }, { partition, owner, epoch, fromId, orId, nextId = null, month }) => ({
    name: "moveProgress",
    text: `UPDATE message_consumption
SET next_message_id = COALESCE($6::bigint, next_message_id), message_date = CASE WHEN $6::bigint IS NULL THEN message_date ELSE $7::integer END, update_time = ${NOW}
WHERE topic_id = $1 AND consumer_group_id = $2 AND partition_no = $3 AND owner = $4 AND epoch = $5
  AND ($6::bigint IS NULL OR next_message_id IN ($8::bigint, $9::bigint))`,
    params: [topic, group, partition, owner, epoch, nextId, month, fromId, orId],
  }),

  // Single reads of the primary key.
  readRecorded: ({ topic, group }, { month, round, ids }) => ({
    name: "readRecorded",
    text: `SELECT wanted.id::text AS id, r.attempt AS attempt, CASE WHEN r.error LIKE '${MEMBER_SILENT}:%' THEN 1 ELSE 0 END AS silent
FROM unnest($1::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT attempt, error FROM ${quoteName(recordTable(topic, month))} i
  WHERE i.message_id = wanted.id AND i.consumer_group_id = $2 AND i.round = $3::integer OFFSET 0) r`,
    params: [numberArray(ids), group, round],
  }),

  /**
   * In the transaction that has the partition's progress locked. A settle without an answer writes
   * the same again; the end of an attempt takes the place of the mark of its begin.
   */
  insertRecords: ({ topic, group }, { month, round, place, records }) => ({
    name: "insertRecords",
    text: `INSERT INTO ${quoteName(recordTable(topic, month))}
  (message_id, consumer_group_id, round, attempt, message_key, last_message_id, messages, ip, port, instance, consumption_time, result, duration_ms, error)
SELECT done.id, $1, $2::integer, done.attempt, done.key, done.last_id, done.messages, $3, $4::integer, $5, ${NOW}, done.result, done.duration_ms, done.error
FROM unnest($6::bigint[], $7::integer[], $8::text[], $9::bigint[], $10::integer[], $11::smallint[], $12::integer[], $13::text[])
  AS done (id, attempt, key, last_id, messages, result, duration_ms, error)
ON CONFLICT (message_id, consumer_group_id, round, attempt) DO UPDATE
  SET result = EXCLUDED.result, duration_ms = EXCLUDED.duration_ms, error = EXCLUDED.error`,
    params: [
      group,
      round,
      place.ip,
      place.port,
      place.instance,
      numberArray(records.map(({ id }) => id)),
      numberArray(records.map(({ attempt }) => attempt)),
      textArray(records.map(({ key }) => key)),
      numberArray(records.map(({ lastId }) => lastId)),
      numberArray(records.map(({ messages }) => messages)),
      numberArray(records.map(({ result }) => RESULTS[result])),
      numberArray(records.map(({ durationMs }) => durationMs)),
      textArray(records.map(({ error }) => error)),
    ],
  }),
};
