/** Alerts: who evaluates them, and what they have told. */
import type { Names } from "./names.ts";

/** One row for each message table: several may share it. */
export function alertTable({ alertTable: table }: Names): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  table_name TEXT NOT NULL PRIMARY KEY,
  owner TEXT,
  lease_until TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000',
  state TEXT
) WITHOUT ROWID`;
}
