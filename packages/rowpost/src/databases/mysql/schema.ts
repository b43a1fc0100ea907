/**
 * Numbered migrations and checks of the tables. The text of a released migration never changes:
 * databases store its checksum.
 */

import type { Statement } from "../../transactions/executor.ts";
import type { ColumnKind } from "../sql/column-types.ts";
import type { TableLayout } from "../sql/layout.ts";
import { companionTables } from "../sql/layouts.ts";
import type { Migration, SchemaStatements } from "../sql/statements.ts";
import { COMPANION_NOW } from "./clock.ts";
import { errorNumber } from "./errors.ts";
import { defaultColumns, defaultTable, openRows, startVersions, topicColumns, versionStart } from "./message-table.ts";
import { IDENTITY, type MysqlNames, quoteName, TABLE_OPTIONS } from "./names.ts";
import { seedTable } from "./seed-tables.ts";
import { alertTables, consoleTables } from "./tables-beside.ts";
import { unknownTable } from "./unknown.ts";

/** Errors of a migration that runs again: the object exists, or is dropped already. */
const ALREADY_DONE = new Set([1050, 1060, 1061, 1091]);

export function schemaStatements(names: MysqlNames): SchemaStatements {
  const { layout, tableKey } = names;
  const lockName = `rowpost.migrate.${fingerprint(`${layout.schema ?? ""}.${layout.companion}`)}`;

  return {
    layout,
    migrations: migrations(names),
    transactional: false,
    // Whole seconds, because MySQL rounds a fraction to 0; lower case, because MariaDB is
    // case-sensitive here; with the database's name, because locks are server-wide (MySQL 9.7 has
    // no MD5).
    lock: {
      name: "migrationLock",
      text: "SELECT GET_LOCK(CONCAT(?, CRC32(COALESCE(DATABASE(), ''))), 60) AS locked",
      params: [lockName],
    },
    unlock: {
      name: "migrationUnlock",
      text: "SELECT RELEASE_LOCK(CONCAT(?, CRC32(COALESCE(DATABASE(), '')))) AS unlocked",
      params: [lockName],
    },
    createVersionTable: {
      name: "createVersionTable",
      text: `CREATE TABLE IF NOT EXISTS ${names.migrations} (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  version INT NOT NULL,
  name VARCHAR(128) NOT NULL,
  checksum CHAR(16) CHARACTER SET ascii NOT NULL,
  applied_at DATETIME(3) NOT NULL,
  PRIMARY KEY (table_name, version)
) ${TABLE_OPTIONS}`,
      params: [],
    },
    readVersions: () => ({
      name: "readVersions",
      text: `SELECT version, checksum FROM ${names.migrations} WHERE table_name = ? ORDER BY version`,
      params: [tableKey],
    }),
    recordVersion: (migration, checksum) => ({
      name: "recordVersion",
      text: `INSERT INTO ${names.migrations} (table_name, version, name, checksum, applied_at) VALUES (?, ?, ?, ?, ${COMPANION_NOW})`,
      params: [tableKey, migration.version, migration.name, checksum],
    }),
    alreadyDone: (error) => ALREADY_DONE.has(errorNumber(error)),
    ...liveTable(layout),
    zone: layout.clock === "server" ? zone : undefined,
    topicIndex: {
      create: `CREATE INDEX idx_waiting_topic ON ${names.messages} (${topicColumns(layout).map(quoteName).join(", ")})`,
      usable: [{ columns: topicColumns(layout).slice(0, -1), predicate: undefined }],
    },
    comparesBytes: (collation) => collation === null || collation.endsWith("_bin"),
    columnKind: (type) => columnKind(type, layout),
    // Text written to a column of bytes stays unchanged. An ENUM takes "2" for its second word.
    textKinds: ["text", "padded", "binary"],
    instantKinds: ["instant"],
    clockMend: `each session takes it for its own zone, and the layout says clock "utc"; make it DATETIME(3), or say clock: "server" where every program and the server have one zone`,
    needsExactKey: false,
    identityIndex: `ALTER TABLE ${names.messages} ADD UNIQUE KEY uk_type_key (${[layout.columns.messageType, layout.columns.messageKey].map(quoteName).join(", ")})`,
    versionStart: names.has("lockVersion") ? startVersions(names) : undefined,
  };
}

/** Twelve months of the session's zone, which is the server's own. Reads no table. */
function zone(): Statement {
  const months = Array.from({ length: 12 }, (_, month) => `SELECT UTC_TIMESTAMP() + INTERVAL ${month} MONTH AS at`);
  return {
    name: "zone",
    text: `SELECT IF(@@session.time_zone = 'SYSTEM', @@system_time_zone, @@session.time_zone) AS zone,
    COUNT(DISTINCT TIMESTAMPDIFF(MINUTE, u.at, CONVERT_TZ(u.at, '+00:00', @@session.time_zone))) > 1 AS shifts
  FROM (${months.join(" UNION ALL ")}) AS u`,
    params: [],
  };
}

function columnKind(type: string, { clock }: TableLayout): ColumnKind {
  if (/^timestamp/i.test(type) && clock === "utc") return "foreignClock";
  return KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? "other";
}

const KINDS: readonly (readonly [pattern: RegExp, kind: ColumnKind])[] = [
  [/^(?:tiny|small|medium|big)?int\b/i, "integer"],
  [/^(?:varchar|(?:tiny|medium|long)?text)\b/i, "text"],
  [/^char\b/i, "padded"],
  [/^enum\b/i, "enum"],
  [/^json\b/i, "json"],
  // The server pads BINARY(n) with NUL.
  [/^(?:varbinary|(?:tiny|medium|long)?blob)\b/i, "binary"],
  [/^(?:datetime|timestamp)\b/i, "instant"],
];

function liveTable(layout: TableLayout): Pick<SchemaStatements, "columns" | "lookAt" | "indexes"> {
  const companions = companionTables(layout);
  const schema = layout.schema === undefined ? "DATABASE()" : "?";
  return {
    // Servers differ in the case of information_schema's column names; aliases settle it.
    columns: () => ({
      name: "columns",
      text: `SELECT c.TABLE_NAME AS table_name, c.COLUMN_NAME AS column_name, c.COLLATION_NAME AS collation,
    c.DATA_TYPE = 'datetime' AND c.DATETIME_PRECISION >= 3 AS keeps_ms, c.COLUMN_TYPE AS type, c.COLUMN_DEFAULT AS preset
  FROM information_schema.COLUMNS AS c
  WHERE c.TABLE_SCHEMA = ${schema} AND c.TABLE_NAME IN (?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        ...(layout.schema === undefined ? [] : [layout.schema]),
        layout.table,
        companions.shard,
        companions.relay,
        companions.suspension,
        companions.audit,
        companions.confirmation,
        companions.unmatched,
        companions.archive,
      ],
    }),
    // information_schema hides a table from users without a privilege on it.
    lookAt: (table) => ({
      name: `look at ${table}`,
      text: `SELECT 1 AS one FROM ${layout.schema === undefined ? "" : `${quoteName(layout.schema)}.`}${quoteName(table)} WHERE 1 = 0`,
      params: [],
    }),
    // An index on a prefix of the topic cannot find a topic by itself.
    indexes: () => ({
      name: "indexes",
      text: `SELECT s.INDEX_NAME AS index_name, s.SEQ_IN_INDEX - 1 AS place, IF(s.SUB_PART IS NULL, s.COLUMN_NAME, NULL) AS column_name, NULL AS predicate,
    s.NON_UNIQUE = 0 AS is_unique
  FROM information_schema.STATISTICS AS s
  WHERE s.TABLE_SCHEMA = ${schema} AND s.TABLE_NAME = ?`,
      params: [...(layout.schema === undefined ? [] : [layout.schema]), layout.table],
    }),
  };
}

/** FNV-1a, for names that must be short. Not for security. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

function migrations(names: MysqlNames): readonly Migration[] {
  const { layout } = names;
  const own = layout.name === "default" ? [defaultTable(names)] : seedTable(layout, names.messages);
  return [
    { version: 1, name: "local message table", statements: own },
    { version: 2, name: "tables of the relay", statements: companionTable(names) },
    {
      version: 3,
      name: "archive",
      statements: layout.name === "custom" ? customArchive(names) : [archiveTable(names)],
    },
    {
      version: 4,
      name: "unfinished rows by topic and key",
      statements: layout.name === "default" ? openRows(names) : [],
    },
    {
      version: 5,
      name: "archive takes an id again",
      // After a TRUNCATE ids restart at 1, while the archive keeps the same ids.
      statements: [
        `ALTER TABLE ${names.archive} DROP PRIMARY KEY, ADD PRIMARY KEY (${quoteName(layout.columns.id)}, archived_at)`,
      ],
    },
    { version: 6, name: "reports of relays, and what people did", statements: operations(names) },
    { version: 7, name: "who has confirmed", statements: [confirmationTable(names)] },
    { version: 8, name: "sessions of the console, and more of what people did", statements: consoleTables(names) },
    {
      version: 9,
      name: "confirmations of unknown messages",
      statements: [unknownTable(names)],
    },
    // Migration 10 made the tables that 13 drops. Databases store its number, so it is not used
    // again.
    { version: 11, name: "alerts", statements: alertTables(names) },
    { version: 12, name: "versions begin anywhere", statements: versionStart(names) },
    {
      version: 13,
      name: "nothing beside the audit for changes of many messages",
      undoes: 10,
      statements: names.formerTables.map((table) => `DROP TABLE IF EXISTS ${table}`),
    },
  ];
}

function companionTable(names: MysqlNames): readonly string[] {
  const tableName = "table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL";
  const owner = "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin";
  return [
    `CREATE TABLE IF NOT EXISTS ${names.shards} (
  ${tableName},
  shard SMALLINT NOT NULL,
  owner ${owner} NULL COMMENT 'random id of a relay since its start; NULL = free',
  epoch BIGINT NOT NULL DEFAULT 0 COMMENT 'grows with each owner',
  lease_until DATETIME(3) NOT NULL DEFAULT '1970-01-01 00:00:00.000' COMMENT 'UTC',
  lease_ms INT NOT NULL DEFAULT 0,
  in_flight MEDIUMTEXT NULL COMMENT 'ids being published by a relay that sets no sending mark',
  PRIMARY KEY (table_name, shard)
) ${TABLE_OPTIONS} COMMENT='who may relay which messages'`,
    `CREATE TABLE IF NOT EXISTS ${names.relays} (
  ${tableName},
  owner ${owner} NOT NULL,
  label VARCHAR(255) NOT NULL COMMENT 'host:pid',
  seen_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (table_name, owner)
) ${TABLE_OPTIONS} COMMENT='running relays'`,
    `CREATE TABLE IF NOT EXISTS ${names.suspensions} (
  ${tableName},
  scope VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'ordering_key, topic, type or relay',
  value VARCHAR(255) ${IDENTITY} NOT NULL COMMENT 'the key, topic or type; * for relay',
  reason VARCHAR(512) NOT NULL,
  author VARCHAR(64) NOT NULL,
  ends_at DATETIME(3) NULL COMMENT 'UTC; NULL = until it is lifted',
  gmt_create DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC',
  PRIMARY KEY (table_name, scope, value)
) ${TABLE_OPTIONS} COMMENT='what must not be sent for now'`,
  ];
}

/** For types that name their consumers. Existing tables stay, as in the next ones. */
function confirmationTable({ confirmations }: MysqlNames): string {
  return `CREATE TABLE IF NOT EXISTS ${confirmations} (
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  message BIGINT NOT NULL COMMENT 'id of the message',
  consumer VARCHAR(128) ${IDENTITY} NOT NULL,
  confirmed_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (table_name, message, consumer),
  KEY idx_confirmed_at (table_name, confirmed_at)
) ${TABLE_OPTIONS} COMMENT='which consumer has confirmed which message'`;
}

/** Several message tables may share these, so existing tables stay. */
function operations({ audit, relays }: MysqlNames): readonly string[] {
  return [
    `ALTER TABLE ${relays}
  ADD COLUMN report MEDIUMTEXT CHARACTER SET utf8mb4 NULL COMMENT 'JSON: what the relay says of itself',
  ADD COLUMN reported_at DATETIME(3) NULL COMMENT 'UTC'`,
    `CREATE TABLE IF NOT EXISTS ${audit} (
  id BIGINT NOT NULL AUTO_INCREMENT,
  table_name VARCHAR(160) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  made_at DATETIME(3) NOT NULL COMMENT 'UTC',
  author VARCHAR(64) NOT NULL COMMENT 'who',
  action VARCHAR(32) CHARACTER SET ascii NOT NULL COMMENT 'retry, suspend, resume, archive, delete, …',
  reason VARCHAR(1024) NOT NULL COMMENT 'why, in their own words',
  changed INT NOT NULL COMMENT 'messages',
  first_id BIGINT NULL COMMENT 'lowest id that was changed',
  last_id BIGINT NULL,
  ids MEDIUMTEXT NULL COMMENT 'JSON: the ids that were changed',
  details MEDIUMTEXT NULL COMMENT 'JSON: a rule, a topic, …',
  PRIMARY KEY (id),
  KEY idx_message (table_name, last_id, first_id) COMMENT 'what was done to a message',
  KEY idx_made_at (made_at)
) ${TABLE_OPTIONS} COMMENT='what people did by hand'`,
  ];
}

/**
 * The archive keeps ids, has no pad, and no unique (type, key), because an archived key may be used
 * again (rule: checked-move).
 */
function archiveTable(names: MysqlNames): string {
  if (names.layout.name === "default") {
    return `CREATE TABLE IF NOT EXISTS ${names.archive} (
  id BIGINT NOT NULL COMMENT 'as it was in the message table',
  ${defaultColumns()
    .filter((column) => !column.startsWith("settle_pad "))
    .join(",\n  ")},
  archived_at DATETIME(3) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (id),
  KEY idx_type_key (message_type, message_key),
  KEY idx_archived_at (archived_at)
) ${TABLE_OPTIONS} COMMENT='finished messages'`;
  }
  return seedTable(names.layout, names.archive)
    .join("")
    .replace("AUTO_INCREMENT", "")
    .replace(/UNIQUE KEY `?\w+`?/, "KEY `idx_type_key`")
    .replace(/\n\)/, ",\n  archived_at DATETIME(3) NOT NULL COMMENT 'UTC',\n  KEY idx_archived_at (archived_at)\n)");
}

/** The archive of a user's own table is made from it and has the same columns. */
function customArchive(names: MysqlNames): readonly string[] {
  const { columns } = names.layout;
  return [
    // Strict mode refuses the statement without a default, although this SELECT returns no rows.
    `CREATE TABLE IF NOT EXISTS ${names.archive} (
  archived_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)) COMMENT 'UTC',
  PRIMARY KEY (${quoteName(columns.id)}),
  KEY idx_type_key (${quoteName(columns.messageType)}, ${quoteName(columns.messageKey)}),
  KEY idx_archived_at (archived_at)
) ${TABLE_OPTIONS} AS SELECT * FROM ${names.messages} WHERE 1 = 0`,
  ];
}
