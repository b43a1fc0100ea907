/**
 * The queue's own tables. The text of a released migration never changes: databases store its
 * checksum.
 */
import { queueLayout, queueMigrations } from "../../sql/queue/names.ts";
import type { SchemaStatements } from "../../sql/statements.ts";
import { createNames } from "../names.ts";
import { schemaStatements } from "../schema.ts";

export function schema(): SchemaStatements {
  return { ...schemaStatements(createNames(queueLayout)), migrations: queueMigrations(TABLES, MILESTONES) };
}

const TOPIC = 'topic_id varchar(31) COLLATE "C" NOT NULL';
const GROUP = 'consumer_group_id varchar(64) COLLATE "C" NOT NULL';
/** Rows updated often: leaves room in their page, and vacuums early. */
const BUSY = "WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500)";

const TABLES = [
  `CREATE TABLE IF NOT EXISTS message_topic (
  ${TOPIC},
  partitions integer NOT NULL,
  retention_months integer,
  housekept_at timestamptz(3),
  gmt_create timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  gmt_modified timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (topic_id)
)`,
  `CREATE TABLE IF NOT EXISTS message_topic_partition (
  ${TOPIC},
  partition_no integer NOT NULL,
  last_id bigint NOT NULL DEFAULT 0,
  keyed_partitions integer NOT NULL,
  PRIMARY KEY (topic_id, partition_no)
) ${BUSY}`,
  `CREATE TABLE IF NOT EXISTS message_consumption (
  ${TOPIC},
  ${GROUP},
  partition_no integer NOT NULL,
  begin_message_id bigint NOT NULL DEFAULT 0,
  next_message_id bigint NOT NULL,
  message_date integer NOT NULL,
  round integer NOT NULL DEFAULT 0,
  owner varchar(64) COLLATE "C",
  epoch bigint NOT NULL DEFAULT 0,
  lease_until timestamptz(3) NOT NULL DEFAULT '1970-01-01T00:00:00Z',
  lease_ms bigint NOT NULL DEFAULT 0,
  taken_at timestamptz(3),
  update_time timestamptz(3),
  PRIMARY KEY (topic_id, consumer_group_id, partition_no)
) ${BUSY}`,
  `CREATE TABLE IF NOT EXISTS message_consumer (
  ${TOPIC},
  ${GROUP},
  owner varchar(64) COLLATE "C" NOT NULL,
  label varchar(255) NOT NULL,
  seen_at timestamptz(3) NOT NULL,
  PRIMARY KEY (topic_id, consumer_group_id, owner)
) ${BUSY}`,
  `CREATE TABLE IF NOT EXISTS message_redelivery (
  ${TOPIC},
  ${GROUP},
  partition_no integer NOT NULL,
  message_id bigint NOT NULL,
  state smallint NOT NULL,
  attempt integer NOT NULL,
  first_attempt integer NOT NULL DEFAULT 0,
  ordering_key varchar(128) COLLATE "C",
  next_attempt_at timestamptz(3) NOT NULL,
  fail_reason varchar(1024),
  gmt_create timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  gmt_modified timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (topic_id, consumer_group_id, partition_no, message_id)
)`,
  `CREATE INDEX IF NOT EXISTS message_redelivery_due ON message_redelivery
  (topic_id, consumer_group_id, partition_no, next_attempt_at) WHERE state = 0`,
  `CREATE TABLE IF NOT EXISTS message_rewind (
  ${TOPIC},
  ${GROUP},
  rewind_no integer NOT NULL,
  partition_no integer NOT NULL,
  round integer NOT NULL,
  from_message_id bigint NOT NULL,
  to_message_id bigint NOT NULL,
  undo_of integer,
  author varchar(64) NOT NULL,
  reason varchar(255) NOT NULL,
  gmt_create timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (topic_id, consumer_group_id, rewind_no, partition_no)
)`,
  `CREATE TABLE IF NOT EXISTS message_dropped_month (
  ${TOPIC},
  message_date integer NOT NULL,
  owner varchar(64) COLLATE "C",
  messages bigint NOT NULL DEFAULT 0,
  records bigint NOT NULL DEFAULT 0,
  redeliveries bigint NOT NULL DEFAULT 0,
  archive varchar(1024),
  author varchar(64) NOT NULL,
  reason varchar(255) NOT NULL,
  gmt_create timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  gmt_modified timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (topic_id, message_date)
)`,
  `CREATE TABLE IF NOT EXISTS message_source (
  ${TOPIC},
  source_id varchar(128) COLLATE "C" NOT NULL,
  message_id bigint NOT NULL,
  gmt_create timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (topic_id, source_id)
)`,
  "CREATE INDEX IF NOT EXISTS message_source_created ON message_source (gmt_create)",
  "COMMENT ON TABLE message_source IS 'what was appended under a source id: it is not appended twice'",
  `CREATE INDEX IF NOT EXISTS message_redelivery_key ON message_redelivery
  (topic_id, consumer_group_id, partition_no, ordering_key, message_id) WHERE ordering_key IS NOT NULL`,
  `CREATE TABLE IF NOT EXISTS message_group (
  ${TOPIC},
  ${GROUP},
  paused_at timestamptz(3),
  paused_by varchar(64),
  pause_reason varchar(255),
  round integer NOT NULL DEFAULT 0,
  PRIMARY KEY (topic_id, consumer_group_id)
) ${BUSY}`,
  "COMMENT ON TABLE message_topic IS 'topics of the message queue'",
  "COMMENT ON TABLE message_topic_partition IS 'the last id of each partition'",
  "COMMENT ON TABLE message_consumption IS 'progress of each group, and who consumes for it'",
  "COMMENT ON TABLE message_group IS 'consumer groups'",
  "COMMENT ON COLUMN message_group.paused_at IS 'NULL = not paused'",
  "COMMENT ON COLUMN message_group.round IS 'that it begins in: behind those of a deleted one of its name'",
  "COMMENT ON COLUMN message_consumption.taken_at IS 'since when the owner has it'",
  "COMMENT ON COLUMN message_redelivery.first_attempt IS 'attempts before it was redelivered by hand'",
  "COMMENT ON COLUMN message_redelivery.ordering_key IS 'set where it holds up its key; it waits behind another one until 9999'",
  "COMMENT ON TABLE message_consumer IS 'running members of groups'",
  "COMMENT ON TABLE message_redelivery IS 'what a group gets again, or no more'",
  "COMMENT ON TABLE message_rewind IS 'log of rewinds'",
  "COMMENT ON TABLE message_dropped_month IS 'months whose tables were dropped, or are being dropped'",
  "COMMENT ON COLUMN message_rewind.rewind_no IS 'counts the rewinds of the group'",
  "COMMENT ON COLUMN message_rewind.round IS 'that began with it'",
  "COMMENT ON COLUMN message_rewind.from_message_id IS 'next_message_id before'",
  "COMMENT ON COLUMN message_rewind.to_message_id IS 'next_message_id after'",
  "COMMENT ON COLUMN message_rewind.undo_of IS 'rewind_no that it takes back'",
  "COMMENT ON COLUMN message_dropped_month.message_date IS 'the month, such as 202611'",
  "COMMENT ON COLUMN message_dropped_month.owner IS 'who is at it; NULL = its tables are gone'",
  "COMMENT ON COLUMN message_dropped_month.archive IS 'files that hold it'",
  "COMMENT ON COLUMN message_topic.retention_months IS 'NULL = kept for ever'",
  "COMMENT ON COLUMN message_topic_partition.last_id IS 'milliseconds since 2020 << 16 | sequence of the last message'",
  "COMMENT ON COLUMN message_topic_partition.keyed_partitions IS 'partitions that ordering keys are spread over'",
  "COMMENT ON COLUMN message_consumption.next_message_id IS 'the lowest id that the group has not finished'",
  "COMMENT ON COLUMN message_consumption.message_date IS 'month of next_message_id, such as 202611'",
  "COMMENT ON COLUMN message_consumption.round IS 'grows with each rewind'",
  "COMMENT ON COLUMN message_topic.housekept_at IS 'when a consumer last looked for months to drop'",
  "COMMENT ON COLUMN message_consumption.begin_message_id IS 'where the group began'",
  "COMMENT ON COLUMN message_redelivery.state IS '0 waiting, 1 dead letter; 2 and 3 the same, set aside by a rewind'",
  "COMMENT ON COLUMN message_redelivery.attempt IS 'attempts so far; 0 = delayed'",
];

const MILESTONES = [
  `CREATE TABLE IF NOT EXISTS message_milestone (
  ${TOPIC},
  partition_no integer NOT NULL,
  message_id bigint NOT NULL,
  PRIMARY KEY (topic_id, partition_no, message_id)
)`,
  "COMMENT ON TABLE message_milestone IS 'every 5,000th message of a partition in a month, to count by'",
];
