/** Alerts: who evaluates them, what was told, what is silenced, and which messages are late. */
import {
  type AlertStatements,
  KEPT_SILENCE_MS,
  type KeptStatements,
  LATE_ROWS,
  type LateStatements,
  type SilenceStatements,
} from "../sql/alerts-statements.ts";
import { after, isoText, msSince, type Names, NOW } from "./names.ts";

export function alertStatements(names: Names): AlertStatements {
  return { ...kept(names), ...lateStatements(names), ...silenceStatements(names) };
}

function kept({ alertTable, tableKey }: Names): KeptStatements {
  const epochMs = (instant: string): string => `(date_part('epoch', ${instant}) * 1000)::bigint`;
  return {
    /** Of two at once the later one finds the row. If we die right after it, it is nobody's. */
    addAlerts: () => ({
      name: "addAlerts",
      text: `INSERT INTO ${alertTable} (table_name) VALUES (${tableKey}) ON CONFLICT (table_name) DO NOTHING`,
      params: [],
    }),

    /**
     * Locks its one row: of two evaluators the later one finds the lease taken. If we die right
     * after it, another one has it after the lease. An end that lies too far ahead is of a clock
     * that was set back since.
     */
    holdAlerts: ({ leaseMs, owner }) => ({
      name: "holdAlerts",
      text: `UPDATE ${alertTable} SET owner = $1, lease_until = ${after("$2::bigint")}
WHERE table_name = ${tableKey} AND (owner = $3 OR owner IS NULL OR lease_until < ${NOW} OR lease_until > ${after("2 * $2::bigint")})`,
      params: [owner, leaseMs, owner],
    }),

    /**
     * Locks its one row, and changes it only while it is ours: who was frozen past its lease writes
     * nothing. If we die right after it, what is to be told stands in the row for the next one.
     */
    saveAlerts: ({ leaseMs, owner, state }) => ({
      name: "saveAlerts",
      text: `UPDATE ${alertTable} SET state = $1, saved_at = ${NOW}, lease_until = ${after("$2::bigint")}
WHERE table_name = ${tableKey} AND owner = $3`,
      params: [state, leaseMs, owner],
    }),

    /** Locks its one row; one that is not ours stays as it is. */
    releaseAlerts: (owner) => ({
      name: "releaseAlerts",
      text: `UPDATE ${alertTable} SET owner = NULL WHERE table_name = ${tableKey} AND owner = $1`,
      params: [owner],
    }),

    readAlerts: () => ({
      name: "readAlerts",
      text: `SELECT a.state, ${epochMs(NOW)} AS now_ms, ${epochMs("a.saved_at")} AS saved_ms
FROM ${alertTable} a WHERE a.table_name = ${tableKey}`,
      params: [],
    }),
  };
}

/** Both read a bounded part of a partial index, and lock nothing. */
function lateStatements(names: Names): LateStatements {
  const { gmtModified, messageType, nextRetryAt, state, topic } = names.column;
  const longAgo = after("-$1::bigint");
  return {
    lateConfirmations: (lateMs) => ({
      name: "lateConfirmations",
      text: `SELECT late.name, count(*) AS count, ${msSince("min(late.since)")} AS late_ms
FROM (SELECT m.${messageType} AS name, m.${nextRetryAt} AS since FROM ${names.table} m
  WHERE m.${state} = ${names.state("sent")} AND m.${nextRetryAt} < ${longAgo}
  ORDER BY m.${nextRetryAt} LIMIT ${LATE_ROWS}) late
GROUP BY late.name`,
      params: [lateMs],
    }),

    lateSending: (lateMs) => ({
      name: "lateSending",
      text: `SELECT late.name, count(*) AS count, ${msSince("min(late.since)")} AS late_ms
FROM (SELECT m.${topic} AS name, m.${gmtModified} AS since FROM ${names.table} m
  WHERE m.${state} = ${names.state("sending")} LIMIT ${LATE_ROWS}) late
WHERE late.since < ${longAgo} GROUP BY late.name`,
      params: [lateMs],
    }),

    /** Reads the catalog, and locks nothing. */
    findQueue: () => ({
      name: "findQueue",
      text: "SELECT CASE WHEN to_regclass('message_topic') IS NULL THEN 0 ELSE 1 END AS found",
      params: [],
    }),
  };
}

function silenceStatements({ silenceTable, tableKey }: Names): SilenceStatements {
  return {
    listSilences: (limit) => ({
      name: "listSilences",
      text: `SELECT s.id, s.rule_name, s.subject, s.author, s.reason, ${isoText("s.created_at")} AS created_at,
  ${isoText("s.ends_at")} AS ends_at, (s.ends_at > ${NOW})::int AS active
FROM ${silenceTable} s WHERE s.table_name = ${tableKey} ORDER BY s.created_at DESC LIMIT $1::bigint`,
      params: [limit],
    }),

    /** Adds a row of its own, in the transaction of its audit. */
    addSilence: ({ author, forMs, id, reason, rule, subject }) => ({
      name: "addSilence",
      text: `INSERT INTO ${silenceTable} (id, table_name, rule_name, subject, author, reason, created_at, ends_at)
VALUES ($1, ${tableKey}, $2, $3, $4, $5, ${NOW}, ${after("$6::bigint")})`,
      params: [id, rule ?? null, subject ?? null, author, reason, forMs],
    }),

    /** Locks its one row, in the transaction of its audit; of two at once one ends it. */
    endSilence: (id) => ({
      name: "endSilence",
      text: `UPDATE ${silenceTable} SET ends_at = ${NOW} WHERE id = $1 AND table_name = ${tableKey} AND ends_at > ${NOW}`,
      params: [id],
    }),

    /** Locks a few rows that nobody reads any more. */
    forgetSilences: () => ({
      name: "forgetSilences",
      text: `DELETE FROM ${silenceTable} WHERE table_name = ${tableKey} AND ends_at < ${NOW} - interval '${KEPT_SILENCE_MS} milliseconds'`,
      params: [],
    }),
  };
}

/** Several message tables may share them: what is there already stays. */
export function alertTables({ alertTable, silenceTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${alertTable} (
  table_name varchar(160) COLLATE "C" PRIMARY KEY,
  owner char(36) COLLATE "C",
  lease_until timestamptz(3),
  state text,
  saved_at timestamptz(3)
)`,
    `CREATE TABLE IF NOT EXISTS ${silenceTable} (
  id char(36) COLLATE "C" PRIMARY KEY,
  table_name varchar(160) COLLATE "C" NOT NULL,
  rule_name varchar(64) COLLATE "C",
  subject varchar(255) COLLATE "C",
  author varchar(64) COLLATE "C" NOT NULL,
  reason varchar(1024) NOT NULL,
  created_at timestamptz(3) NOT NULL,
  ends_at timestamptz(3) NOT NULL
)`,
    `COMMENT ON TABLE ${alertTable} IS 'alerts: who evaluates them, and what was told'`,
    `COMMENT ON TABLE ${silenceTable} IS 'alerts that nobody is told of'`,
  ];
}
