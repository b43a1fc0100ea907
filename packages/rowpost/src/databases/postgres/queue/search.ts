/** Looking into the queue: reads that lock nothing. */
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { SearchStatements } from "../../sql/queue/search-statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { isoText } from "../names.ts";

const COLUMNS = `m.message_id::text AS id, m.partition_no AS partition_no, m.message_key AS message_key, m.message_type AS message_type,
  m.content_type AS content_type, m.headers AS headers, m.ordering_key AS ordering_key, ${isoText("m.deliver_at")} AS deliver_at,
  m.ip AS ip, m.port AS port, m.producer_group AS producer_group`;

export const search: SearchStatements = {
  readTopic: (topic) => ({
    name: "readTopic",
    text: `SELECT partitions, ${isoText("gmt_create")} AS created FROM message_topic WHERE topic_id = $1`,
    params: [topic],
  }),

  droppedMonths: (topic) => ({
    name: "droppedMonths",
    text: `SELECT message_date AS month, owner, messages::text AS messages, records::text AS records, redeliveries::text AS redeliveries, author, reason,
  ${isoText("gmt_create")} AS dropped_at, archive
FROM message_dropped_month WHERE topic_id = $1 ORDER BY message_date`,
    params: [topic],
  }),

  searchKey: ({ topic, month, key, fromId, toId, limit }) => ({
    name: "searchKey",
    text: `SELECT ${COLUMNS}
FROM ${quoteName(infoTable(topic, month))} m
WHERE m.message_key = $1 AND m.message_id BETWEEN $2::bigint AND $3::bigint
ORDER BY m.message_id DESC LIMIT $4::bigint`,
    params: [key, fromId, toId, limit],
  }),

  walk: ({ topic, month, partitions, fromId, toId, limit }) => ({
    name: "walk",
    text: Array.from(
      { length: partitions },
      (_, partition) => `(SELECT ${COLUMNS}
FROM ${quoteName(infoTable(topic, month))} m
WHERE m.partition_no = ${partition} AND m.message_id BETWEEN $1::bigint AND $2::bigint
ORDER BY m.message_id DESC LIMIT $3::bigint)`,
    ).join("\nUNION ALL\n"),
    params: [fromId, toId, limit],
  }),

  readMessage: ({ topic, month, id }) => ({
    name: "readMessage",
    text: `SELECT ${COLUMNS}, m.message_data AS message_data
FROM ${quoteName(infoTable(topic, month))} m
WHERE m.partition_no = ($1::bigint % 64)::integer AND m.message_id = $1::bigint`,
    params: [id],
  }),

  readRecords: ({ topic, month, id, fromId }) => ({
    name: "readRecords",
    text: `SELECT r.message_id::text AS id, r.consumer_group_id AS group_id, r.round AS round, r.attempt AS attempt,
  r.last_message_id::text AS last_id, r.messages AS messages, r.ip AS ip, r.port AS port, r.instance AS instance,
  ${isoText("r.consumption_time")} AS consumed_at, r.result AS result, r.duration_ms AS duration_ms, r.error AS error
FROM ${quoteName(recordTable(topic, month))} r
WHERE r.message_id BETWEEN $1::bigint AND $2::bigint AND (r.message_id = $2::bigint OR r.last_message_id >= $2::bigint)
  AND r.message_id % 64 = $2::bigint % 64
ORDER BY r.message_id, r.consumer_group_id, r.round, r.attempt`,
    params: [fromId, id],
  }),

  readPlaces: (topic, id) => ({
    name: "readPlaces",
    text: `SELECT p.consumer_group_id AS group_id, p.next_message_id::text AS next_id, p.round AS round,
  a.state AS state, a.attempt AS attempt, ${isoText("a.next_attempt_at")} AS next_attempt_at, a.fail_reason AS fail_reason
FROM message_consumption p
LEFT JOIN message_redelivery a ON a.topic_id = p.topic_id AND a.consumer_group_id = p.consumer_group_id
  AND a.partition_no = p.partition_no AND a.message_id = $2::bigint
WHERE p.topic_id = $1 AND p.partition_no = ($2::bigint % 64)::integer ORDER BY p.consumer_group_id`,
    params: [topic, id],
  }),
};
