/** Alerts: who evaluates them, and what they have told. */
import type { Names } from "./names.ts";

/** One row for each message table: several may share it. */
export function alertTable({ alertTable: table }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  table_name varchar(160) COLLATE "C" NOT NULL PRIMARY KEY,
  owner varchar(64) COLLATE "C",
  lease_until timestamptz(3) NOT NULL DEFAULT '1970-01-01T00:00:00Z',
  state text
)`,
    `COMMENT ON TABLE ${table} IS 'alerts: who evaluates them, and what was told'`,
  ];
}
