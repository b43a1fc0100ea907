/**
 * Confirmations of unknown messages. Keeping and forgetting them locks the whole file; if we die
 * right after it, it has happened fully or not at all.
 */
import type { TableLayout } from "../sql/layout.ts";
import { companionTables } from "../sql/layouts.ts";
import { inSchema, quoteName } from "../sql/sql-names.ts";
import type { UnknownStatements } from "../sql/unknown-statements.ts";
import { before, type Names, NOW } from "./names.ts";

/** Several message tables may share it. */
export function unknownTable({ layout, unmatchedTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${unmatchedTable} (
  table_name TEXT NOT NULL,
  message_type TEXT NOT NULL,
  message_key TEXT NOT NULL,
  consumer TEXT NOT NULL,
  reason TEXT,
  times INTEGER NOT NULL,
  first_at TEXT NOT NULL,
  last_at TEXT NOT NULL,
  PRIMARY KEY (table_name, message_type, message_key, consumer)
) WITHOUT ROWID`,
    lastIndex(layout),
  ];
}

function lastIndex(layout: TableLayout): string {
  const name = companionTables(layout).unmatched;
  return `CREATE INDEX IF NOT EXISTS ${inSchema(layout, `${name}_at`)} ON ${quoteName(name)} (table_name, last_at)`;
}

export function unknownStatements({ tableKey, unmatchedTable }: Names): UnknownStatements {
  return {
    countUnknown: (most) => ({
      name: "countUnknown",
      text: `SELECT count(*) AS kept FROM (SELECT 1 FROM ${unmatchedTable} WHERE table_name = ${tableKey} LIMIT ?) AS u`,
      params: [most],
    }),

    // "WHERE true" keeps the parser from reading ON CONFLICT as a join condition.
    keepUnknown: (rows) => ({
      name: "keepUnknown",
      text: `INSERT INTO ${unmatchedTable} AS u (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
SELECT ${tableKey}, value ->> 'type', value ->> 'key', value ->> 'consumer', value ->> 'reason', value ->> 'times', ${NOW}, ${NOW}
FROM json_each(?)
WHERE true
ON CONFLICT (table_name, message_type, message_key, consumer)
DO UPDATE SET reason = excluded.reason, times = u.times + excluded.times, last_at = excluded.last_at`,
      params: [JSON.stringify(rows)],
    }),

    forgetUnknown: ({ limit, olderThanMs }) => ({
      name: "forgetUnknown",
      text: `DELETE FROM ${unmatchedTable} WHERE (table_name, message_type, message_key, consumer) IN (
  SELECT table_name, message_type, message_key, consumer FROM ${unmatchedTable}
  WHERE table_name = ${tableKey} AND last_at <= ${before("?")}
  ORDER BY last_at LIMIT ?)`,
      params: [olderThanMs, limit],
    }),
  };
}
