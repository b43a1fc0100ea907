/** Looking into the queue: reads that lock nothing. */
import { partitionOfId } from "../../../message/queue-id.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { SearchStatements } from "../../sql/queue/search-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { isoText } from "../names.ts";

const COLUMNS = `CAST(m.message_id AS TEXT) AS id, m.partition_no AS partition_no, m.message_key AS message_key, m.message_type AS message_type,
  m.content_type AS content_type, m.headers AS headers, m.ordering_key AS ordering_key, ${isoText("m.deliver_at")} AS deliver_at,
  m.ip AS ip, m.port AS port, m.producer_group AS producer_group`;

export const search: SearchStatements = {
  readTopic: (topic) => ({
    name: "readTopic",
    text: `SELECT partitions, ${isoText("gmt_create")} AS created FROM message_topic WHERE topic_id = ?`,
    params: [topic],
  }),

  droppedMonths: (topic) => ({
    name: "droppedMonths",
    text: `SELECT message_date AS month, owner, messages, records, redeliveries, author, reason, ${isoText("gmt_create")} AS dropped_at, archive
FROM message_dropped_month WHERE topic_id = ? ORDER BY message_date`,
    params: [topic],
  }),

  searchKey: ({ topic, month, key, fromId, toId, limit }) => ({
    name: "searchKey",
    text: `SELECT ${COLUMNS}
FROM ${quoteName(infoTable(topic, month))} AS m
WHERE m.message_key = ? AND m.message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
ORDER BY m.message_id DESC LIMIT ?`,
    params: [key, fromId, toId, limit],
  }),

  walk: ({ topic, month, partitions, fromId, toId, limit }) => ({
    name: "walk",
    text: Array.from(
      { length: partitions },
      (_, partition) => `SELECT * FROM (SELECT ${COLUMNS}
FROM ${quoteName(infoTable(topic, month))} AS m
WHERE m.partition_no = ${partition} AND m.message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
ORDER BY m.message_id DESC LIMIT ?)`,
    ).join("\nUNION ALL\n"),
    params: Array.from({ length: partitions }, () => [fromId, toId, limit]).flat(),
  }),

  readMessage: ({ topic, month, id }) => ({
    name: "readMessage",
    text: `SELECT ${COLUMNS}, m.message_data AS message_data
FROM ${quoteName(infoTable(topic, month))} AS m
WHERE m.partition_no = ? AND m.message_id = CAST(? AS INTEGER)`,
    params: [partitionOfId(id), id],
  }),

  readRecords: ({ topic, month, id, fromId }) => ({
    name: "readRecords",
    text: `SELECT CAST(r.message_id AS TEXT) AS id, r.consumer_group_id AS group_id, r.round AS round, r.attempt AS attempt,
  CAST(r.last_message_id AS TEXT) AS last_id, r.messages AS messages, r.ip AS ip, r.port AS port, r.instance AS instance,
  ${isoText("r.consumption_time")} AS consumed_at, r.result AS result, r.duration_ms AS duration_ms, r.error AS error
FROM ${quoteName(recordTable(topic, month))} AS r
WHERE r.message_id BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
  AND (r.message_id = CAST(? AS INTEGER) OR r.last_message_id >= CAST(? AS INTEGER)) AND (r.message_id & 63) = ?
ORDER BY r.message_id, r.consumer_group_id, r.round, r.attempt`,
    params: [fromId, id, id, id, partitionOfId(id)],
  }),

  readPlaces: (topic, id) => ({
    name: "readPlaces",
    text: `SELECT p.consumer_group_id AS group_id, CAST(p.next_message_id AS TEXT) AS next_id, p.round AS round,
  a.state AS state, a.attempt AS attempt, ${isoText("a.next_attempt_at")} AS next_attempt_at, a.fail_reason AS fail_reason
FROM message_consumption AS p
LEFT JOIN message_redelivery AS a ON a.topic_id = p.topic_id AND a.consumer_group_id = p.consumer_group_id
  AND a.partition_no = p.partition_no AND a.message_id = CAST(? AS INTEGER)
WHERE p.topic_id = ? AND p.partition_no = ? ORDER BY p.consumer_group_id`,
    params: [id, topic, partitionOfId(id)],
  }),
};
