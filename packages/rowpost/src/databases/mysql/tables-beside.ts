/** Tables beside the message table that no relay needs. */
import { type MysqlNames, TABLE_OPTIONS } from "./names.ts";

/** Console sessions, and for each change its way, its success and its from-states. */
export function consoleTables({ audit, sessions }: MysqlNames): readonly string[] {
  return [
    `ALTER TABLE ${audit}
  ADD COLUMN via VARCHAR(16) CHARACTER SET ascii NULL COMMENT 'cli, console, api',
  ADD COLUMN result VARCHAR(16) CHARACTER SET ascii NOT NULL DEFAULT 'done' COMMENT 'done, conflict, denied',
  ADD COLUMN before_image MEDIUMTEXT CHARACTER SET utf8mb4 NULL COMMENT 'JSON: the messages as they were before'`,
    `CREATE TABLE IF NOT EXISTS ${sessions} (
  hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'SHA-256 of what the browser has',
  holder TEXT NOT NULL COMMENT 'JSON: who it is, and what they may do',
  seen_at DATETIME(3) NOT NULL COMMENT 'UTC',
  ends_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (hash)
) ${TABLE_OPTIONS} COMMENT='who is logged in to the console'`,
  ];
}

/** Several message tables may share them, so existing tables stay. */
export function alertTables({ alerts, silences }: MysqlNames): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${alerts} (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'random id of who evaluates; NULL = nobody',
  lease_until DATETIME(3) NULL COMMENT 'UTC',
  state MEDIUMTEXT CHARACTER SET utf8mb4 NULL COMMENT 'JSON: what is wrong since when, and what was told',
  saved_at DATETIME(3) NULL COMMENT 'UTC',
  PRIMARY KEY (table_name)
) ${TABLE_OPTIONS} COMMENT='alerts: who evaluates them, and what was told'`,
    `CREATE TABLE IF NOT EXISTS ${silences} (
  id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  rule_name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'NULL = every rule',
  subject VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'topic, type or broker; NULL = all',
  author VARCHAR(64) CHARACTER SET utf8mb4 NOT NULL,
  reason VARCHAR(1024) CHARACTER SET utf8mb4 NOT NULL,
  created_at DATETIME(3) NOT NULL COMMENT 'UTC',
  ends_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (id),
  KEY idx_created_at (table_name, created_at)
) ${TABLE_OPTIONS} COMMENT='silenced alerts'`,
  ];
}
