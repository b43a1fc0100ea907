import type { Session } from "rowpost/admin";

export type ColumnKind = "integer" | "text" | "json" | "binary" | "instant" | "other";

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly kind: ColumnKind;
  readonly length: number | undefined;
  readonly isNullable: boolean;
  /** The database fills it: a default or an identity. */
  readonly hasDefault: boolean;
  readonly comment: string;
  readonly fraction: number;
}

export interface StateValue {
  readonly value: string | number;
  readonly count: number;
}

export interface Catalog {
  readonly dialect: "mysql" | "postgres" | "sqlite";
  readonly schema: string | undefined;
  readonly table: string;
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  readonly uniques: readonly (readonly string[])[];
  readonly indexes: readonly (readonly string[])[];
}

export function quoted({ dialect }: Pick<Catalog, "dialect">, name: string): string {
  return dialect === "mysql" ? `\`${name.replaceAll("`", "``")}\`` : `"${name.replaceAll('"', '""')}"`;
}

/**
 * A quoted text. Backslashes are doubled, because MySQL treats them as escapes unless sql_mode says
 * otherwise; doubled, they end no text in either mode.
 */
function quotedText({ dialect }: Pick<Catalog, "dialect">, text: string): string {
  const escaped = dialect === "mysql" ? text.replaceAll("\\", "\\\\") : text;
  return `'${escaped.replaceAll("'", "''")}'`;
}

export function tableOf(catalog: Pick<Catalog, "dialect" | "schema" | "table">): string {
  return [catalog.schema, catalog.table]
    .filter((part) => part !== undefined)
    .map((part) => quoted(catalog, part))
    .join(".");
}

const MOST_ROWS = 10_000;

async function rowsOf(session: Session, text: string, params: readonly string[] = []) {
  return (await session.run({ name: "adopt", text, params: [...params] })).rows;
}

export async function valuesOf(session: Session, catalog: Catalog, column: string): Promise<StateValue[]> {
  const [key] = catalog.primaryKey;
  const order = key === undefined ? "" : ` ORDER BY ${quoted(catalog, key)} DESC`;
  const newest = `SELECT ${quoted(catalog, column)} AS v FROM ${tableOf(catalog)}${order} LIMIT ${MOST_ROWS}`;
  const counted = `SELECT v, COUNT(*) AS n FROM (${newest}) AS newest GROUP BY v ORDER BY n DESC, v LIMIT 50`;
  const found = (await rowsOf(session, counted)).map((row) => ({ value: plain(row["v"]), count: Number(row["n"]) }));
  for (const value of await indexedValues(session, catalog, column)) {
    if (!found.some((each) => each.value === value)) found.push({ value, count: 0 });
  }
  return found;
}

/** All values if an index begins with the column: one lookup for each value. */
async function indexedValues(session: Session, catalog: Catalog, column: string): Promise<(string | number)[]> {
  if (!catalog.indexes.some(([first]) => first === column)) return [];
  const name = quoted(catalog, column);
  const isText = catalog.columns.find((each) => each.name === column)?.kind === "text";
  const found: (string | number)[] = [];
  for (;;) {
    const last = found.at(-1);
    const literal = isText ? quotedText(catalog, String(last)) : String(last);
    const after = last === undefined ? "" : ` WHERE ${name} > ${literal}`;
    const [row] = await rowsOf(session, `SELECT MIN(${name}) AS v FROM ${tableOf(catalog)}${after}`);
    const value = row?.["v"];
    if (value === null || value === undefined || found.length === 50 || plain(value) === last) return found;
    found.push(plain(value));
  }
}

function plain(value: unknown): string | number {
  if (typeof value === "number") return value;
  const text = String(value);
  return typeof value === "bigint" ? Number(text) : text;
}

/** The newest instant of a column and both clocks, as texts of one format. */
export async function clocksOf(
  session: Session,
  catalog: Catalog,
  column: string,
): Promise<{ readonly newest: string | undefined; readonly local: string; readonly utc: string }> {
  const [key] = catalog.primaryKey;
  const order = key === undefined ? "" : ` ORDER BY ${quoted(catalog, key)} DESC`;
  const from = `FROM (SELECT ${quoted(catalog, column)} AS v FROM ${tableOf(catalog)}${order} LIMIT ${MOST_ROWS}) AS newest`;
  const text = {
    mysql: `SELECT DATE_FORMAT(MAX(v), '%Y-%m-%d %H:%i:%s') AS newest, DATE_FORMAT(NOW(), '%Y-%m-%d %H:%i:%s') AS local_now,
      DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s') AS utc_now ${from}`,
    postgres: `SELECT to_char(MAX(v), 'YYYY-MM-DD HH24:MI:SS') AS newest,
      to_char(now() AT TIME ZONE current_setting('TimeZone'), 'YYYY-MM-DD HH24:MI:SS') AS local_now,
      to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS utc_now ${from}`,
    sqlite: `SELECT datetime(MAX(v)) AS newest, datetime('now', 'localtime') AS local_now, datetime('now') AS utc_now ${from}`,
  }[catalog.dialect];
  const [row = {}] = await rowsOf(session, text);
  const newest = told(row["newest"]);
  return {
    newest: newest === "" ? undefined : newest,
    local: String(row["local_now"]),
    utc: String(row["utc_now"]),
  };
}

/** Undefined if the table does not exist. */
export async function readCatalog(
  session: Session,
  place: Pick<Catalog, "dialect" | "schema" | "table">,
): Promise<Catalog | undefined> {
  const read = { mysql: readInformationSchema, postgres: readPostgres, sqlite: readSqlite }[place.dialect];
  const { columns, keys } = await read(session, place);
  if (columns.length === 0) return undefined;
  const indexes = new Map<string, { readonly isUnique: boolean; readonly isPrimary: boolean; columns: string[] }>();
  for (const { column, index, isPrimary, isUnique } of keys) {
    const known = indexes.get(index) ?? { isUnique, isPrimary, columns: [] };
    indexes.set(index, { ...known, columns: [...known.columns, column] });
  }
  const all = [...indexes.values()];
  return {
    ...place,
    columns,
    primaryKey: all.find(({ isPrimary }) => isPrimary)?.columns ?? [],
    uniques: all.filter(({ isPrimary, isUnique }) => isUnique && !isPrimary).map((each) => each.columns),
    indexes: all.map((each) => each.columns),
  };
}

interface Key {
  readonly index: string;
  readonly column: string;
  readonly isUnique: boolean;
  readonly isPrimary: boolean;
}
interface Read {
  readonly columns: readonly Column[];
  readonly keys: readonly Key[];
}
type Place = Pick<Catalog, "schema" | "table">;

async function readInformationSchema(session: Session, { schema, table }: Place): Promise<Read> {
  const at = `TABLE_SCHEMA = ${schema === undefined ? "DATABASE()" : "?"} AND TABLE_NAME = ?`;
  const params = [...(schema === undefined ? [] : [schema]), table];
  const columns = await rowsOf(
    session,
    `SELECT COLUMN_NAME AS name, COLUMN_TYPE AS type, DATA_TYPE AS base, CHARACTER_MAXIMUM_LENGTH AS length, IS_NULLABLE AS nullable,
      COLUMN_DEFAULT AS preset, EXTRA AS extra, COLUMN_COMMENT AS comment, DATETIME_PRECISION AS fraction
    FROM information_schema.COLUMNS WHERE ${at} ORDER BY ORDINAL_POSITION`,
    params,
  );
  const keys = await rowsOf(
    session,
    `SELECT INDEX_NAME AS name, COLUMN_NAME AS col, NON_UNIQUE AS repeated FROM information_schema.STATISTICS
    WHERE ${at} AND COLUMN_NAME IS NOT NULL ORDER BY INDEX_NAME, SEQ_IN_INDEX`,
    params,
  );
  return {
    columns: columns.map((row) => ({
      name: String(row["name"]),
      type: String(row["type"]),
      kind: kindOf(String(row["base"])),
      length: row["length"] === null ? undefined : Number(row["length"]),
      isNullable: row["nullable"] === "YES",
      hasDefault:
        (row["preset"] !== null && row["preset"] !== "NULL") || /auto_increment|GENERATED/i.test(String(row["extra"])),
      comment: told(row["comment"]),
      fraction: Number(row["fraction"] ?? 0),
    })),
    keys: keys.map((row) => ({
      index: String(row["name"]),
      column: String(row["col"]),
      isUnique: Number(row["repeated"]) === 0,
      isPrimary: row["name"] === "PRIMARY",
    })),
  };
}

async function readPostgres(session: Session, { schema, table }: Place): Promise<Read> {
  const at = `c.relname = $1 AND n.nspname = ${schema === undefined ? "current_schema()" : "$2"}`;
  const params = schema === undefined ? [table] : [table, schema];
  const from = "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace";
  const columns = await rowsOf(
    session,
    `SELECT a.attname AS name, CASE t.typtype WHEN 'e' THEN 'enum ' || t.typname WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
        ELSE format_type(a.atttypid, a.atttypmod) END AS type, (NOT a.attnotnull)::int AS nullable,
      (a.atthasdef OR a.attidentity <> '')::int AS preset, col_description(c.oid, a.attnum) AS comment
    FROM ${from} JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      JOIN pg_type t ON t.oid = a.atttypid
    WHERE ${at} AND c.relkind IN ('r', 'p') ORDER BY a.attnum`,
    params,
  );
  const keys = await rowsOf(
    session,
    `SELECT i.relname AS name, a.attname AS col, (x.indisunique AND x.indpred IS NULL)::int AS is_unique, x.indisprimary::int AS is_primary
    FROM ${from} JOIN pg_index x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid
      CROSS JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
    WHERE ${at} ORDER BY i.relname, k.place`,
    params,
  );
  return {
    columns: columns.map((row) => {
      const type = String(row["type"]);
      const fraction = /^timestamp(?:\((\d)\))?/.exec(type);
      return {
        name: String(row["name"]),
        type,
        kind: kindOf(type),
        length: lengthOf(type),
        isNullable: Number(row["nullable"]) === 1,
        hasDefault: Number(row["preset"]) === 1,
        comment: told(row["comment"]),
        fraction: Number(fraction?.[1] ?? 6),
      };
    }),
    keys: keys.map((row) => ({
      index: String(row["name"]),
      column: String(row["col"]),
      isUnique: Number(row["is_unique"]) === 1,
      isPrimary: Number(row["is_primary"]) === 1,
    })),
  };
}

async function readSqlite(session: Session, { table }: Place): Promise<Read> {
  const columns = await rowsOf(
    session,
    `SELECT name, type, "notnull" AS required, dflt_value AS preset, pk FROM pragma_table_info(?)`,
    [table],
  );
  const keys = await rowsOf(
    session,
    `SELECT l.name AS name, i.name AS col, l."unique" AND NOT l.partial AS is_unique FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i
    WHERE i.name IS NOT NULL ORDER BY l.name, i.seqno`,
    [table],
  );
  const primary = columns.filter((row) => Number(row["pk"]) > 0);
  return {
    columns: columns.map((row) => {
      const type = String(row["type"]);
      const isId = primary.length === 1 && Number(row["pk"]) === 1 && /^integer$/i.test(type);
      return {
        name: String(row["name"]),
        type,
        kind: kindOf(type),
        length: lengthOf(type),
        isNullable: Number(row["required"]) === 0 && !isId,
        hasDefault: row["preset"] !== null || isId,
        comment: "",
        fraction: 3,
      };
    }),
    keys: [
      ...primary.map((row) => ({ index: "(primary)", column: String(row["name"]), isUnique: true, isPrimary: true })),
      ...keys
        .filter((row) => primary.length !== 1 || !String(row["name"]).includes("(primary)"))
        .map((row) => ({
          index: String(row["name"]),
          column: String(row["col"]),
          isUnique: Number(row["is_unique"]) === 1,
          isPrimary: false,
        })),
    ],
  };
}

function told(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "bigint" ? value.toString() : "";
}

/** By type name, for any dialect. SQLite stores instants as text. */
function kindOf(type: string): ColumnKind {
  if (/^(tiny|small|medium|big)?(int|serial)|^int\d?|^integer|^bigserial|^serial/i.test(type)) return "integer";
  if (/^(timestamp|datetime|date$)/i.test(type)) return "instant";
  if (/json/i.test(type)) return "json";
  if (/^(bytea|varbinary|(tiny|medium|long)?blob)/i.test(type)) return "binary";
  if (/char|text|clob|^enum|string|citext/i.test(type)) return "text";
  return "other";
}

function lengthOf(type: string): number | undefined {
  const [, length] = /char[a-z ]*\((\d+)\)/i.exec(type) ?? [];
  return length === undefined ? undefined : Number(length);
}
