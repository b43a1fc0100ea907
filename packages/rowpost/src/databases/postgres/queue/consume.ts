import { MEMBER_SILENT } from "../../../message/member-silent.ts";
import type { GroupKey } from "../../../queue/store.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { ConsumeStatements, NewRecords, ProgressRequest } from "../../sql/queue/statements.ts";
import { RESULTS } from "../../sql/queue/values.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { msBetween, NOW, numberArray, textArray } from "../names.ts";

const COLUMNS = `m.message_id::text AS id, m.partition_no AS partition_no, m.message_key AS message_key, m.message_type AS message_type,
  m.content_type AS content_type, m.headers AS headers, m.ordering_key AS ordering_key,
  CASE WHEN m.deliver_at IS NULL THEN 0 ELSE ${msBetween(NOW, "m.deliver_at")} END AS due_in_ms`;
const SHORT_BODY = `CASE WHEN octet_length(m.message_data) <= $5::bigint THEN m.message_data END AS message_data,
  CASE WHEN octet_length(m.message_data) > $5::bigint THEN octet_length(m.message_data) END AS left_out_bytes`;

const MOVE = `UPDATE message_consumption
SET next_message_id = COALESCE($6::bigint, next_message_id), message_date = CASE WHEN $6::bigint IS NULL THEN message_date ELSE $7::integer END, update_time = ${NOW}
WHERE topic_id = $1 AND consumer_group_id = $2 AND partition_no = $3 AND owner = $4 AND epoch = $5
  AND ($6::bigint IS NULL OR next_message_id IN ($8::bigint, $9::bigint))`;

function moveParams({ topic, group }: GroupKey, request: ProgressRequest): readonly unknown[] {
  const { partition, owner, epoch, nextId = null, month, fromId, orId } = request;
  return [topic, group, partition, owner, epoch, nextId, month, fromId, orId];
}

export const consume: ConsumeStatements = {
  // By the primary key even without statistics: the session plans without sequential and bitmap
  // scans.
  readMessages: ({ topic, month, partition, fromId, toId, limit, bodyLimit }) => ({
    name: "readMessages",
    text: `SELECT ${COLUMNS}, ${SHORT_BODY}
FROM ${quoteName(infoTable(topic, month))} m
WHERE m.partition_no = $1 AND m.message_id BETWEEN $2::bigint AND $3::bigint
ORDER BY m.message_id LIMIT $4::bigint`,
    params: [partition, fromId, toId, limit, bodyLimit],
  }),

  // OFFSET 0 forces one lookup per id, even in a plan made when the month had few rows.
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
   * Locks the partition's row until the transaction ends, so a takeover or rewind comes before it,
   * and this matches nothing, or after it. If we die right after it, nothing has moved.
   */
  moveProgress: (key, request) => ({ name: "moveProgress", text: MOVE, params: moveParams(key, request) }),

  /** One round trip instead of four. The INSERT reads from the UPDATE: no moved row, no record. */
  moveAndRecord: (key, request, recorded) => ({
    name: "moveAndRecord",
    text: `WITH moved AS (${MOVE} RETURNING 1)
${insertText(key, recorded, { first: 10, from: "moved CROSS JOIN " })}`,
    params: [...moveParams(key, request), ...recordParams(key, recorded)],
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
   * Runs in the transaction that has locked the partition's progress. A repeated settle writes the
   * same again; the end of an attempt replaces its start mark.
   */
  insertRecords: (key, recorded) => ({
    name: "insertRecords",
    text: insertText(key, recorded, { first: 1, from: "" }),
    params: recordParams(key, recorded),
  }),
};

function insertText(
  { topic }: GroupKey,
  { month }: NewRecords,
  { first, from }: { first: number; from: string },
): string {
  const [group, round, ip, port, instance, ...lists] = Array.from({ length: 13 }, (_, index) => `$${first + index}`);
  const types = ["bigint", "integer", "text", "bigint", "integer", "smallint", "integer", "text"];
  return `INSERT INTO ${quoteName(recordTable(topic, month))}
  (message_id, consumer_group_id, round, attempt, message_key, last_message_id, messages, ip, port, instance, consumption_time, result, duration_ms, error)
SELECT done.id, ${group}, ${round}::integer, done.attempt, done.key, done.last_id, done.messages, ${ip}, ${port}::integer, ${instance}, ${NOW}, done.result, done.duration_ms, done.error
FROM ${from}unnest(${lists.map((list, index) => `${list}::${types[index]}[]`).join(", ")})
  AS done (id, attempt, key, last_id, messages, result, duration_ms, error)
ON CONFLICT (message_id, consumer_group_id, round, attempt) DO UPDATE
  SET result = EXCLUDED.result, duration_ms = EXCLUDED.duration_ms, error = EXCLUDED.error`;
}

function recordParams({ group }: GroupKey, { round, place, records }: NewRecords): readonly unknown[] {
  return [
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
  ];
}
