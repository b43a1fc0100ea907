import {
  type Cold,
  cold,
  forUpdate,
  insertNew,
  joined,
  now,
  orNothing,
  part,
  plain,
  quoted,
} from "../../databases/sql/cold.ts";
import type { TOPIC_TABLES } from "../../databases/sql/queue/names.ts";
import type { NewTopic } from "../store.ts";

/** Two creators meet at the key: the second waits and inserts nothing. */
export const insertTopic = ({ topic, partitions, retentionMonths }: NewTopic): Cold => cold("insertTopic")`
${insertNew} message_topic (topic_id, partitions, retention_months, gmt_create, gmt_modified)
VALUES (${topic}, ${partitions}, ${retentionMonths}, ${now}, ${now})${orNothing("topic_id")}`;

/** In the transaction that has the topic's row locked. Existing counters stay. */
export function insertCounters({ topic, partitions }: NewTopic): Cold {
  const numbers = Array.from({ length: partitions }, (_, partition) => plain(`SELECT ${partition} AS n`));
  return cold("insertCounters")`
${insertNew} message_topic_partition (topic_id, partition_no, keyed_partitions)
SELECT ${topic}, missing.n, COALESCE((SELECT max(c.keyed_partitions) FROM message_topic_partition AS c WHERE c.topic_id = ${topic}), ${partitions})
FROM (${joined(numbers, " UNION ALL ")}) AS missing WHERE TRUE${orNothing("topic_id, partition_no")}`;
}

/** One topic, or all. */
export const readTopics = (topic: string | undefined): Cold => cold("readTopics")`
SELECT t.topic_id AS topic, t.partitions AS partitions, t.retention_months AS retentionmonths, c.keyed_partitions AS keyedpartitions
FROM message_topic AS t JOIN message_topic_partition AS c ON c.topic_id = t.topic_id AND c.partition_no = 0
${topic === undefined ? plain("") : part`WHERE t.topic_id = ${topic} `}ORDER BY t.topic_id`;

/** Locks the topic's row. */
export const updateTopic = ({ topic, partitions, retentionMonths }: NewTopic): Cold => cold("updateTopic")`
UPDATE message_topic
SET partitions = CASE WHEN partitions < ${partitions} THEN ${partitions} ELSE partitions END, retention_months = ${retentionMonths}, gmt_modified = ${now}
WHERE topic_id = ${topic}`;

/** Locks every counter: no append is under way until the transaction ends. */
export const lockCounters = (topic: string): Cold => cold("lockCounters")`
SELECT partition_no AS partitionno FROM message_topic_partition WHERE topic_id = ${topic} ORDER BY partition_no${forUpdate}`;

/** 1 when a group has unread messages, or a redelivery that holds up its ordering key. */
export const isUnread = (topic: string): Cold => cold("isUnread")`
SELECT CASE WHEN EXISTS (SELECT 1 FROM message_consumption AS p JOIN message_topic_partition AS c ON c.topic_id = p.topic_id AND c.partition_no = p.partition_no
  WHERE p.topic_id = ${topic} AND c.last_id > 0 AND p.next_message_id <= c.last_id * 64 + c.partition_no)
  OR EXISTS (SELECT 1 FROM message_redelivery AS r WHERE r.topic_id = ${topic} AND r.state = 0 AND r.ordering_key IS NOT NULL) THEN 1 ELSE 0 END AS unread`;

/** The transaction holds the rows' locks; appends compare the number under the same lock. */
export const spreadKeys = (topic: string): Cold => cold("spreadKeys")`
UPDATE message_topic_partition
SET keyed_partitions = (SELECT t.partitions FROM message_topic AS t WHERE t.topic_id = message_topic_partition.topic_id) WHERE topic_id = ${topic}`;

/** Locks the topic's rows of one table, in the order of `TOPIC_TABLES`. */
export const deleteTopic = (table: (typeof TOPIC_TABLES)[number], topic: string): Cold => cold("deleteTopic")`
DELETE FROM ${plain(table)} WHERE topic_id = ${topic}`;

export const dropTable = (table: string): Cold => cold("dropTable")`DROP TABLE IF EXISTS ${quoted(table)}`;
