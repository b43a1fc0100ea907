/**
 * The queue's own tables. The text of a released migration never changes: databases store its
 * checksum.
 */
import { queueLayout, queueMigrations } from "../../sql/queue/names.ts";
import type { SchemaStatements } from "../../sql/statements.ts";
import { BYTES_COLLATION, createNames } from "../names.ts";
import { schemaStatements } from "../schema.ts";

export const BYTES: string = `CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION}`;
export const TABLE_OPTIONS = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC";
const TOPIC = "topic_id VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin NOT NULL";
const GROUP = `consumer_group_id VARCHAR(64) ${BYTES} NOT NULL`;
const OWNER = "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin";
const EPOCH_START = "'1970-01-01 00:00:00'";

export function schema(): SchemaStatements {
  return { ...schemaStatements(createNames(queueLayout)), migrations: queueMigrations(TABLES, MILESTONES) };
}

const TABLES = [
  `CREATE TABLE IF NOT EXISTS message_topic (
  ${TOPIC},
  partitions INT NOT NULL,
  retention_months INT NULL COMMENT 'NULL = kept for ever',
  housekept_at DATETIME(3) NULL COMMENT 'when a consumer last looked for months to drop',
  gmt_create DATETIME(3) NOT NULL,
  gmt_modified DATETIME(3) NOT NULL,
  PRIMARY KEY (topic_id)
) ${TABLE_OPTIONS} COMMENT='topics of the message queue'`,
  `CREATE TABLE IF NOT EXISTS message_topic_partition (
  ${TOPIC},
  partition_no INT NOT NULL,
  last_id BIGINT NOT NULL DEFAULT 0 COMMENT 'milliseconds since 2020 << 16 | sequence of the last message',
  keyed_partitions INT NOT NULL COMMENT 'partitions that ordering keys are spread over',
  PRIMARY KEY (topic_id, partition_no)
) ${TABLE_OPTIONS} COMMENT='the last id of each partition'`,
  `CREATE TABLE IF NOT EXISTS message_consumption (
  ${TOPIC},
  ${GROUP},
  partition_no INT NOT NULL,
  begin_message_id BIGINT NOT NULL DEFAULT 0 COMMENT 'where the group began',
  next_message_id BIGINT NOT NULL COMMENT 'the lowest id that the group has not finished',
  message_date INT NOT NULL COMMENT 'month of next_message_id, such as 202611',
  round INT NOT NULL DEFAULT 0 COMMENT 'grows with each rewind',
  owner ${OWNER} NULL,
  epoch BIGINT NOT NULL DEFAULT 0,
  lease_until DATETIME(3) NOT NULL DEFAULT ${EPOCH_START},
  lease_ms BIGINT NOT NULL DEFAULT 0,
  taken_at DATETIME(3) NULL COMMENT 'since when the owner has it',
  update_time DATETIME(3) NULL,
  PRIMARY KEY (topic_id, consumer_group_id, partition_no)
) ${TABLE_OPTIONS} COMMENT='progress of each group, and who consumes for it'`,
  `CREATE TABLE IF NOT EXISTS message_consumer (
  ${TOPIC},
  ${GROUP},
  owner ${OWNER} NOT NULL,
  label VARCHAR(255) NOT NULL,
  seen_at DATETIME(3) NOT NULL,
  PRIMARY KEY (topic_id, consumer_group_id, owner)
) ${TABLE_OPTIONS} COMMENT='running members of groups'`,
  `CREATE TABLE IF NOT EXISTS message_redelivery (
  ${TOPIC},
  ${GROUP},
  partition_no INT NOT NULL,
  message_id BIGINT NOT NULL,
  state TINYINT NOT NULL COMMENT '0 waiting, 1 dead letter; 2 and 3 the same, set aside by a rewind',
  attempt INT NOT NULL COMMENT 'attempts so far; 0 = delayed',
  first_attempt INT NOT NULL DEFAULT 0 COMMENT 'attempts before it was redelivered by hand',
  ordering_key VARCHAR(128) ${BYTES} NULL COMMENT 'set where it holds up its key; it waits behind another one until 9999',
  next_attempt_at DATETIME(3) NOT NULL,
  fail_reason VARCHAR(1024) NULL,
  gmt_create DATETIME(3) NOT NULL,
  gmt_modified DATETIME(3) NOT NULL,
  PRIMARY KEY (topic_id, consumer_group_id, partition_no, message_id),
  KEY i_due (topic_id, consumer_group_id, partition_no, state, next_attempt_at),
  KEY i_key (topic_id, consumer_group_id, partition_no, ordering_key, message_id)
) ${TABLE_OPTIONS} COMMENT='what a group gets again, or no more'`,
  `CREATE TABLE IF NOT EXISTS message_rewind (
  ${TOPIC},
  ${GROUP},
  rewind_no INT NOT NULL COMMENT 'counts the rewinds of the group',
  partition_no INT NOT NULL,
  round INT NOT NULL COMMENT 'that began with it',
  from_message_id BIGINT NOT NULL COMMENT 'next_message_id before',
  to_message_id BIGINT NOT NULL COMMENT 'next_message_id after',
  undo_of INT NULL COMMENT 'rewind_no that it takes back',
  author VARCHAR(64) ${BYTES} NOT NULL,
  reason VARCHAR(255) ${BYTES} NOT NULL,
  gmt_create DATETIME(3) NOT NULL,
  PRIMARY KEY (topic_id, consumer_group_id, rewind_no, partition_no)
) ${TABLE_OPTIONS} COMMENT='log of rewinds'`,
  `CREATE TABLE IF NOT EXISTS message_dropped_month (
  ${TOPIC},
  message_date INT NOT NULL COMMENT 'the month, such as 202611',
  owner ${OWNER} NULL COMMENT 'who is at it; NULL = its tables are gone',
  messages BIGINT NOT NULL DEFAULT 0,
  records BIGINT NOT NULL DEFAULT 0,
  redeliveries BIGINT NOT NULL DEFAULT 0,
  archive VARCHAR(1024) ${BYTES} NULL COMMENT 'files that hold it',
  author VARCHAR(64) ${BYTES} NOT NULL,
  reason VARCHAR(255) ${BYTES} NOT NULL,
  gmt_create DATETIME(3) NOT NULL,
  gmt_modified DATETIME(3) NOT NULL,
  PRIMARY KEY (topic_id, message_date)
) ${TABLE_OPTIONS} COMMENT='months whose tables were dropped, or are being dropped'`,
  `CREATE TABLE IF NOT EXISTS message_source (
  ${TOPIC},
  source_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'what a message is known by where it comes from',
  message_id BIGINT NOT NULL,
  gmt_create DATETIME(3) NOT NULL,
  PRIMARY KEY (topic_id, source_id),
  KEY i_created (gmt_create)
) ${TABLE_OPTIONS} COMMENT='what was appended under a source id: it is not appended twice'`,
  `CREATE TABLE IF NOT EXISTS message_group (
  ${TOPIC},
  ${GROUP},
  paused_at DATETIME(3) NULL COMMENT 'NULL = not paused',
  paused_by VARCHAR(64) NULL,
  pause_reason VARCHAR(255) NULL,
  round INT NOT NULL DEFAULT 0 COMMENT 'that it begins in: behind those of a deleted one of its name',
  PRIMARY KEY (topic_id, consumer_group_id)
) ${TABLE_OPTIONS} COMMENT='consumer groups'`,
];

const MILESTONES = [
  `CREATE TABLE IF NOT EXISTS message_milestone (
  ${TOPIC},
  partition_no INT NOT NULL,
  message_id BIGINT NOT NULL,
  PRIMARY KEY (topic_id, partition_no, message_id)
) ${TABLE_OPTIONS} COMMENT='every 5,000th message of a partition in a month, to count by'`,
];
