/** Tables beside the message table that no relay needs. */
import type { Names } from "./names.ts";

/** Console sessions, and for each change its way, its success and its from-states. */
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

/** Several message tables may share them, so existing tables stay. */
export function alertTables({ alertTable, silenceTable }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${alertTable} (
  table_name varchar(160) COLLATE "C" PRIMARY KEY,
  owner char(36) COLLATE "C",
  lease_until timestamptz(3),
  state text,
  saved_at timestamptz(3)
)`,
    `CREATE TABLE IF NOT EXISTS ${silenceTable} (
  id char(36) COLLATE "C" PRIMARY KEY,
  table_name varchar(160) COLLATE "C" NOT NULL,
  rule_name varchar(64) COLLATE "C",
  subject varchar(255) COLLATE "C",
  author varchar(64) COLLATE "C" NOT NULL,
  reason varchar(1024) NOT NULL,
  created_at timestamptz(3) NOT NULL,
  ends_at timestamptz(3) NOT NULL
)`,
    `COMMENT ON TABLE ${alertTable} IS 'alerts: who evaluates them, and what was told'`,
    `COMMENT ON TABLE ${silenceTable} IS 'silenced alerts'`,
  ];
}
