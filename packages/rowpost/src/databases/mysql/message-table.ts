import type { TableLayout } from "../sql/layout.ts";
import { IDENTITY, type MysqlNames, OPEN_KEY_INDEX, quoteName, TABLE_OPTIONS, UNFINISHED } from "./names.ts";

/**
 * Bytes for message_id (32 characters from RocketMQ), sent_at and last_retry_at (7 bytes each),
 * which are NULL until the settle. A row that grows has to move.
 */
const SETTLE_PAD = 64;

export function defaultColumns(): readonly string[] {
  return [
    `message_type VARCHAR(64) ${IDENTITY} NOT NULL COMMENT 'what happened, such as order.created'`,
    `message_key VARCHAR(128) ${IDENTITY} NOT NULL COMMENT 'business identity; unique with message_type'`,
    `topic VARCHAR(255) ${IDENTITY} NOT NULL COMMENT 'destination'`,
    "message_body MEDIUMTEXT NOT NULL COMMENT 'JSON; or text; or base64 when content_type ends in ;base64'",
    "headers TEXT NULL COMMENT 'JSON object of strings'",
    "content_type VARCHAR(64) NULL COMMENT 'NULL = application/json'",
    `ordering_key VARCHAR(128) ${IDENTITY} NULL COMMENT 'messages with equal keys keep their order'`,
    "state TINYINT NOT NULL DEFAULT 0 COMMENT '0 pending 1 sending 2 sent 3 failed 4 consumed 5 suspended'",
    "retry_count INT NOT NULL DEFAULT 0 COMMENT 'failed attempts'",
    "delivery_count INT NOT NULL DEFAULT 0 COMMENT 'times claimed by a relay'",
    "deliver_at DATETIME(3) NULL COMMENT 'not before this instant; never changed'",
    "next_retry_at DATETIME(3) NULL COMMENT 'when a relay looks at this row again; NULL in pending = now, elsewhere = never'",
    "last_retry_at DATETIME(3) NULL COMMENT 'start of the last attempt'",
    "fail_reason VARCHAR(1024) NULL COMMENT 'last error, or why it is suspended'",
    "message_id VARCHAR(255) NULL COMMENT 'receipt of the broker'",
    "lock_version BIGINT NOT NULL DEFAULT 0 COMMENT 'grows with every change'",
    "sent_at DATETIME(3) NULL",
    "consumed_at DATETIME(3) NULL",
    "created_by VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'system that wrote the message'",
    "updated_by VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'system or person that changed it last'",
    "gmt_create DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC'",
    "gmt_modified DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC'",
    `settle_pad VARCHAR(${SETTLE_PAD}) CHARACTER SET ascii NOT NULL DEFAULT '${".".repeat(SETTLE_PAD)}' COMMENT 'keeps the row from growing when it is sent; means nothing'`,
  ];
}

export function defaultTable(names: MysqlNames): string {
  return `CREATE TABLE IF NOT EXISTS ${names.messages} (
  id BIGINT NOT NULL AUTO_INCREMENT,
  ${defaultColumns().join(",\n  ")},
  PRIMARY KEY (id),
  UNIQUE KEY uk_type_key (message_type, message_key),
  KEY idx_state_next_retry (state, next_retry_at) COMMENT 'every scan of the relay',
  KEY idx_topic (topic),
  KEY idx_ordering_key_state (ordering_key, state) COMMENT 'order per key'
) ${TABLE_OPTIONS} COMMENT='local message table (transactional outbox)'`;
}

/** Topic of waiting rows, and the order in which they are read. */
export function topicColumns({ columns }: TableLayout): readonly string[] {
  const { nextRetryAt, state, topic, waitingTopic } = columns;
  return waitingTopic === undefined ? [state, topic, nextRetryAt] : [waitingTopic, nextRetryAt];
}

/**
 * Indexes over unfinished rows only, on generated columns that are NULL in other rows. STORED,
 * because MariaDB up to 10.11.13 can corrupt an index on a virtual column when purge meets an
 * update (MDEV-38140). The claim removes the topic's copy from the row again, which leaves room for
 * the receipt.
 *
 * Claim and settle of 500 rows without ordering keys (MariaDB 10.11, ms, lower quartile, batches
 * side by side): with (ordering_key, state) and (topic) 6.7 + 9.9; with (state, topic,
 * next_retry_at) for (topic) 7.8 + 11.5; with (waiting_topic, next_retry_at) 7.6 + 10.3; with that
 * and (open_key) for (ordering_key, state), written twice per message, 6.6 + 9.9. Drain, server CPU
 * per 1,000 messages, medians: 56 ms before, 52 with these two indexes; with (state, topic,
 * next_retry_at) 67, against 58 without.
 */
export function openRows({ messages, state, states }: MysqlNames): readonly string[] {
  const generated = (name: string, length: number, value: string, about: string): string =>
    `ADD COLUMN ${name} VARCHAR(${length}) ${IDENTITY} GENERATED ALWAYS AS (${value}) STORED COMMENT '${about}'`;
  return [
    `ALTER TABLE ${messages}
  ${generated("waiting_topic", 255, `IF(state = ${state("pending")}, topic, NULL)`, "the topic of a pending row")},
  ${generated("open_key", 128, `IF(state IN (${states(UNFINISHED)}), ordering_key, NULL)`, "the ordering key of an unfinished row")}`,
    `ALTER TABLE ${messages}
  ADD KEY idx_waiting_topic (waiting_topic, next_retry_at) COMMENT 'scans of some topics',
  ADD KEY ${OPEN_KEY_INDEX} (open_key) COMMENT 'order per key',
  DROP KEY idx_topic, DROP KEY idx_ordering_key_state`,
  ];
}

/**
 * Start value that a lost row is unlikely to have had: after a fail-over that lost commits, ids
 * recur, and a late outcome of a lost message must not match (rule: one-server). Statement-based
 * replication repeats the microsecond, but not a random number. Changes no row.
 */
export function versionStart(names: MysqlNames): readonly string[] {
  return names.layout.name === "default" ? [startVersions(names)] : [];
}

/** The name as the migration has always written it. */
export function startVersions({ layout: { columns }, messages }: MysqlNames): string {
  const column = columns.lockVersion === "lock_version" ? columns.lockVersion : quoteName(columns.lockVersion ?? "");
  return `ALTER TABLE ${messages} ALTER COLUMN ${column} SET DEFAULT (MICROSECOND(UTC_TIMESTAMP(6)))`;
}
