/**
 * Reconciling: the operator's own queries, and which identities there are. Everything runs in
 * transactions that read one state and write nothing.
 */
import type { ReconcileStatements } from "../sql/reconcile-statements.ts";
import { literal } from "../sql/sql-names.ts";
import type { Names } from "./names.ts";

export function reconcileStatements(names: Names): ReconcileStatements {
  const { messageKey, messageType } = names.column;
  const typeOf = (typed: boolean): string => (typed ? "CAST(q.message_type AS TEXT)" : "NULL");
  return {
    userRows: ({ limit, text, typed }) => ({
      name: "userRows",
      text: `SELECT ${typeOf(typed)} AS message_type, CAST(q.message_key AS TEXT) AS message_key FROM (
${text}
) AS q LIMIT ${limit}`,
      params: [],
    }),

    // A cast takes the collation of the column off: bytes are compared.
    repeatedRows: ({ limit, text, typed }) => ({
      name: "repeatedRows",
      text: `SELECT r.message_type AS message_type, r.message_key AS message_key, count(*) AS times
FROM (SELECT ${typeOf(typed)} AS message_type, CAST(q.message_key AS TEXT) COLLATE BINARY AS message_key FROM (
${text}
) AS q) AS r
WHERE r.message_key IS NOT NULL
GROUP BY r.message_type, r.message_key HAVING count(*) > 1 LIMIT ${limit}`,
      params: [],
    }),

    // CROSS JOIN: one look into the unique key for each, whatever the statistics say.
    existing: ({ archived, keys, type }) => ({
      name: `existing.${archived ? "archive" : "messages"}`,
      text: `SELECT m.${messageType} AS message_type, m.${messageKey} AS message_key FROM json_each(?) AS wanted
CROSS JOIN ${archived ? names.archive : names.table} AS m ON m.${messageType} = ? AND m.${messageKey} = wanted.value`,
      params: [JSON.stringify(keys), type],
    }),

    instant: (epochMs) => literal(new Date(epochMs).toISOString().replace("T", " ").replace("Z", "")),
    wallClock: literal,
    opaque: /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\//y,
  };
}
