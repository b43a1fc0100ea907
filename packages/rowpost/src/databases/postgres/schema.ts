/**
 * Numbered migrations and checks of the tables. The text of a released migration never changes:
 * databases store its checksum.
 */
import type { ColumnKind } from "../sql/column-types.ts";
import { companionTables } from "../sql/layouts.ts";
import { archivedColumns } from "../sql/message-columns.ts";
import { literal, quoteName, withoutEngineColumns } from "../sql/sql-names.ts";
import type { Migration, SchemaStatements } from "../sql/statements.ts";
import {
  comments,
  INSTANT,
  messageIndexes,
  messageTable,
  startVersions,
  TYPES,
  topicIndex,
  versionStart,
} from "./message-table.ts";
import { isWaiting, type Names, NOW, textArray } from "./names.ts";
import { alertTables, consoleTables } from "./tables-beside.ts";
import { unknownTable } from "./unknown.ts";

/** DDL is transactional here: all of it takes effect, or nothing. */
export function schemaStatements(names: Names): SchemaStatements {
  const { migrationTable, tableKey } = names;
  return {
    layout: withoutEngineColumns(names.layout),
    migrations: migrations(names),
    transactional: true,
    // Held until the transaction ends. One lock for all tables of the database, since migrations
    // are rare.
    lock: {
      name: "migrationLock",
      text: "SELECT 1 AS locked FROM pg_advisory_xact_lock(hashtext('rowpost.migrate'))",
      params: [],
    },
    unlock: undefined,
    createVersionTable: {
      name: "createVersionTable",
      text: `CREATE TABLE IF NOT EXISTS ${migrationTable} (
  table_name varchar(160) COLLATE "C" NOT NULL,
  version integer NOT NULL,
  name varchar(128) NOT NULL,
  checksum varchar(64) NOT NULL,
  applied_at timestamptz(3) NOT NULL,
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
      text: `INSERT INTO ${migrationTable} (table_name, version, name, checksum, applied_at) VALUES (${tableKey}, $1, $2, $3, ${NOW})`,
      params: [migration.version, migration.name, checksum],
    }),
    // Every statement has IF NOT EXISTS, and an interrupted migration leaves nothing.
    alreadyDone: () => false,
    ...liveTable(names),
    topicIndex: {
      create: topicIndex(names, "CREATE INDEX CONCURRENTLY"),
      usable: [{ columns: [names.layout.columns.topic], predicate: isWaiting(names, "") }],
    },
    // The statement returns only collations that may treat different bytes as equal.
    comparesBytes: (collation) => collation === null,
    columnKind: (type) => columnKind(type, names),
    textKinds: ["text"],
    instantKinds: ["instant"],
    clockMend:
      'it keeps no zone, and rowpost writes UTC; say clock: "utc" if your programs do so too, else make it timestamptz (ALTER COLUMN … TYPE timestamptz USING … AT TIME ZONE your zone)',
    needsExactKey: true,
    identityIndex: `CREATE UNIQUE INDEX CONCURRENTLY ON ${names.table} (${names.column.messageType}, ${names.column.messageKey})`,
    versionStart: names.column.lockVersion === undefined ? undefined : startVersions(names),
  };
}

function columnKind(type: string, { layout }: Names): ColumnKind {
  const isZoneless = /^timestamp\b(?!.*with time zone)/.test(type);
  // The default table is written as instants, which is cheaper.
  if (isZoneless && (layout.clock !== "utc" || layout.name === "default")) return "foreignClock";
  return KINDS.find(([pattern]) => pattern.test(type))?.[1] ?? "other";
}

const KINDS: readonly (readonly [pattern: RegExp, kind: ColumnKind])[] = [
  [/^(?:small|big)?int(?:eger)?$/, "integer"],
  // Longer ones are padded with blanks and compared without them.
  [/^(?:text|citext|character varying.*|character\(1\))$/, "text"],
  [/^jsonb?$/, "json"],
  [/^bytea$/, "binary"],
  [/^timestamp\b/, "instant"],
];

function liveTable(names: Names): Pick<SchemaStatements, "columns" | "indexes"> {
  const columnsText = `SELECT c.relname AS table_name, a.attname AS column_name,
  CASE WHEN t.typname = 'citext' THEN 'citext' WHEN NOT rules.collisdeterministic THEN rules.collname END AS collation,
  CASE WHEN t.typname IN ('timestamptz', 'timestamp') AND (a.atttypmod < 0 OR a.atttypmod >= 3) THEN 1 ELSE 0 END AS keeps_ms,
  CASE t.typtype WHEN 'e' THEN 'enum ' || format_type(a.atttypid, a.atttypmod) WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
    ELSE format_type(a.atttypid, a.atttypmod) END AS type,
  (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) AS preset
FROM unnest($1::text[]) AS wanted (name)
JOIN pg_catalog.pg_class c ON c.oid = to_regclass(wanted.name)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_collation rules ON rules.oid = a.attcollation`;
  // Ignores an index that is still being built or whose build failed.
  const indexesText = `SELECT i.indexrelid::text AS index_name, part.place - 1 AS place, a.attname AS column_name,
  pg_get_expr(i.indpred, i.indrelid) AS predicate, CASE WHEN i.indisunique AND i.indimmediate THEN 1 ELSE 0 END AS is_unique
FROM pg_catalog.pg_index i
CROSS JOIN unnest(i.indkey::smallint[]) WITH ORDINALITY AS part (attnum, place)
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = part.attnum AND part.attnum > 0
WHERE i.indrelid = to_regclass($1::text) AND i.indisvalid AND part.place <= i.indnkeyatts`;
  return {
    columns: () => ({
      name: "columns",
      text: columnsText,
      params: [
        textArray([
          names.table,
          names.shardTable,
          names.relayTable,
          names.suspensionTable,
          names.auditTable,
          names.confirmationTable,
          names.unmatchedTable,
          names.archive,
        ]),
      ],
    }),
    indexes: () => ({
      name: "indexes",
      text: indexesText,
      params: [names.table],
    }),
  };
}

function migrations(names: Names): readonly Migration[] {
  const custom = names.layout.name === "custom";
  return [
    {
      version: 1,
      name: "local message table",
      statements: custom ? [] : [messageTable(names), ...messageIndexes(names), ...comments(names)],
    },
    { version: 2, name: "tables of the relay", statements: companionTablesOf(names) },
    { version: 3, name: "archive", statements: archiveTable(names) },
    {
      version: 4,
      name: "waiting rows by topic",
      statements: custom ? [] : [topicIndex(names, "CREATE INDEX IF NOT EXISTS")],
    },
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
    { version: 12, name: "versions begin anywhere", statements: versionStart(names) },
    {
      version: 13,
      name: "nothing beside the audit for changes of many messages",
      undoes: 10,
      statements: names.formerTables.map((table) => `DROP TABLE IF EXISTS ${table}`),
    },
  ];
}

/**
 * `epoch` is in the primary key, although (table_name, shard) is unique, so that any change of it,
 * even by hand, waits for running fenced statements (see fenceClause in names.ts). fillfactor
 * leaves room for renewals, which are HOT updates.
 */
function companionTablesOf(names: Names): readonly string[] {
  const tableName = 'table_name varchar(160) COLLATE "C" NOT NULL';
  const small = "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500)";
  return [
    `CREATE TABLE IF NOT EXISTS ${names.shardTable} (
  ${tableName},
  shard integer NOT NULL,
  owner varchar(64) COLLATE "C",
  epoch bigint NOT NULL DEFAULT 0,
  lease_until ${INSTANT} NOT NULL DEFAULT '1970-01-01T00:00:00Z',
  lease_ms bigint NOT NULL DEFAULT 0,
  in_flight bigint[] NOT NULL DEFAULT '{}',
  PRIMARY KEY (table_name, shard, epoch),
  UNIQUE (table_name, shard)
) ${small}`,
    `CREATE TABLE IF NOT EXISTS ${names.relayTable} (
  ${tableName},
  owner varchar(64) COLLATE "C" NOT NULL,
  label varchar(255) NOT NULL,
  seen_at ${INSTANT} NOT NULL,
  PRIMARY KEY (table_name, owner)
) ${small}`,
    `CREATE TABLE IF NOT EXISTS ${names.suspensionTable} (
  ${tableName},
  scope varchar(16) COLLATE "C" NOT NULL,
  value varchar(255) COLLATE "C" NOT NULL,
  reason varchar(512) NOT NULL,
  author varchar(64) NOT NULL,
  ends_at ${INSTANT},
  gmt_create ${INSTANT} NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (table_name, scope, value)
)`,
    `COMMENT ON TABLE ${names.shardTable} IS 'who may relay which messages'`,
    `COMMENT ON TABLE ${names.relayTable} IS 'running relays'`,
    `COMMENT ON TABLE ${names.suspensionTable} IS 'what must not be sent for now'`,
  ];
}

/** For types that name their consumers. Several message tables may share it. */
function confirmations({ confirmationTable, layout }: Names): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${confirmationTable} (
  table_name varchar(160) COLLATE "C" NOT NULL,
  message bigint NOT NULL,
  consumer varchar(128) COLLATE "C" NOT NULL,
  confirmed_at ${INSTANT} NOT NULL,
  PRIMARY KEY (table_name, message, consumer)
)`,
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${layout.companion}_confirmation_at`.slice(-63))} ON ${confirmationTable} (table_name, confirmed_at)`,
    `COMMENT ON TABLE ${confirmationTable} IS 'which consumer has confirmed which message'`,
  ];
}

/** Several message tables may share these, so existing tables stay. */
function operations({ auditTable, layout, relayTable }: Names): readonly string[] {
  const index = (name: string, columns: string): string =>
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${layout.companion}_audit_${name}`.slice(-63))} ON ${auditTable} (${columns})`;
  return [
    `ALTER TABLE ${relayTable}
  ADD COLUMN IF NOT EXISTS report text,
  ADD COLUMN IF NOT EXISTS reported_at ${INSTANT}`,
    `CREATE TABLE IF NOT EXISTS ${auditTable} (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  table_name varchar(160) COLLATE "C" NOT NULL,
  made_at ${INSTANT} NOT NULL,
  author varchar(64) NOT NULL,
  action varchar(32) COLLATE "C" NOT NULL,
  reason varchar(1024) NOT NULL,
  changed integer NOT NULL,
  first_id bigint,
  last_id bigint,
  ids text,
  details text
)`,
    index("message", "table_name, last_id, first_id"),
    index("made", "made_at"),
    `COMMENT ON TABLE ${auditTable} IS 'what people did by hand'`,
  ];
}

/**
 * The archive keeps ids and has no unique (type, key), because an archived key may be used again
 * (rule: checked-move). A user's own table is copied as it is.
 */
function archiveTable(names: Names): readonly string[] {
  const { archive, column, layout, table } = names;
  const name = companionTables(layout).archive;
  const own = layout.name === "custom";
  const columns = own
    ? `LIKE ${table}`
    : `${column.id} bigint NOT NULL,\n  ${archivedColumns(names, TYPES).join(",\n  ")}`;
  return [
    `CREATE TABLE IF NOT EXISTS ${archive} (
  ${columns},
  archived_at ${INSTANT} NOT NULL,
  PRIMARY KEY (${column.id})
)`,
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${name}_key`.slice(-63))} ON ${archive} (${column.messageType}, ${column.messageKey})`,
    `CREATE INDEX IF NOT EXISTS ${quoteName(`${name}_at`.slice(-63))} ON ${archive} (archived_at)`,
    `COMMENT ON TABLE ${archive} IS 'finished messages'`,
  ];
}

/**
 * After TRUNCATE … RESTART IDENTITY ids restart at 1, while the archive keeps the same ids. The old
 * key's name is looked up, because PostgreSQL cuts long names.
 */
function archiveKey({ archive, column }: Names): readonly string[] {
  return [
    `DO $$ BEGIN
  EXECUTE COALESCE((SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
    FROM pg_catalog.pg_constraint WHERE conrelid = ${literal(archive)}::regclass AND contype = 'p'), 'SELECT');
END $$`,
    `ALTER TABLE ${archive} ADD PRIMARY KEY (${column.id}, archived_at)`,
  ];
}
