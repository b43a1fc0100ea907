import { QUEUE_EPOCH_MS } from "../../../message/queue-id.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { TopicStatements } from "../../sql/queue/statements.ts";
import { quoteName } from "../../sql/sql-names.ts";

/** Milliseconds since 2020 by the server's clock. */
export const CLOCK_MS: string = `((extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${QUEUE_EPOCH_MS})`;

export const TOPICS = `SELECT t.topic_id AS topic, t.partitions AS partitions, t.retention_months AS retentionmonths, c.keyed_partitions AS keyedpartitions
FROM message_topic t JOIN message_topic_partition c ON c.topic_id = t.topic_id AND c.partition_no = 0`;

export const topics: TopicStatements = {
  createMonth: (topic, month) => [...consumptionTable(topic, month), ...messageTable(topic, month)],

  // In the schema in which the session finds the queue's own tables.
  monthTables: (topic) => ({
    name: "monthTables",
    text: `SELECT c.relname AS name FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_class own ON own.oid = to_regclass('message_topic') AND own.relnamespace = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND starts_with(c.relname::text, $1)`,
    params: [`${topic}_message_info_`],
  }),

  now: () => ({ name: "now", text: `SELECT (${CLOCK_MS} + ${QUEUE_EPOCH_MS})::text AS nowms`, params: [] }),
};

/**
 * Keyed by partition first, so a member walks only its partition. The time is computed from the id.
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

/** One row per attempt, in message order, so it needs no other index. */
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
