/**
 * The queue's own tables. The text of a released migration never changes: databases store its
 * checksum.
 */
import { queueLayout, queueMigrations } from "../../sql/queue/names.ts";
import type { SchemaStatements } from "../../sql/statements.ts";
import { createNames } from "../names.ts";
import { schemaStatements } from "../schema.ts";

const TABLES = [
  `CREATE TABLE IF NOT EXISTS message_topic (
  topic_id TEXT NOT NULL PRIMARY KEY,
  partitions INTEGER NOT NULL,
  retention_months INTEGER,            -- NULL = kept for ever
  housekept_at TEXT,                   -- when a consumer last looked for months to drop
  gmt_create TEXT NOT NULL,
  gmt_modified TEXT NOT NULL
) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS message_topic_partition (
  topic_id TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  last_id INTEGER NOT NULL DEFAULT 0,  -- milliseconds since 2020 << 16 | sequence of the last message
  keyed_partitions INTEGER NOT NULL,   -- partitions that ordering keys are spread over
  PRIMARY KEY (topic_id, partition_no)
) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS message_consumption (
  topic_id TEXT NOT NULL,
  consumer_group_id TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  begin_message_id INTEGER NOT NULL DEFAULT 0, -- where the group began
  next_message_id INTEGER NOT NULL,    -- the lowest id that the group has not finished
  message_date INTEGER NOT NULL,       -- month of next_message_id, such as 202611
  round INTEGER NOT NULL DEFAULT 0,    -- grows with each rewind
  owner TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  lease_until TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000',
  lease_ms INTEGER NOT NULL DEFAULT 0,
  taken_at TEXT,                       -- since when the owner has it
  update_time TEXT,
  PRIMARY KEY (topic_id, consumer_group_id, partition_no)
) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS message_consumer (
  topic_id TEXT NOT NULL,
  consumer_group_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  label TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  PRIMARY KEY (topic_id, consumer_group_id, owner)
) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS message_redelivery (
  topic_id TEXT NOT NULL,
  consumer_group_id TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  message_id INTEGER NOT NULL,
  state INTEGER NOT NULL,              -- 0 waiting, 1 dead letter; 2 and 3 the same, set aside by a rewind
  attempt INTEGER NOT NULL,            -- attempts so far; 0 = delayed
  first_attempt INTEGER NOT NULL DEFAULT 0, -- attempts before it was redelivered by hand
  ordering_key TEXT,                   -- set where it holds up its key; it waits behind another one until 9999
  next_attempt_at TEXT NOT NULL,
  fail_reason TEXT,
  gmt_create TEXT NOT NULL,
  gmt_modified TEXT NOT NULL,
  PRIMARY KEY (topic_id, consumer_group_id, partition_no, message_id)
) WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS message_redelivery_due ON message_redelivery
  (topic_id, consumer_group_id, partition_no, next_attempt_at) WHERE state = 0`,
  `CREATE TABLE IF NOT EXISTS message_rewind (
  topic_id TEXT NOT NULL,
  consumer_group_id TEXT NOT NULL,
  rewind_no INTEGER NOT NULL,          -- counts the rewinds of the group
  partition_no INTEGER NOT NULL,
  round INTEGER NOT NULL,              -- that began with it
  from_message_id INTEGER NOT NULL,    -- next_message_id before
  to_message_id INTEGER NOT NULL,      -- next_message_id after
  undo_of INTEGER,                     -- rewind_no that it takes back
  author TEXT NOT NULL,
  reason TEXT NOT NULL,
  gmt_create TEXT NOT NULL,
  PRIMARY KEY (topic_id, consumer_group_id, rewind_no, partition_no)
) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS message_dropped_month (
  topic_id TEXT NOT NULL,
  message_date INTEGER NOT NULL,       -- the month, such as 202611
  owner TEXT,                          -- who is at it; NULL = its tables are gone
  messages INTEGER NOT NULL DEFAULT 0,
  records INTEGER NOT NULL DEFAULT 0,
  redeliveries INTEGER NOT NULL DEFAULT 0,
  archive TEXT,                        -- files that hold it
  author TEXT NOT NULL,
  reason TEXT NOT NULL,
  gmt_create TEXT NOT NULL,
  gmt_modified TEXT NOT NULL,
  PRIMARY KEY (topic_id, message_date)
) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS message_source (
  topic_id TEXT NOT NULL,
  source_id TEXT NOT NULL,             -- what a message is known by where it comes from
  message_id INTEGER NOT NULL,
  gmt_create TEXT NOT NULL,
  PRIMARY KEY (topic_id, source_id)
) WITHOUT ROWID`,
  "CREATE INDEX IF NOT EXISTS message_source_created ON message_source (gmt_create)",
  `CREATE INDEX IF NOT EXISTS message_redelivery_key ON message_redelivery
  (topic_id, consumer_group_id, partition_no, ordering_key, message_id) WHERE ordering_key IS NOT NULL`,
  `CREATE TABLE IF NOT EXISTS message_group (
  topic_id TEXT NOT NULL,
  consumer_group_id TEXT NOT NULL,
  paused_at TEXT,                      -- NULL = not paused
  paused_by TEXT,
  pause_reason TEXT,
  round INTEGER NOT NULL DEFAULT 0,    -- that it begins in: behind those of a deleted one of its name
  PRIMARY KEY (topic_id, consumer_group_id)
) WITHOUT ROWID`,
];

const MILESTONES = [
  `CREATE TABLE IF NOT EXISTS message_milestone (
  topic_id TEXT NOT NULL,
  partition_no INTEGER NOT NULL,
  message_id INTEGER NOT NULL,         -- every 5,000th of the partition in a month, to count by
  PRIMARY KEY (topic_id, partition_no, message_id)
) WITHOUT ROWID`,
];

export function schema(): SchemaStatements {
  return { ...schemaStatements(createNames(queueLayout)), migrations: queueMigrations(TABLES, MILESTONES) };
}
