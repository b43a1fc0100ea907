import { QUEUE_EPOCH_MS } from "../../../message/queue-id.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { TopicStatements } from "../../sql/queue/statements.ts";
import { quoteName } from "../names.ts";
import { BYTES, TABLE_OPTIONS } from "./schema.ts";

/** Milliseconds since 2020 by the server's clock, in any session zone. */
export const CLOCK_MS = "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'2020-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000";

export const selectTopics = (partitions: string): string =>
  `SELECT t.topic_id AS topic, ${partitions} AS partitions, t.retention_months AS retentionmonths, c.keyed_partitions AS keyedpartitions
  FROM message_topic AS t JOIN message_topic_partition AS c ON c.topic_id = t.topic_id AND c.partition_no = 0`;

export const topics: TopicStatements = {
  createMonth: (topic, month) => [consumptionTable(topic, month), messageTable(topic, month)],

  monthTables: (topic) => ({
    name: "monthTables",
    text: "SELECT t.TABLE_NAME AS name FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME LIKE ?",
    params: [`${topic.replaceAll("_", "\\_")}\\_message\\_info\\_______`],
  }),

  now: () => ({ name: "now", text: `SELECT ${QUEUE_EPOCH_MS} + ${CLOCK_MS} AS nowms`, params: [] }),
};

/**
 * Keyed by partition first, so a member walks only its partition. The index on ids alone is for
 * people; PostgreSQL has none, because it would read partitions by it. The time is computed from
 * the id.
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
  UNIQUE KEY i_message_id (message_id),
  KEY i_message_key (message_key, message_id)
) ${TABLE_OPTIONS}`;
}

/** One row per attempt, in message order, so it needs no other index. */
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
