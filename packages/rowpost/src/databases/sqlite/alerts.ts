/** Alerts: who evaluates them, what was told, what is silenced, and which messages are late. */
import {
  type AlertStatements,
  KEPT_SILENCE_MS,
  type KeptStatements,
  LATE_ROWS,
  type LateStatements,
  type SilenceStatements,
} from "../sql/alerts-statements.ts";
import { after, before, isoText, msSince, type Names, NOW } from "./names.ts";

function kept({ alertTable, tableKey }: Names): KeptStatements {
  const epochMs = (instant: string): string =>
    `CAST(round((julianday(${instant}) - 2440587.5) * 86400000.0) AS INTEGER)`;
  return {
    /** Of two at once the later one finds the row. If we die right after it, it is nobody's. */
    addAlerts: () => ({
      name: "addAlerts",
      text: `INSERT INTO ${alertTable} (table_name) VALUES (${tableKey}) ON CONFLICT (table_name) DO NOTHING`,
      params: [],
    }),

    /**
     * One writer at a time: of two evaluators the later one finds the lease taken. If we die right
     * after it, another one has it after the lease. An end that lies too far ahead is of a clock
     * that was set back since.
     */
    holdAlerts: ({ leaseMs, owner }) => ({
      name: "holdAlerts",
      text: `UPDATE ${alertTable} SET owner = ?, lease_until = ${after("?")}
WHERE table_name = ${tableKey} AND (owner = ? OR owner IS NULL OR lease_until < ${NOW} OR lease_until > ${after("?")})`,
      params: [owner, leaseMs, owner, 2 * leaseMs],
    }),

    /**
     * Changes the row only while it is ours: who was frozen past its lease writes nothing. If we
     * die right after it, what is to be told stands in the row for the next one.
     */
    saveAlerts: ({ leaseMs, owner, state }) => ({
      name: "saveAlerts",
      text: `UPDATE ${alertTable} SET state = ?, saved_at = ${NOW}, lease_until = ${after("?")}
WHERE table_name = ${tableKey} AND owner = ?`,
      params: [state, leaseMs, owner],
    }),

    /** One that is not ours stays as it is. */
    releaseAlerts: (owner) => ({
      name: "releaseAlerts",
      text: `UPDATE ${alertTable} SET owner = NULL WHERE table_name = ${tableKey} AND owner = ?`,
      params: [owner],
    }),

    readAlerts: () => ({
      name: "readAlerts",
      text: `SELECT a.state, ${epochMs("'now'")} AS now_ms, ${epochMs("a.saved_at")} AS saved_ms
FROM ${alertTable} AS a WHERE a.table_name = ${tableKey}`,
      params: [],
    }),
  };
}

/** Both read a bounded part of an index. */
function lateStatements(names: Names): LateStatements {
  const { gmtModified, messageType, nextRetryAt, state, topic } = names.column;
  return {
    lateConfirmations: (lateMs) => ({
      name: "lateConfirmations",
      text: `SELECT late.name, count(*) AS count, ${msSince("min(late.since)")} AS late_ms
FROM (SELECT m.${messageType} AS name, m.${nextRetryAt} AS since FROM ${names.table} AS m
  WHERE m.${state} = ${names.state("sent")} AND m.${nextRetryAt} < ${before("?")}
  ORDER BY m.${nextRetryAt} LIMIT ${LATE_ROWS}) AS late
GROUP BY late.name`,
      params: [lateMs],
    }),

    lateSending: (lateMs) => ({
      name: "lateSending",
      text: `SELECT late.name, count(*) AS count, ${msSince("min(late.since)")} AS late_ms
FROM (SELECT m.${topic} AS name, m.${gmtModified} AS since FROM ${names.table} AS m
  WHERE m.${state} = ${names.state("sending")} LIMIT ${LATE_ROWS}) AS late
WHERE late.since < ${before("?")} GROUP BY late.name`,
      params: [lateMs],
    }),

    /** Reads the catalog, and locks nothing. */
    findQueue: () => ({
      name: "findQueue",
      text: "SELECT count(*) AS found FROM sqlite_master WHERE type = 'table' AND name = 'message_topic'",
      params: [],
    }),
  };
}

function silenceStatements({ silenceTable, tableKey }: Names): SilenceStatements {
  return {
    listSilences: (limit) => ({
      name: "listSilences",
      text: `SELECT s.id, s.rule_name, s.subject, s.author, s.reason, ${isoText("s.created_at")} AS created_at,
  ${isoText("s.ends_at")} AS ends_at, s.ends_at > ${NOW} AS active
FROM ${silenceTable} AS s WHERE s.table_name = ${tableKey} ORDER BY s.created_at DESC LIMIT ?`,
      params: [limit],
    }),

    /** In the transaction of its audit. */
    addSilence: ({ author, forMs, id, reason, rule, subject }) => ({
      name: "addSilence",
      text: `INSERT INTO ${silenceTable} (id, table_name, rule_name, subject, author, reason, created_at, ends_at)
VALUES (?, ${tableKey}, ?, ?, ?, ?, ${NOW}, ${after("?")})`,
      params: [id, rule ?? null, subject ?? null, author, reason, forMs],
    }),

    /** In the transaction of its audit; of two at once one ends it. */
    endSilence: (id) => ({
      name: "endSilence",
      text: `UPDATE ${silenceTable} SET ends_at = ${NOW} WHERE id = ? AND table_name = ${tableKey} AND ends_at > ${NOW}`,
      params: [id],
    }),

    /** A few rows that nobody reads any more. */
    forgetSilences: () => ({
      name: "forgetSilences",
      text: `DELETE FROM ${silenceTable} WHERE table_name = ${tableKey} AND ends_at < ${before("?")}`,
      params: [KEPT_SILENCE_MS],
    }),
  };
}

/** Several message tables may share them: what is there already stays. */
export function tablesOfAlerts({ alertTable, silenceTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${alertTable} (
  table_name TEXT PRIMARY KEY,
  owner TEXT,
  lease_until TEXT,
  state TEXT,
  saved_at TEXT
)`,
    `CREATE TABLE IF NOT EXISTS ${silenceTable} (
  id TEXT PRIMARY KEY,
  table_name TEXT NOT NULL,
  rule_name TEXT,
  subject TEXT,
  author TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_at TEXT NOT NULL,
  ends_at TEXT NOT NULL
)`,
  ];
}

export function alertStatements(names: Names): AlertStatements {
  return { ...silenceStatements(names), ...lateStatements(names), ...kept(names) };
}
