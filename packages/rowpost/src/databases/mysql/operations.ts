/** Sessions of the console, the audit, and the size of the table. */
import { auditConditions, type OperationsStatements } from "../sql/operations-statements.ts";
import { alertStatements } from "./alerts.ts";
import { bulkStatements } from "./bulk.ts";
import { COMPANION_NOW, isoText, whole } from "./clock.ts";
import { type MysqlNames, TABLE_OPTIONS } from "./names.ts";

export function operationsStatements(names: MysqlNames): OperationsStatements {
  const { audit, layout, sessions, tableKey } = names;
  return {
    ...bulkStatements(names),
    ...alertStatements(names),
    readAudit({ beforeId, filter, limit }) {
      const { params, where } = auditConditions(filter, beforeId, () => "?", " COLLATE utf8mb4_bin");
      return {
        name: "readAudit",
        text: `SELECT a.id AS id, ${isoText("a.made_at")} AS made_at, a.author AS author, a.via AS via, a.action AS action, a.reason AS reason,
    a.result AS result, a.changed AS changed, a.ids AS ids, a.before_image AS before_image, a.details AS details
  FROM ${audit} AS a FORCE INDEX (PRIMARY) WHERE a.table_name = ?${where}
  ORDER BY a.id DESC LIMIT ${whole(limit)}`,
        params: [tableKey, ...params],
      };
    },

    /** Adds a row of its own. If we die right after it, it is a session that nobody has. */
    addSession: ({ hash, holder, lifeMs }) => ({
      name: "addSession",
      text: `INSERT INTO ${sessions} (hash, holder, seen_at, ends_at)
  VALUES (?, ?, ${COMPANION_NOW}, ${COMPANION_NOW} + INTERVAL ${whole(lifeMs)} * 1000 MICROSECOND)`,
      params: [hash, holder],
    }),

    readSession: ({ hash, idleMs }) => ({
      name: "readSession",
      text: `SELECT s.holder AS holder FROM ${sessions} AS s
  WHERE s.hash = ? AND s.ends_at > ${COMPANION_NOW} AND s.seen_at > ${COMPANION_NOW} - INTERVAL ${whole(idleMs)} * 1000 MICROSECOND`,
      params: [hash],
    }),

    /** Locks its one row. Of two at once the later one finds it seen. */
    touchSession: ({ afterMs, hash }) => ({
      name: "touchSession",
      text: `UPDATE ${sessions} SET seen_at = ${COMPANION_NOW} WHERE hash = ? AND seen_at < ${COMPANION_NOW} - INTERVAL ${whole(afterMs)} * 1000 MICROSECOND`,
      params: [hash],
    }),

    /** Locks its one row; who reads it after the commit is told that there is none. */
    endSession: (hash) => ({
      name: "endSession",
      text: `DELETE FROM ${sessions} WHERE hash = ?`,
      params: [hash],
    }),

    /** Locks the rows of a few hundred sessions at most; nobody reads one that is over. */
    forgetSessions: () => ({
      name: "forgetSessions",
      text: `DELETE FROM ${sessions} WHERE ends_at < ${COMPANION_NOW}`,
      params: [],
    }),

    estimate: () => ({
      name: "estimate",
      text: `SELECT ${isoText(COMPANION_NOW)} AS clock, (SELECT t.TABLE_ROWS FROM information_schema.TABLES AS t
  WHERE t.TABLE_SCHEMA = ${layout.schema === undefined ? "DATABASE()" : "?"} AND t.TABLE_NAME = ?) AS total`,
      params: [...(layout.schema === undefined ? [] : [layout.schema]), layout.table],
    }),
  };
}

/**
 * Who is logged in to the console; and how, with what success and from which states a change went.
 */
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
