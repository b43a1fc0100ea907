/** Sessions of the console, the audit, and the size of the table. */
import { auditConditions, type OperationsStatements } from "../sql/operations-statements.ts";
import { alertStatements } from "./alerts.ts";
import { bulkStatements } from "./bulk.ts";
import { after, isoText, type Names, NOW } from "./names.ts";

export function operationsStatements(names: Names): OperationsStatements {
  const { auditTable, sessionTable, table, tableKey } = names;
  return {
    ...bulkStatements(names),
    ...alertStatements(names),
    readAudit({ beforeId, filter, limit }) {
      const { params, where } = auditConditions(filter, beforeId, (number) => `$${number + 1}`);
      return {
        name: "readAudit",
        text: `SELECT a.id, ${isoText("a.made_at")} AS made_at, a.author, a.via, a.action, a.reason, a.result, a.changed, a.ids, a.before_image, a.details
FROM ${auditTable} a WHERE a.table_name = ${tableKey}${where}
ORDER BY a.id DESC LIMIT $1::bigint`,
        params: [limit, ...params],
      };
    },

    /** Adds a row of its own. If we die right after it, it is a session that nobody has. */
    addSession: ({ hash, holder, lifeMs }) => ({
      name: "addSession",
      text: `INSERT INTO ${sessionTable} (hash, holder, seen_at, ends_at) VALUES ($1, $2, ${NOW}, ${after("$3::bigint")})`,
      params: [hash, holder, lifeMs],
    }),

    readSession: ({ hash, idleMs }) => ({
      name: "readSession",
      text: `SELECT s.holder FROM ${sessionTable} s
WHERE s.hash = $1 AND s.ends_at > ${NOW} AND s.seen_at > ${after("-$2::bigint")}`,
      params: [hash, idleMs],
    }),

    /** Locks its one row. Of two at once the later one finds it seen. */
    touchSession: ({ afterMs, hash }) => ({
      name: "touchSession",
      text: `UPDATE ${sessionTable} SET seen_at = ${NOW} WHERE hash = $1 AND seen_at < ${after("-$2::bigint")}`,
      params: [hash, afterMs],
    }),

    /** Locks its one row; who reads it after the commit is told that there is none. */
    endSession: (hash) => ({ name: "endSession", text: `DELETE FROM ${sessionTable} WHERE hash = $1`, params: [hash] }),

    /** Locks the rows of a few hundred sessions at most; nobody reads one that is over. */
    forgetSessions: () => ({
      name: "forgetSessions",
      text: `DELETE FROM ${sessionTable} WHERE ends_at < ${NOW}`,
      params: [],
    }),

    // -1: nobody has counted yet.
    estimate: () => ({
      name: "estimate",
      text: `SELECT ${isoText(NOW)} AS clock, (SELECT CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END
FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1::text)) AS total`,
      params: [table],
    }),
  };
}

/**
 * Who is logged in to the console; and how, with what success and from which states a change went.
 */
export function consoleTables({ auditTable, sessionTable }: Names): readonly string[] {
  return [
    `ALTER TABLE ${auditTable}
  ADD COLUMN IF NOT EXISTS via varchar(16) COLLATE "C",
  ADD COLUMN IF NOT EXISTS result varchar(16) COLLATE "C" NOT NULL DEFAULT 'done',
  ADD COLUMN IF NOT EXISTS before_image text`,
    `CREATE TABLE IF NOT EXISTS ${sessionTable} (
  hash char(64) COLLATE "C" PRIMARY KEY,
  holder text NOT NULL,
  seen_at timestamptz(3) NOT NULL,
  ends_at timestamptz(3) NOT NULL
)`,
    `COMMENT ON TABLE ${sessionTable} IS 'who is logged in to the console'`,
  ];
}
