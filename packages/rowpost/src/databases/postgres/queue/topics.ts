/** Topics and the tables of their months. */
import { QUEUE_EPOCH_MS } from "../../../message/queue-id.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { TopicStatements } from "../../sql/queue/statements.ts";
import { quoteName } from "../../sql/sql-names.ts";
import { NOW } from "../names.ts";

/** Milliseconds since 2020 by the server's clock. */
export const CLOCK_MS: string = `((extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${QUEUE_EPOCH_MS})`;

export const TOPICS = `SELECT t.topic_id AS topic, t.partitions AS partitions, t.retention_months AS retentionmonths, c.keyed_partitions AS keyedpartitions
FROM message_topic t JOIN message_topic_partition c ON c.topic_id = t.topic_id AND c.partition_no = 0`;

export const topics: TopicStatements = {
  createMonth: (topic, month) => [...consumptionTable(topic, month), ...messageTable(topic, month)],
  dropTable: (table) => `DROP TABLE IF EXISTS ${quoteName(table)}`,

  // In the schema where the session finds the queue's own tables.
  monthTables: (topic) => ({
    name: "monthTables",
    text: `SELECT c.relname AS name FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_class own ON own.oid = to_regclass('message_topic') AND own.relnamespace = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND starts_with(c.relname::text, $1)`,
    params: [`${topic}_message_info_`],
  }),

  now: () => ({ name: "now", text: `SELECT (${CLOCK_MS} + ${QUEUE_EPOCH_MS})::text AS nowms`, params: [] }),

  /**
   * Two that create one topic meet at its key: the second waits for the first, and inserts nothing.
   */
  insertTopic: ({ topic, partitions, retentionMonths }) => ({
    name: "insertTopic",
    text: `INSERT INTO message_topic (topic_id, partitions, retention_months) VALUES ($1, $2, $3) ON CONFLICT (topic_id) DO NOTHING`,
    params: [topic, partitions, retentionMonths],
  }),

  /** In the transaction that has the topic's row locked. A counter that is there stays as it is. */
  insertCounters: ({ topic, partitions }) => ({
    name: "insertCounters",
    text: `INSERT INTO message_topic_partition (topic_id, partition_no, keyed_partitions)
SELECT $1::varchar, missing.partition_no,
  COALESCE((SELECT max(c.keyed_partitions) FROM message_topic_partition c WHERE c.topic_id = $1::varchar), $2::integer)
FROM generate_series(0, $2::integer - 1) AS missing (partition_no)
ON CONFLICT (topic_id, partition_no) DO NOTHING`,
    params: [topic, partitions],
  }),

  readTopics: (topic) => ({
    name: "readTopics",
    text: `${TOPICS}
${topic === undefined ? "" : "WHERE t.topic_id = $1 "}ORDER BY t.topic_id`,
    params: topic === undefined ? [] : [topic],
  }),

  /** Locks the topic's row: two that alter it come one after the other. */
  updateTopic: ({ topic, partitions, retentionMonths }) => ({
    name: "updateTopic",
    text: `UPDATE message_topic SET partitions = GREATEST(partitions, $2::integer), retention_months = $3, gmt_modified = ${NOW} WHERE topic_id = $1`,
    params: [topic, partitions, retentionMonths],
  }),

  /** Locks every counter until the end of the transaction: no append is under way then. */
  lockCounters: (topic) => ({
    name: "lockCounters",
    text: "SELECT partition_no AS partitionno FROM message_topic_partition WHERE topic_id = $1 ORDER BY partition_no FOR UPDATE",
    params: [topic],
  }),

  isUnread: (topic) => ({
    name: "isUnread",
    text: `SELECT CASE WHEN EXISTS (SELECT 1 FROM message_consumption p JOIN message_topic_partition c ON c.topic_id = p.topic_id AND c.partition_no = p.partition_no
  WHERE p.topic_id = $1 AND c.last_id > 0 AND p.next_message_id <= c.last_id * 64 + c.partition_no)
  OR EXISTS (SELECT 1 FROM message_redelivery r WHERE r.topic_id = $1 AND r.state = 0 AND r.ordering_key IS NOT NULL) THEN 1 ELSE 0 END AS unread`,
    params: [topic],
  }),

  /** Of rows that this transaction has locked. Appends compare the number under the same lock. */
  spreadKeys: (topic) => ({
    name: "spreadKeys",
    text: "UPDATE message_topic_partition c SET keyed_partitions = t.partitions FROM message_topic t WHERE t.topic_id = c.topic_id AND c.topic_id = $1",
    params: [topic],
  }),

  /** Locks the topic's rows; see the order in topic-store.ts. */
  deleteTopic: (table, topic) => ({
    name: "deleteTopic",
    text: `DELETE FROM ${table} WHERE topic_id = $1`,
    params: [topic],
  }),
};

/**
 * By partition first: a member reads one partition, and walks nothing of the others. The time is
 * read out of the id.
 */
function messageTable(topic: string, month: number): readonly string[] {
  const table = infoTable(topic, month);
  return [
    `CREATE TABLE IF NOT EXISTS ${quoteName(table)} (
  partition_no integer NOT NULL,
  message_id bigint NOT NULL,
  message_key varchar(128) COLLATE "C",
  message_type varchar(64) COLLATE "C",
  message_data text NOT NULL,
  content_type varchar(64),
  headers text,
  ordering_key varchar(128) COLLATE "C",
  deliver_at timestamptz(3),
  ip varchar(45),
  port integer,
  producer_group varchar(64),
  send_time timestamptz(3) NOT NULL GENERATED ALWAYS AS (to_timestamp((${QUEUE_EPOCH_MS} + message_id / 4194304) / 1000.0)) STORED,
  PRIMARY KEY (partition_no, message_id)
)`,
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${table}_key`)} ON ${quoteName(table)} (message_key, message_id)`,
    `COMMENT ON COLUMN ${quoteName(table)}.message_data IS 'JSON; or text; or base64 when content_type ends in ;base64'`,
    `COMMENT ON COLUMN ${quoteName(table)}.content_type IS 'NULL = application/json'`,
    `COMMENT ON COLUMN ${quoteName(table)}.headers IS 'JSON object of strings'`,
    `COMMENT ON COLUMN ${quoteName(table)}.deliver_at IS 'not before this instant'`,
    `COMMENT ON COLUMN ${quoteName(table)}.ip IS 'of the producer'`,
  ];
}

/** One row for each attempt; in the order of the messages, so that it needs no other index. */
function consumptionTable(topic: string, month: number): readonly string[] {
  const table = quoteName(recordTable(topic, month));
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  message_id bigint NOT NULL,
  consumer_group_id varchar(64) COLLATE "C" NOT NULL,
  round integer NOT NULL,
  attempt integer NOT NULL,
  message_key varchar(128) COLLATE "C",
  last_message_id bigint,
  messages integer NOT NULL DEFAULT 1,
  ip varchar(45),
  port integer,
  instance varchar(64) NOT NULL,
  consumption_time timestamptz(3) NOT NULL,
  result smallint NOT NULL,
  duration_ms integer NOT NULL,
  error varchar(1024),
  PRIMARY KEY (message_id, consumer_group_id, round, attempt)
)`,
    `COMMENT ON COLUMN ${table}.last_message_id IS 'the row is about all messages of the partition up to this one'`,
    `COMMENT ON COLUMN ${table}.ip IS 'of the consumer'`,
    `COMMENT ON COLUMN ${table}.result IS '0 consumed, 1 failed, 2 dead letter, 3 skipped, 4 discarded, 5 redelivered'`,
  ];
}
