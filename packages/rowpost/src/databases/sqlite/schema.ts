/**
 * Numbered migrations and checks of the tables. The text of a released migration never changes:
 * databases store its checksum.
 */
import type { ColumnKind } from "../sql/column-types.ts";
import type { TableLayout } from "../sql/layout.ts";
import { companionTables } from "../sql/layouts.ts";
import { archivedColumns, type ColumnTypes, messageColumns } from "../sql/message-columns.ts";
import { inSchema, quoteName, withoutEngineColumns } from "../sql/sql-names.ts";
import type { Migration, SchemaStatements } from "../sql/statements.ts";
import { unknownState } from "./housekeeping.ts";
import { type Names, NOW } from "./names.ts";
import { alertTables, consoleTables } from "./tables-beside.ts";
import { unknownTable } from "./unknown.ts";

/** DDL is transactional here: all of it takes effect, or nothing. */
export function schemaStatements(names: Names): SchemaStatements {
  const { migrationTable, tableKey, layout } = names;
  return {
    layout: withoutEngineColumns(layout),
    migrations: migrations(names),
    transactional: true,
    // BEGIN IMMEDIATE is the lock.
    lock: undefined,
    unlock: undefined,
    createVersionTable: {
      name: "createVersionTable",
      text: `CREATE TABLE IF NOT EXISTS ${migrationTable} (
  table_name TEXT NOT NULL,
  version INTEGER NOT NULL,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at TEXT NOT NULL,
  PRIMARY KEY (table_name, version)
)`,
      params: [],
    },
    readVersions: () => ({
      name: "readVersions",
      text: `SELECT version, checksum FROM ${migrationTable} WHERE table_name = ${tableKey} ORDER BY version`,
      params: [],
    }),
    recordVersion: (migration, checksum) => ({
      name: "recordVersion",
      text: `INSERT INTO ${migrationTable} (table_name, version, name, checksum, applied_at) VALUES (${tableKey}, ?, ?, ?, ${NOW})`,
      params: [migration.version, migration.name, checksum],
    }),
    // An interrupted migration leaves nothing, but message tables may share the relay's tables, and
    // ADD COLUMN has no IF NOT EXISTS.
    alreadyDone: (error) =>
      error instanceof Error && /duplicate column name: (report|via|result|before_image)/.test(error.message),
    ...liveTable(layout),
    topicIndex: {
      create: topicIndex(names),
      usable: [
        { columns: [layout.columns.topic], predicate: `${names.column.state} = ${names.state("pending")}` },
        { columns: [layout.columns.state, layout.columns.topic], predicate: undefined },
      ],
    },
    // BINARY by default, as in our columns. The writer, which compares, catches a user's COLLATE
    // NOCASE.
    comparesBytes: () => true,
    columnKind,
    textKinds: ["text", "binary", "any"],
    instantKinds: ["text", "instant", "any"],
    clockMend: "",
    needsExactKey: true,
    identityIndex: `CREATE UNIQUE INDEX ${inSchema(layout, `${layout.table}_identity`)} ON ${quoteName(layout.table)} (${names.column.messageType}, ${names.column.messageKey})`,
    versionStart: undefined,
  };
}

function liveTable(layout: TableLayout): Pick<SchemaStatements, "columns" | "indexes"> {
  const { archive, audit, confirmation, relay, shard, suspension, unmatched } = companionTables(layout);
  const tables = [layout.table, shard, relay, suspension, audit, confirmation, unmatched, archive];
  const schema = layout.schema === undefined ? "" : ", ?";
  const schemaTable = layout.schema === undefined ? "sqlite_schema" : `${quoteName(layout.schema)}.sqlite_schema`;
  return {
    columns: () => ({
      name: "columns",
      text: `SELECT wanted.value AS table_name, found.name AS column_name, NULL AS collation, 1 AS keeps_ms,
  found.type AS type, found.dflt_value AS preset
FROM json_each(?) AS wanted, pragma_table_info(wanted.value${schema}) AS found`,
      params: [JSON.stringify(tables), ...(layout.schema === undefined ? [] : [layout.schema])],
    }),
    indexes: () => ({
      name: "indexes",
      text: `SELECT list.name AS index_name, part.seqno AS place, part.name AS column_name,
  list."unique" AS is_unique, CASE WHEN list.partial THEN substr(made.sql, instr(upper(made.sql), ' WHERE ') + 7) END AS predicate
FROM pragma_index_list(?${schema}) AS list, pragma_index_info(list.name${schema}) AS part
LEFT JOIN ${schemaTable} AS made ON made.type = 'index' AND made.name = list.name`,
      params: [layout.table, ...(layout.schema === undefined ? [] : [layout.schema, layout.schema])],
    }),
  };
}

/** By the affinity that SQLite derives from the name of the type. */
function columnKind(type: string): ColumnKind {
  return KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? "numeric";
}

const KINDS: readonly (readonly [pattern: RegExp, kind: ColumnKind])[] = [
  [/^(?:any)?$/i, "any"],
  [/int/i, "integer"],
  [/char|clob|text/i, "text"],
  [/blob/i, "binary"],
  [/real|floa|doub/i, "other"],
  [/json/i, "json"],
  // Numeric affinity; SQLite keeps non-numeric text unchanged.
  [/date|time/i, "instant"],
];

/** Leaves out the message table and its indexes if the table is the user's own. */
function migrations(names: Names): readonly Migration[] {
  const unlessCustom = (...statements: readonly string[]) => (names.layout.name === "custom" ? [] : statements);
  const table = unlessCustom(messageTable(names), ...messageIndexes(names));
  return [
    { version: 1, name: "local message table", statements: table },
    { version: 2, name: "tables of the relay", statements: companionTablesOf(names) },
    { version: 3, name: "archive", statements: archiveTable(names) },
    { version: 4, name: "waiting rows by topic", statements: unlessCustom(topicIndex(names)) },
    { version: 5, name: "archive takes an id again", statements: archiveKey(names) },
    { version: 6, name: "reports of relays, and what people did", statements: operations(names) },
    { version: 7, name: "who has confirmed", statements: confirmations(names) },
    { version: 8, name: "sessions of the console, and more of what people did", statements: consoleTables(names) },
    {
      version: 9,
      name: "confirmations of unknown messages",
      statements: unknownTable(names),
    },
    // Migration 10 made the tables that 13 drops. Databases store its number, so it is not used
    // again.
    { version: 11, name: "alerts", statements: alertTables(names) },
    {
      version: 13,
      name: "nothing beside the audit for changes of many messages",
      undoes: 10,
      statements: names.formerTables.map((table) => `DROP TABLE IF EXISTS ${table}`),
    },
  ];
}

/** SQLite stores no lengths; the writer checks them. Text compares by bytes (rule: exact-bytes). */
const TYPES: ColumnTypes = {
  identity: () => "TEXT",
  varchar: () => "TEXT",
  text: "TEXT",
  smallint: "INTEGER",
  integer: "INTEGER",
  bigint: "INTEGER",
  instant: "TEXT",
  now: `(${NOW})`,
};

/**
 * AUTOINCREMENT: an id reused after a delete would accept the settle of its former message (rule:
 * sqlite-handle).
 */
function messageTable(names: Names): string {
  const { id, messageType, messageKey } = names.column;
  return `CREATE TABLE IF NOT EXISTS ${names.table} (
  ${id} INTEGER PRIMARY KEY AUTOINCREMENT,
  ${messageColumns(names, TYPES).join(",\n  ")},
  UNIQUE (${messageType}, ${messageKey})
)`;
}

/**
 * SQLite adds the id to every index, so (state, next_retry_at) serves every walk of the relay and
 * of housekeeping.
 */
function messageIndexes(names: Names): readonly string[] {
  const { state, nextRetryAt, orderingKey, topic } = names.column;
  const index = (name: string, columns: string, where = ""): string =>
    `CREATE INDEX IF NOT EXISTS ${inSchema(names.layout, `${names.layout.table}_${name}`)} ON ${quoteName(names.layout.table)} (${columns})${where}`;
  const indexes = [
    index("state", `${state}, ${nextRetryAt}`),
    index("topic", topic),
    // Empty in a healthy table.
    index("unknown", state, ` WHERE ${unknownState(names)}`),
  ];
  if (orderingKey !== undefined) indexes.push(index("ordered", orderingKey, ` WHERE ${orderingKey} IS NOT NULL`));
  return indexes;
}

/** Waiting rows only; SQLite adds the id. */
function topicIndex(names: Names): string {
  const { column, layout } = names;
  return `CREATE INDEX IF NOT EXISTS ${inSchema(layout, `${layout.table}_waiting_topic`)} ON ${quoteName(layout.table)} (${column.topic}, ${column.nextRetryAt}) WHERE ${column.state} = ${names.state("pending")}`;
}

function companionTablesOf(names: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${names.shardTable} (
  table_name TEXT NOT NULL,
  shard INTEGER NOT NULL,
  owner TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  lease_until TEXT NOT NULL DEFAULT '1970-01-01 00:00:00.000',
  lease_ms INTEGER NOT NULL DEFAULT 0,
  in_flight TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (table_name, shard)
)`,
    `CREATE TABLE IF NOT EXISTS ${names.relayTable} (
  table_name TEXT NOT NULL,
  owner TEXT NOT NULL,
  label TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  PRIMARY KEY (table_name, owner)
)`,
    `CREATE TABLE IF NOT EXISTS ${names.suspensionTable} (
  table_name TEXT NOT NULL,
  scope TEXT NOT NULL,
  value TEXT NOT NULL,
  reason TEXT NOT NULL,
  author TEXT NOT NULL,
  ends_at TEXT,
  gmt_create TEXT NOT NULL DEFAULT (${NOW}),
  PRIMARY KEY (table_name, scope, value)
)`,
  ];
}

/** For types that name their consumers. Several message tables may share it. */
function confirmations({ confirmationTable, layout }: Names): readonly string[] {
  const name = companionTables(layout).confirmation;
  return [
    `CREATE TABLE IF NOT EXISTS ${confirmationTable} (
  table_name TEXT NOT NULL,
  message INTEGER NOT NULL,
  consumer TEXT NOT NULL,
  confirmed_at TEXT NOT NULL,
  PRIMARY KEY (table_name, message, consumer)
) WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS ${inSchema(layout, `${name}_at`)} ON ${quoteName(name)} (table_name, confirmed_at)`,
  ];
}

function operations({ auditTable, layout, relayTable }: Names): readonly string[] {
  const index = (name: string, columns: string): string =>
    `CREATE INDEX IF NOT EXISTS ${inSchema(layout, `${layout.companion}_audit_${name}`)} ON ${quoteName(companionTables(layout).audit)} (${columns})`;
  return [
    `ALTER TABLE ${relayTable} ADD COLUMN report TEXT`,
    `ALTER TABLE ${relayTable} ADD COLUMN reported_at TEXT`,
    `CREATE TABLE IF NOT EXISTS ${auditTable} (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  table_name TEXT NOT NULL,
  made_at TEXT NOT NULL,
  author TEXT NOT NULL,
  action TEXT NOT NULL,
  reason TEXT NOT NULL,
  changed INTEGER NOT NULL,
  first_id INTEGER,
  last_id INTEGER,
  ids TEXT,
  details TEXT
)`,
    index("message", "table_name, last_id, first_id"),
    index("made", "made_at"),
  ];
}

/**
 * The archive keeps ids and has no unique (type, key), because an archived key may be used again
 * (rule: checked-move).
 */
function archiveTable(names: Names): readonly string[] {
  const { archive, column } = names;
  return [
    `CREATE TABLE IF NOT EXISTS ${archive} (
  ${column.id} INTEGER PRIMARY KEY,
  ${archivedColumns(names, TYPES).join(",\n  ")},
  archived_at TEXT NOT NULL
)`,
    ...archiveIndexes(names),
  ];
}

function archiveIndexes({ column, layout }: Names): readonly string[] {
  const name = companionTables(layout).archive;
  const on = `ON ${quoteName(name)}`;
  return [
    `CREATE INDEX IF NOT EXISTS ${inSchema(layout, `${name}_key`)} ${on} (${column.messageType}, ${column.messageKey})`,
    `CREATE INDEX IF NOT EXISTS ${inSchema(layout, `${name}_at`)} ${on} (archived_at)`,
  ];
}

/**
 * When a table and sqlite_sequence are emptied, ids restart at 1, while the archive has rows with
 * the same ids. SQLite cannot change a key, so the table is rebuilt.
 */
function archiveKey(names: Names): readonly string[] {
  const { archive, column, layout } = names;
  const name = companionTables(layout).archive;
  const made = inSchema(layout, `${name}_new`);
  const columns = [...Object.values(column), "archived_at"].join(", ");
  return [
    `CREATE TABLE ${made} (
  ${column.id} INTEGER NOT NULL,
  ${archivedColumns(names, TYPES).join(",\n  ")},
  archived_at TEXT NOT NULL,
  PRIMARY KEY (${column.id}, archived_at)
)`,
    `INSERT INTO ${made} (${columns}) SELECT ${columns} FROM ${archive}`,
    `DROP TABLE ${archive}`,
    `ALTER TABLE ${made} RENAME TO ${quoteName(name)}`,
    ...archiveIndexes(names),
  ];
}
