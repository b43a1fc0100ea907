/** Confirmations of unknown messages, kept in transactions of the user's pool. */
import { quoteName } from "../sql/sql-names.ts";
import type { UnknownStatements } from "../sql/unknown-statements.ts";
import { type Names, NOW } from "./names.ts";

/** Several message tables may share it. */
export function unknownTable({ layout, unmatchedTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${unmatchedTable} (
  table_name varchar(160) COLLATE "C" NOT NULL,
  message_type varchar(64) COLLATE "C" NOT NULL,
  message_key varchar(128) COLLATE "C" NOT NULL,
  consumer varchar(128) COLLATE "C" NOT NULL,
  reason varchar(1024),
  times bigint NOT NULL,
  first_at timestamptz(3) NOT NULL,
  last_at timestamptz(3) NOT NULL,
  PRIMARY KEY (table_name, message_type, message_key, consumer)
)`,
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${layout.companion}_unmatched_at`.slice(-63))} ON ${unmatchedTable} (table_name, last_at)`,
    `COMMENT ON TABLE ${unmatchedTable} IS 'confirmations of messages that are not there'`,
  ];
}

export function unknownStatements({ tableKey, unmatchedTable }: Names): UnknownStatements {
  return {
    // A plain read: two parallel counts may exceed the limit by one call each.
    countUnknown: (most) => ({
      name: "countUnknown",
      text: `SELECT count(*) AS kept FROM (SELECT 1 FROM ${unmatchedTable} WHERE table_name = ${tableKey} LIMIT $1::bigint) AS u`,
      params: [most],
    }),

    /*
     * Locks these entries in row order, as all calls do. If we die right after it, nothing is kept,
     * but the confirmations have committed before.
     */
    keepUnknown: (rows) => ({
      name: "keepUnknown",
      text: `INSERT INTO ${unmatchedTable} AS u (table_name, message_type, message_key, consumer, reason, times, first_at, last_at)
SELECT ${tableKey}, said.type, said.key, said.consumer, said.reason, said.times, ${NOW}, ${NOW}
FROM json_to_recordset($1::text::json) AS said (type text, key text, consumer text, reason text, times bigint)
ON CONFLICT (table_name, message_type, message_key, consumer)
DO UPDATE SET reason = EXCLUDED.reason, times = u.times + EXCLUDED.times, last_at = EXCLUDED.last_at`,
      params: [JSON.stringify(rows)],
    }),

    /*
     * Locks old entries. The age is checked again under the lock, so an entry reported meanwhile
     * stays. If we die right after it, the expired entries are gone.
     */
    forgetUnknown: ({ limit, olderThanMs }) => ({
      name: "forgetUnknown",
      text: `DELETE FROM ${unmatchedTable} u WHERE u.ctid = ANY (ARRAY(
  SELECT old.ctid FROM ${unmatchedTable} old
  WHERE old.table_name = ${tableKey} AND old.last_at <= ${NOW} - $1::bigint * interval '1 millisecond'
  ORDER BY old.last_at LIMIT $2::bigint)) AND u.last_at <= ${NOW} - $1::bigint * interval '1 millisecond'`,
      params: [olderThanMs, limit],
    }),
  };
}
