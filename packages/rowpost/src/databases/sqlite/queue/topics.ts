import { QUEUE_EPOCH_MS } from "../../../message/queue-id.ts";
import { infoTable, recordTable } from "../../sql/queue/names.ts";
import type { TopicStatements } from "../../sql/queue/statements.ts";
import { quoteName } from "../../sql/sql-names.ts";

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
};

/** Keyed by partition first, so a member walks only its partition. */
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

/** One row per attempt, in message order, so it needs no other index. */
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
