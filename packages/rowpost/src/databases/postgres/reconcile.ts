/**
 * Reconciling: the operator's own queries, and which identities there are. Everything runs in
 * transactions that read one state and write nothing; nothing here locks.
 */
import type { ReconcileStatements } from "../sql/reconcile-statements.ts";
import { type Names, textArray } from "./names.ts";

export function reconcileStatements(names: Names): ReconcileStatements {
  const { messageKey, messageType } = names.column;
  const typeOf = (typed: boolean): string => (typed ? "q.message_type::text" : "NULL::text");
  return {
    // With a parameter, so that the server takes one statement and no more.
    userRows: ({ limit, text, typed }) => ({
      name: "userRows",
      text: `SELECT ${typeOf(typed)} AS message_type, q.message_key::text AS message_key FROM (
${text}
) AS q LIMIT $1::bigint`,
      params: [limit],
    }),

    // Grouped by bytes: a collation may take different keys for one.
    repeatedRows: ({ limit, text, typed }) => ({
      name: "repeatedRows",
      text: `SELECT r.message_type AS message_type, r.message_key AS message_key, count(*) AS times
FROM (SELECT ${typeOf(typed)} COLLATE "C" AS message_type, q.message_key::text COLLATE "C" AS message_key FROM (
${text}
) AS q) AS r
WHERE r.message_key IS NOT NULL
GROUP BY r.message_type, r.message_key HAVING count(*) > 1 LIMIT $1::bigint`,
      params: [limit],
    }),

    // OFFSET 0 keeps it one look into the index for each key: as a join the planner would, with
    // statistics from when the table was small, read all of it.
    existing: ({ archived, keys, type }) => ({
      name: `existing.${archived ? "archive" : "messages"}`,
      text: `SELECT found.message_type, found.message_key FROM unnest($2::text[]) AS wanted (key)
CROSS JOIN LATERAL (SELECT m.${messageType}::text COLLATE "C" AS message_type, m.${messageKey}::text COLLATE "C" AS message_key
  FROM ${archived ? names.archive : names.table} m
  WHERE m.${messageType} = $1::text AND m.${messageKey} = wanted.key OFFSET 0) AS found`,
      params: [type, textArray(keys)],
    }),

    instant: (epochMs) => `TIMESTAMPTZ '${new Date(epochMs).toISOString()}'`,
    wallClock: (text) => `TIMESTAMP '${text}'`,
    // A colon behind another one is a cast. A dollar within a name begins no text. One
    // comment within another is known, and one within that is refused.
    opaque:
      /[eE]'(?:[^'\\]|''|\\[\s\S])*'|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*(?:(?!\/\*|\*\/)[\s\S]|\/\*(?:(?!\/\*|\*\/)[\s\S])*\*\/)*\*\/|\$([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[\s\S]*?\$\1\$|::/y,
  };
}
