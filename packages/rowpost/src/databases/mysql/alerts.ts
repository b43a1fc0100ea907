/** Alerts: who evaluates them, and what they have told. */
import { type MysqlNames, TABLE_OPTIONS } from "./names.ts";

/** One row for each message table: several may share it, and what is there already stays. */
export function alertTable({ alerts }: MysqlNames): string {
  return `CREATE TABLE IF NOT EXISTS ${alerts} (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  owner VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'random id of who evaluates; NULL = nobody',
  lease_until DATETIME(3) NOT NULL DEFAULT '1970-01-01 00:00:00.000' COMMENT 'UTC',
  state MEDIUMTEXT CHARACTER SET utf8mb4 NULL COMMENT 'JSON: what is wrong since when, and what was told',
  PRIMARY KEY (table_name)
) ${TABLE_OPTIONS} COMMENT='alerts: who evaluates them, and what was told'`;
}
