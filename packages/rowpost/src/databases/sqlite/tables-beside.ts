/** Tables beside the message table that no relay needs. */
import type { Names } from "./names.ts";

/** Console sessions, and for each change its way, its success and its from-states. */
export function consoleTables({ auditTable, sessionTable }: Names): readonly string[] {
  return [
    `ALTER TABLE ${auditTable} ADD COLUMN via TEXT`,
    `ALTER TABLE ${auditTable} ADD COLUMN result TEXT NOT NULL DEFAULT 'done'`,
    `ALTER TABLE ${auditTable} ADD COLUMN before_image TEXT`,
    `CREATE TABLE IF NOT EXISTS ${sessionTable} (
  hash TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  ends_at TEXT NOT NULL
) WITHOUT ROWID`,
  ];
}

/** Several message tables may share them, so existing tables stay. */
export function alertTables({ alertTable, silenceTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${alertTable} (
  table_name TEXT PRIMARY KEY,
  owner TEXT,
  lease_until TEXT,
  state TEXT,
  saved_at TEXT
)`,
    `CREATE TABLE IF NOT EXISTS ${silenceTable} (
  id TEXT PRIMARY KEY,
  table_name TEXT NOT NULL,
  rule_name TEXT,
  subject TEXT,
  author TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_at TEXT NOT NULL,
  ends_at TEXT NOT NULL
)`,
  ];
}
