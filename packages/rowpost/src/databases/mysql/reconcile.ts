/**
 * Reconciling: the operator's own queries, and which identities there are. Everything runs in
 * transactions that read one state and write nothing; nothing here locks.
 */
import type { ReconcileStatements } from "../sql/reconcile-statements.ts";
import { whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

/** Indexes on type and key of the tables that `rowpost migrate` makes. */
const IDENTITY_INDEX = { messages: "uk_type_key", archive: "idx_type_key" };

export function reconcileStatements(names: MysqlNames): ReconcileStatements {
  const { archive, column, layout, messages } = names;
  const type = column("messageType");
  const key = column("messageKey");
  const typeOf = (typed: boolean): string => (typed ? "CAST(q.message_type AS CHAR)" : "NULL");
  return {
    userRows: ({ limit, text, typed }) => ({
      name: "userRows",
      text: `SELECT ${typeOf(typed)} AS message_type, CAST(q.message_key AS CHAR) AS message_key FROM (
${text}
) AS q LIMIT ${whole(limit)}`,
      params: [],
    }),

    // Grouped by bytes: a collation may take different keys for one.
    repeatedRows: ({ limit, text, typed }) => ({
      name: "repeatedRows",
      text: `SELECT MIN(r.message_type) AS message_type, MIN(r.message_key) AS message_key, COUNT(*) AS times
FROM (SELECT ${typeOf(typed)} AS message_type, CAST(q.message_key AS CHAR) AS message_key FROM (
${text}
) AS q) AS r
GROUP BY CAST(r.message_type AS BINARY), CAST(r.message_key AS BINARY) HAVING COUNT(*) > 1 AND MIN(r.message_key) IS NOT NULL LIMIT ${whole(limit)}`,
      params: [],
    }),

    // The index is named where it is known: with statistics from when the table was small, the
    // optimizer walks all of it. The index has all that is read.
    existing({ archived, keys, type: wanted }) {
      const known = archived || layout.name === "default";
      const hint = known ? ` FORCE INDEX (${archived ? IDENTITY_INDEX.archive : IDENTITY_INDEX.messages})` : "";
      return {
        name: `existing.${archived ? "archive" : "messages"}`,
        text: `SELECT ${type} AS message_type, ${key} AS message_key FROM ${archived ? archive : messages} AS m${hint}
  WHERE ${type} = ? AND ${key} IN (${keys.map(() => "?").join(", ")})`,
        params: [wanted, ...keys],
      };
    },

    instant: (epochMs) => `(${names.fromEpochMs(whole(epochMs))})`,
    wallClock: (text) => `TIMESTAMP'${text}'`,
    // A comment that the server runs, such as /*! or /*M!, is code.
    opaque: /'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`[^`]*`|--(?=\s)[^\n]*|#[^\n]*|\/\*(?!M?!)[\s\S]*?\*\//y,
  };
}
