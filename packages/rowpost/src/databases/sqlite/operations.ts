/** Sessions of the console, the audit, and the size of the table. */
import { auditConditions, type OperationsStatements } from "../sql/operations-statements.ts";
import { alertStatements } from "./alerts.ts";
import { bulkStatements } from "./bulk.ts";
import { after, before, isoText, type Names, NOW } from "./names.ts";

export function operationsStatements(names: Names): OperationsStatements {
  const { auditTable, column, sessionTable, table, tableKey } = names;
  return {
    ...bulkStatements(names),
    ...alertStatements(names),
    /** The + keeps the order of ids, or all entries of the table would be sorted. */
    readAudit({ beforeId, filter, limit }) {
      const { params, where } = auditConditions(filter, beforeId, () => "?");
      return {
        name: "readAudit",
        text: `SELECT CAST(a.id AS TEXT) AS id, ${isoText("a.made_at")} AS made_at, a.author, a.via, a.action, a.reason, a.result, a.changed, a.ids, a.before_image, a.details
FROM ${auditTable} AS a WHERE +a.table_name = ${tableKey}${where}
ORDER BY a.id DESC LIMIT ?`,
        params: [...params, limit],
      };
    },

    addSession: ({ hash, holder, lifeMs }) => ({
      name: "addSession",
      text: `INSERT INTO ${sessionTable} (hash, holder, seen_at, ends_at) VALUES (?, ?, ${NOW}, ${after("?")})`,
      params: [hash, holder, lifeMs],
    }),

    readSession: ({ hash, idleMs }) => ({
      name: "readSession",
      text: `SELECT holder FROM ${sessionTable} WHERE hash = ? AND ends_at > ${NOW} AND seen_at > ${before("?")}`,
      params: [hash, idleMs],
    }),

    touchSession: ({ afterMs, hash }) => ({
      name: "touchSession",
      text: `UPDATE ${sessionTable} SET seen_at = ${NOW} WHERE hash = ? AND seen_at < ${before("?")}`,
      params: [hash, afterMs],
    }),

    endSession: (hash) => ({ name: "endSession", text: `DELETE FROM ${sessionTable} WHERE hash = ?`, params: [hash] }),

    forgetSessions: () => ({
      name: "forgetSessions",
      text: `DELETE FROM ${sessionTable} WHERE ends_at < ${NOW}`,
      params: [],
    }),

    // There are no statistics: ids without gaps, which is rather too many. Two look-ups.
    estimate: () => ({
      name: "estimate",
      text: `SELECT ${isoText("'now'")} AS clock,
  min(COALESCE((SELECT max(${column.id}) FROM ${table}) - (SELECT min(${column.id}) FROM ${table}) + 1, 0),
    9007199254740991) AS total`,
      params: [],
    }),
  };
}
