/** Alerts: who evaluates them, what was told, what is silenced, and which messages are late. */
import {
  type AlertStatements,
  KEPT_SILENCE_MS,
  type KeptStatements,
  LATE_ROWS,
  type LateStatements,
  type SilenceStatements,
} from "../sql/alerts-statements.ts";
import { COMPANION_NOW, isoText, whole } from "./clock.ts";
import { type MysqlNames, TABLE_OPTIONS } from "./names.ts";

export function alertStatements(names: MysqlNames): AlertStatements {
  return { ...kept(names), ...lateStatements(names), ...silenceStatements(names) };
}

function kept({ alerts, tableKey }: MysqlNames): KeptStatements {
  const epochMs = (instant: string): string => `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', ${instant}) DIV 1000`;
  return {
    /** Of two at once the later one finds the row. If we die right after it, it is nobody's. */
    addAlerts: () => ({
      name: "addAlerts",
      text: `INSERT IGNORE INTO ${alerts} (table_name) VALUES (?)`,
      params: [tableKey],
    }),

    /**
     * Locks its one row: of two evaluators the later one finds the lease taken. If we die right
     * after it, another one has it after the lease. An end that lies too far ahead is of a clock
     * that was set back since.
     */
    holdAlerts: ({ leaseMs, owner }) => ({
      name: "holdAlerts",
      text: `UPDATE ${alerts} SET owner = ?, lease_until = ${COMPANION_NOW} + INTERVAL ${whole(leaseMs)} * 1000 MICROSECOND
  WHERE table_name = ? AND (owner = ? OR owner IS NULL OR lease_until < ${COMPANION_NOW}
    OR lease_until > ${COMPANION_NOW} + INTERVAL ${whole(2 * leaseMs)} * 1000 MICROSECOND)`,
      params: [owner, tableKey, owner],
    }),

    /**
     * Locks its one row, and changes it only while it is ours: who was frozen past its lease writes
     * nothing. If we die right after it, what is to be told stands in the row for the next one.
     */
    saveAlerts: ({ leaseMs, owner, state }) => ({
      name: "saveAlerts",
      text: `UPDATE ${alerts} SET state = ?, saved_at = ${COMPANION_NOW}, lease_until = ${COMPANION_NOW} + INTERVAL ${whole(leaseMs)} * 1000 MICROSECOND
  WHERE table_name = ? AND owner = ?`,
      params: [state, tableKey, owner],
    }),

    /** Locks its one row; one that is not ours stays as it is. */
    releaseAlerts: (owner) => ({
      name: "releaseAlerts",
      text: `UPDATE ${alerts} SET owner = NULL WHERE table_name = ? AND owner = ?`,
      params: [tableKey, owner],
    }),

    readAlerts: () => ({
      name: "readAlerts",
      text: `SELECT a.state AS state, ${epochMs(COMPANION_NOW)} AS now_ms, ${epochMs("a.saved_at")} AS saved_ms
  FROM ${alerts} AS a WHERE a.table_name = ?`,
      params: [tableKey],
    }),
  };
}

/** Both read a range of the index (state, next_retry_at), a bounded number of rows, no locks. */
function lateStatements({ ago, column, messages, nowMs, state }: MysqlNames): LateStatements {
  const grouped = (rows: string): string =>
    `SELECT l.name AS name, COUNT(*) AS count, MAX(TIMESTAMPDIFF(MICROSECOND, l.since, ${nowMs})) DIV 1000 AS late_ms
  FROM (${rows}) AS l GROUP BY l.name`;
  return {
    lateConfirmations: (lateMs) => ({
      name: "lateConfirmations",
      text: grouped(`SELECT ${column("messageType")} AS name, ${column("nextRetryAt")} AS since FROM ${messages} AS m IGNORE INDEX (PRIMARY)
    WHERE ${column("state")} = ${state("sent")} AND ${column("nextRetryAt")} < ${ago(lateMs)}
    ORDER BY ${column("nextRetryAt")} LIMIT ${LATE_ROWS}`),
      params: [],
    }),

    lateSending: (lateMs) => ({
      name: "lateSending",
      text: `SELECT s.name AS name, COUNT(*) AS count, MAX(TIMESTAMPDIFF(MICROSECOND, s.since, ${nowMs})) DIV 1000 AS late_ms
  FROM (SELECT ${column("topic")} AS name, ${column("gmtModified")} AS since FROM ${messages} AS m IGNORE INDEX (PRIMARY)
    WHERE ${column("state")} = ${state("sending")} LIMIT ${LATE_ROWS}) AS s
  WHERE s.since < ${ago(lateMs)} GROUP BY s.name`,
      params: [],
    }),

    /** Reads the catalog, and locks nothing. */
    findQueue: () => ({
      name: "findQueue",
      text: "SELECT COUNT(*) AS found FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = 'message_topic'",
      params: [],
    }),
  };
}

function silenceStatements({ silences, tableKey }: MysqlNames): SilenceStatements {
  return {
    listSilences: (limit) => ({
      name: "listSilences",
      text: `SELECT s.id AS id, s.rule_name AS rule_name, s.subject AS subject, s.author AS author, s.reason AS reason,
    ${isoText("s.created_at")} AS created_at, ${isoText("s.ends_at")} AS ends_at, s.ends_at > ${COMPANION_NOW} AS active
  FROM ${silences} AS s WHERE s.table_name = ? ORDER BY s.created_at DESC LIMIT ${whole(limit)}`,
      params: [tableKey],
    }),

    /** Adds a row of its own, in the transaction of its audit. */
    addSilence: ({ author, forMs, id, reason, rule, subject }) => ({
      name: "addSilence",
      text: `INSERT INTO ${silences} (id, table_name, rule_name, subject, author, reason, created_at, ends_at)
  VALUES (?, ?, ?, ?, ?, ?, ${COMPANION_NOW}, ${COMPANION_NOW} + INTERVAL ${whole(forMs)} * 1000 MICROSECOND)`,
      params: [id, tableKey, rule ?? null, subject ?? null, author, reason],
    }),

    /** Locks its one row, in the transaction of its audit; of two at once one ends it. */
    endSilence: (id) => ({
      name: "endSilence",
      text: `UPDATE ${silences} SET ends_at = ${COMPANION_NOW} WHERE id = ? AND table_name = ? AND ends_at > ${COMPANION_NOW}`,
      params: [id, tableKey],
    }),

    /** Locks a few rows that nobody reads any more. */
    forgetSilences: () => ({
      name: "forgetSilences",
      text: `DELETE FROM ${silences} WHERE table_name = ? AND ends_at < ${COMPANION_NOW} - INTERVAL ${whole(KEPT_SILENCE_MS)} * 1000 MICROSECOND`,
      params: [tableKey],
    }),
  };
}

/** Several message tables may share them: what is there already stays. */
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
) ${TABLE_OPTIONS} COMMENT='alerts that nobody is told of'`,
  ];
}
