/** Topics and the tables of their months. */
import { QUEUE_EPOCH_MS } from "../../../message/queue-id.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { TopicStatements } from "../../sql/queue/statements.ts";
import { COMPANION_NOW as NOW, whole } from "../clock.ts";
import { quoteName } from "../names.ts";
import { BYTES, TABLE_OPTIONS } from "./schema.ts";

/** Milliseconds since 2020 by the server's clock, whatever the session's zone is. */
export const CLOCK_MS = "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'2020-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000";

export const selectTopics = (partitions: string): string =>
  `SELECT t.topic_id AS topic, ${partitions} AS partitions, t.retention_months AS retentionmonths, c.keyed_partitions AS keyedpartitions
  FROM message_topic AS t JOIN message_topic_partition AS c ON c.topic_id = t.topic_id AND c.partition_no = 0`;

export const topics: TopicStatements = {
  createMonth: (topic, month) => [consumptionTable(topic, month), messageTable(topic, month)],
  dropTable: (table) => `DROP TABLE IF EXISTS ${quoteName(table)}`,

  monthTables: (topic) => ({
    name: "monthTables",
    text: "SELECT t.TABLE_NAME AS name FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME LIKE ?",
    params: [`${topic.replaceAll("_", "\\_")}\\_message\\_info\\_______`],
  }),

  now: () => ({ name: "now", text: `SELECT ${QUEUE_EPOCH_MS} + ${CLOCK_MS} AS nowms`, params: [] }),

  /**
   * Two that create one topic meet at its key: the second waits for the first, and inserts nothing.
   * IGNORE, because a driver may count the row that an ON DUPLICATE KEY UPDATE has found.
   */
  insertTopic: ({ topic, partitions, retentionMonths }) => ({
    name: "insertTopic",
    text: `INSERT IGNORE INTO message_topic (topic_id, partitions, retention_months, gmt_create, gmt_modified)
  VALUES (?, ?, ?, ${NOW}, ${NOW})`,
    params: [topic, partitions, retentionMonths],
  }),

  /** In the transaction that has the topic's row locked. A counter that is there stays as it is. */
  insertCounters: ({ topic, partitions }) => ({
    name: "insertCounters",
    text: `INSERT INTO message_topic_partition (topic_id, partition_no, keyed_partitions)
  SELECT ?, j.partition_no - 1, COALESCE((SELECT MAX(c.keyed_partitions) FROM message_topic_partition AS c WHERE c.topic_id = ?), ?)
  FROM JSON_TABLE(?, '$[*]' COLUMNS (partition_no FOR ORDINALITY)) AS j
  ON DUPLICATE KEY UPDATE last_id = message_topic_partition.last_id`,
    params: [topic, topic, partitions, JSON.stringify(Array.from({ length: partitions }, () => 0))],
  }),

  readTopics: (topic) => ({
    name: "readTopics",
    text: `${selectTopics("t.partitions")}
  ${topic === undefined ? "" : "WHERE t.topic_id = ? "}ORDER BY t.topic_id`,
    params: topic === undefined ? [] : [topic],
  }),

  /** Locks the topic's row: two that alter it come one after the other. */
  updateTopic: ({ topic, partitions, retentionMonths }) => ({
    name: "updateTopic",
    text: `UPDATE message_topic SET partitions = GREATEST(partitions, ${whole(partitions)}), retention_months = ?, gmt_modified = ${NOW} WHERE topic_id = ?`,
    params: [retentionMonths, topic],
  }),

  /** Locks every counter until the end of the transaction: no append is under way then. */
  lockCounters: (topic) => ({
    name: "lockCounters",
    text: "SELECT partition_no AS partitionno FROM message_topic_partition WHERE topic_id = ? ORDER BY partition_no FOR UPDATE",
    params: [topic],
  }),

  isUnread: (topic) => ({
    name: "isUnread",
    text: `SELECT EXISTS (SELECT 1 FROM message_consumption AS p JOIN message_topic_partition AS c ON c.topic_id = p.topic_id AND c.partition_no = p.partition_no
  WHERE p.topic_id = ? AND c.last_id > 0 AND p.next_message_id <= c.last_id * 64 + c.partition_no)
  OR EXISTS (SELECT 1 FROM message_redelivery AS r WHERE r.topic_id = ? AND r.state = 0 AND r.ordering_key IS NOT NULL) AS unread`,
    params: [topic, topic],
  }),

  /** Of rows that this transaction has locked. Appends compare the number under the same lock. */
  spreadKeys: (topic) => ({
    name: "spreadKeys",
    text: "UPDATE message_topic_partition AS c JOIN message_topic AS t ON t.topic_id = c.topic_id SET c.keyed_partitions = t.partitions WHERE c.topic_id = ?",
    params: [topic],
  }),

  /** Locks the topic's rows; see the order in topic-store.ts. */
  deleteTopic: (table, topic) => ({
    name: "deleteTopic",
    text: `DELETE FROM ${table} WHERE topic_id = ?`,
    params: [topic],
  }),
};

/**
 * By partition first: a member reads one partition, and walks nothing of the others. The time is
 * read out of the id, and takes no room.
 */
function messageTable(topic: string, month: number): string {
  return `CREATE TABLE IF NOT EXISTS ${quoteName(infoTable(topic, month))} (
  partition_no INT NOT NULL,
  message_id BIGINT NOT NULL,
  message_key VARCHAR(128) ${BYTES} NULL,
  message_type VARCHAR(64) ${BYTES} NULL,
  message_data MEDIUMTEXT NOT NULL COMMENT 'JSON; or text; or base64 when content_type ends in ;base64',
  content_type VARCHAR(64) NULL COMMENT 'NULL = application/json',
  headers MEDIUMTEXT NULL COMMENT 'JSON object of strings',
  ordering_key VARCHAR(128) ${BYTES} NULL,
  deliver_at DATETIME(3) NULL COMMENT 'not before this instant',
  ip VARCHAR(45) NULL COMMENT 'of the producer',
  port INT NULL,
  producer_group VARCHAR(64) NULL,
  send_time DATETIME(3) AS (TIMESTAMP'2020-01-01 00:00:00' + INTERVAL (message_id DIV 4194304) * 1000 MICROSECOND) VIRTUAL,
  PRIMARY KEY (partition_no, message_id),
  KEY i_message_key (message_key, message_id)
) ${TABLE_OPTIONS}`;
}

/** One row for each attempt; in the order of the messages, so that it needs no other index. */
function consumptionTable(topic: string, month: number): string {
  return `CREATE TABLE IF NOT EXISTS ${quoteName(recordTable(topic, month))} (
  message_id BIGINT NOT NULL,
  consumer_group_id VARCHAR(64) ${BYTES} NOT NULL,
  round INT NOT NULL,
  attempt INT NOT NULL,
  message_key VARCHAR(128) ${BYTES} NULL,
  last_message_id BIGINT NULL COMMENT 'the row is about all messages of the partition up to this one',
  messages INT NOT NULL DEFAULT 1,
  ip VARCHAR(45) NULL COMMENT 'of the consumer',
  port INT NULL,
  instance VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  consumption_time DATETIME(3) NOT NULL,
  result TINYINT NOT NULL COMMENT '0 consumed, 1 failed, 2 dead letter, 3 skipped, 4 discarded, 5 redelivered',
  duration_ms INT NOT NULL,
  error VARCHAR(1024) NULL,
  PRIMARY KEY (message_id, consumer_group_id, round, attempt)
) ${TABLE_OPTIONS}`;
}
