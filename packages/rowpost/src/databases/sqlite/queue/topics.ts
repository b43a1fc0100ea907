/** Topics and the tables of their months. */
import { QUEUE_EPOCH_MS } from "../../../message/queue-id.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { TopicStatements } from "../../sql/queue/statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { NOW } from "../names.ts";

/** Milliseconds since 2020 by the machine's clock. */
export const CLOCK_MS = "CAST(round((julianday('now') - 2458849.5) * 86400000.0) AS INTEGER)";

export const topics: TopicStatements = {
  createMonth: (topic, month) => [consumptionTable(topic, month), ...messageTable(topic, month)],
  monthTables: (topic) => ({
    name: "monthTables",
    text: "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, length(?)) = ?",
    params: [`${topic}_message_info_`, `${topic}_message_info_`],
  }),

  now: () => ({ name: "now", text: `SELECT CAST(${QUEUE_EPOCH_MS} + ${CLOCK_MS} AS TEXT) AS nowms`, params: [] }),

  dropTable: (table) => `DROP TABLE IF EXISTS ${quoteName(table)}`,

  insertTopic: ({ topic, partitions, retentionMonths }) => ({
    name: "insertTopic",
    text: `INSERT INTO message_topic (topic_id, partitions, retention_months, gmt_create, gmt_modified) VALUES (?, ?, ?, ${NOW}, ${NOW}) ON CONFLICT (topic_id) DO NOTHING`,
    params: [topic, partitions, retentionMonths],
  }),

  // A counter that is there stays as it is.
  insertCounters: ({ topic, partitions }) => ({
    name: "insertCounters",
    text: `INSERT INTO message_topic_partition (topic_id, partition_no, keyed_partitions)
SELECT ?, missing.value, COALESCE((SELECT max(keyed_partitions) FROM message_topic_partition WHERE topic_id = ?), ?)
FROM json_each(?) AS missing WHERE true
ON CONFLICT (topic_id, partition_no) DO NOTHING`,
    params: [topic, topic, partitions, JSON.stringify(Array.from({ length: partitions }, (_, index) => index))],
  }),

  readTopics: (topic) => ({
    name: "readTopics",
    text: `SELECT t.topic_id AS topic, t.partitions AS partitions, t.retention_months AS retentionmonths, c.keyed_partitions AS keyedpartitions
FROM message_topic AS t JOIN message_topic_partition AS c ON c.topic_id = t.topic_id AND c.partition_no = 0
${topic === undefined ? "" : "WHERE t.topic_id = ? "}ORDER BY t.topic_id`,
    params: topic === undefined ? [] : [topic],
  }),

  updateTopic: ({ topic, partitions, retentionMonths }) => ({
    name: "updateTopic",
    text: `UPDATE message_topic SET partitions = max(partitions, ?), retention_months = ?, gmt_modified = ${NOW} WHERE topic_id = ?`,
    params: [partitions, retentionMonths, topic],
  }),

  // The transaction has the file's only write lock already.
  lockCounters: (topic) => ({
    name: "lockCounters",
    text: "SELECT partition_no AS partitionno FROM message_topic_partition WHERE topic_id = ? ORDER BY partition_no",
    params: [topic],
  }),

  isUnread: (topic) => ({
    name: "isUnread",
    text: `SELECT EXISTS (SELECT 1 FROM message_consumption AS p JOIN message_topic_partition AS c ON c.topic_id = p.topic_id AND c.partition_no = p.partition_no
  WHERE p.topic_id = ? AND c.last_id > 0 AND p.next_message_id <= c.last_id * 64 + c.partition_no)
  OR EXISTS (SELECT 1 FROM message_redelivery AS r WHERE r.topic_id = ? AND r.state = 0 AND r.ordering_key IS NOT NULL) AS unread`,
    params: [topic, topic],
  }),

  spreadKeys: (topic) => ({
    name: "spreadKeys",
    text: "UPDATE message_topic_partition SET keyed_partitions = (SELECT t.partitions FROM message_topic AS t WHERE t.topic_id = message_topic_partition.topic_id) WHERE topic_id = ?",
    params: [topic],
  }),

  deleteTopic: (table, topic) => ({
    name: "deleteTopic",
    text: `DELETE FROM ${table} WHERE topic_id = ?`,
    params: [topic],
  }),
};

/** By partition first: a member reads one partition, and walks nothing of the others. */
function messageTable(topic: string, month: number): readonly string[] {
  const table = infoTable(topic, month);
  return [
    `CREATE TABLE IF NOT EXISTS ${quoteName(table)} (
  partition_no INTEGER NOT NULL,
  message_id INTEGER NOT NULL,
  message_key TEXT,
  message_type TEXT,
  message_data TEXT NOT NULL,          -- JSON; or text; or base64 when content_type ends in ;base64
  content_type TEXT,                   -- NULL = application/json
  headers TEXT,                        -- JSON object of strings
  ordering_key TEXT,
  deliver_at TEXT,                     -- not before this instant
  ip TEXT,                             -- of the producer
  port INTEGER,
  producer_group TEXT,
  send_time TEXT GENERATED ALWAYS AS (strftime('%Y-%m-%d %H:%M:%f', (${QUEUE_EPOCH_MS} + (message_id >> 22)) / 1000.0, 'unixepoch')) VIRTUAL,
  PRIMARY KEY (partition_no, message_id)
) WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${table}_key`)} ON ${quoteName(table)} (message_key, message_id)`,
  ];
}

/** One row for each attempt; in the order of the messages, so that it needs no other index. */
function consumptionTable(topic: string, month: number): string {
  return `CREATE TABLE IF NOT EXISTS ${quoteName(recordTable(topic, month))} (
  message_id INTEGER NOT NULL,
  consumer_group_id TEXT NOT NULL,
  round INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  message_key TEXT,
  last_message_id INTEGER,             -- the row is about all messages of the partition up to this one
  messages INTEGER NOT NULL DEFAULT 1,
  ip TEXT,                             -- of the consumer
  port INTEGER,
  instance TEXT NOT NULL,
  consumption_time TEXT NOT NULL,
  result INTEGER NOT NULL,             -- 0 consumed, 1 failed, 2 dead letter, 3 skipped, 4 discarded, 5 redelivered
  duration_ms INTEGER NOT NULL,
  error TEXT,
  PRIMARY KEY (message_id, consumer_group_id, round, attempt)
) WITHOUT ROWID`;
}
