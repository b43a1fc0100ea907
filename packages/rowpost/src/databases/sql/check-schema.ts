/** Compares the live database with the layout, once when a relay or a tool opens. */

import { PermissionError, SchemaError } from "../../runtime/errors.ts";
import type { Executor } from "../../transactions/executor.ts";
import { unfitColumns } from "./column-types.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { companionTables } from "./layouts.ts";
import { integer, text, textOrNull } from "./rows.ts";
import type { SchemaStatements } from "./statements.ts";

const COMPANION_COLUMNS: Readonly<
  Record<"shard" | "relay" | "suspension" | "audit" | "confirmation" | "unmatched", readonly string[]>
> = {
  shard: ["table_name", "shard", "owner", "epoch", "lease_until", "lease_ms", "in_flight"],
  relay: ["table_name", "owner", "label", "seen_at", "report", "reported_at"],
  suspension: ["table_name", "scope", "value", "reason", "author", "ends_at", "gmt_create"],
  audit: [
    "id",
    "table_name",
    "made_at",
    "author",
    "action",
    "reason",
    "changed",
    "first_id",
    "last_id",
    "ids",
    "details",
    "via",
    "result",
    "before_image",
  ],
  confirmation: ["table_name", "message", "consumer", "confirmed_at"],
  unmatched: ["table_name", "message_type", "message_key", "consumer", "reason", "times", "first_at", "last_at"],
};

/** Identity columns: a folding collation would confuse two messages (rule: exact-bytes). */
const IDENTITY_COLUMNS: readonly (keyof LayoutColumns)[] = ["messageType", "messageKey", "topic", "orderingKey"];

export interface CheckedSchema {
  /** next_retry_at keeps milliseconds and years beyond 3000. */
  readonly nextRetryKeepsMs: boolean;
  /** Default of lock_version as the database writes it; null: none, or no such column. */
  readonly versionDefault: string | null;
}

type Runs = Pick<Executor, "run">;

interface LookOptions {
  readonly layout: TableLayout;
  readonly schema: SchemaStatements;
}

/** Tables by name and columns by `table.column`, in lower case. */
interface Tables {
  readonly names: ReadonlySet<string>;
  readonly columns: ReadonlyMap<string, Column>;
}

interface Column {
  readonly type: string;
  readonly preset: string | null;
  readonly collation: string | null;
  readonly keepsMs: boolean;
}

async function readTables(session: Runs, schema: SchemaStatements): Promise<Tables> {
  const names = new Set<string>();
  const columns = new Map<string, Column>();
  for (const row of (await session.run(schema.columns())).rows) {
    const table = text(row, "table_name").toLowerCase();
    names.add(table);
    columns.set(`${table}.${text(row, "column_name").toLowerCase()}`, {
      type: text(row, "type"),
      preset: textOrNull(row, "preset"),
      collation: textOrNull(row, "collation"),
      keepsMs: integer(row, "keeps_ms") === 1,
    });
  }
  return { names, columns };
}

function columnOf({ columns }: Tables, { table }: TableLayout, column: string | undefined): Column | undefined {
  return columns.get(`${table}.${column}`.toLowerCase());
}

/** Problems of the message table. One that `migrate` makes may be missing. */
export async function messageTableProblems(session: Runs, { layout, schema }: LookOptions): Promise<readonly string[]> {
  const tables = await readTables(session, schema);
  const isThere = tables.names.has(layout.table.toLowerCase());
  if (!isThere && layout.name !== "custom") return [];
  if (!isThere) {
    await findDenied(session, schema, [layout.table]);
    return [
      `table ${layout.table} is missing: it is your own, and only the tables beside it are made; create it first`,
    ];
  }
  const [own] = expectedTables(layout);
  return [...(layout.name === "custom" ? missing([own], tables) : []), ...unfit(layout, schema, tables)];
}

function unfit(layout: TableLayout, schema: SchemaStatements, tables: Tables): string[] {
  return unfitColumns(layout, schema, (column) => columnOf(tables, layout, column)?.type);
}

/**
 * Throws `PermissionError` for a hidden table, and `SchemaError` with all missing tables and
 * columns, the command that makes them, and all columns that alter values. In the default layout it
 * also refuses an identity column whose collation folds case or accents. `t_local_message` and
 * `message_table` define such columns, so there the writer compares.
 */
export async function checkSchema(session: Runs, options: LookOptions): Promise<CheckedSchema> {
  const { layout, schema } = options;
  const tables = await readTables(session, schema);
  const absent = missing(expectedTables(layout), tables);
  if (absent.length > 0) {
    const hidden = expectedTables(layout).filter(([table]) => !tables.names.has(table.toLowerCase()));
    await findDenied(
      session,
      schema,
      hidden.map(([table]) => table),
    );
  }
  const problems = [...absent, ...unfit(layout, schema, tables)];
  if (problems.length === 0) problems.push(...folding(layout, schema, tables));
  if (problems.length > 0) throw doesNotFit(layout, problems, absent.length > 0);
  const { lockVersion, nextRetryAt } = layout.columns;
  return {
    nextRetryKeepsMs: columnOf(tables, layout, nextRetryAt)?.keepsMs === true,
    versionDefault: columnOf(tables, layout, lockVersion)?.preset ?? null,
  };
}

/** `isMade`: `migrate` makes the missing parts. */
export function doesNotFit(layout: TableLayout, problems: readonly string[], isMade: boolean): SchemaError {
  const isShipped = layout.name === layout.table || layout.name === "default";
  const run = `. Run: rowpost migrate --database URL --layout ${layout.name}${isShipped ? "" : ` --table ${layout.table}`}`;
  return new SchemaError(
    `the database does not fit the layout ${layout.name}: ${problems.join("; ")}${isMade ? run : ""}`,
  );
}

function folding(layout: TableLayout, schema: SchemaStatements, tables: Tables): string[] {
  if (layout.name !== "default") return [];
  return IDENTITY_COLUMNS.flatMap((property) => {
    const column = layout.columns[property];
    const collation = columnOf(tables, layout, column)?.collation ?? null;
    if (column === undefined || schema.comparesBytes(collation)) return [];
    return [
      `column ${layout.table}.${column} has the collation ${collation}, which takes different keys for one; it has to compare bytes`,
    ];
  });
}

/** Throws `PermissionError` if one of these tables is only hidden from this user. */
async function findDenied(session: Runs, { lookAt }: SchemaStatements, tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    if (lookAt === undefined) continue;
    await session.run(lookAt(table)).catch((error: unknown) => {
      if (error instanceof PermissionError) throw error;
    });
  }
}

type Expected = readonly [table: string, columns: readonly string[]];

/** The message table comes first. */
function expectedTables(layout: TableLayout): readonly [Expected, ...Expected[]] {
  const companions = companionTables(layout);
  return [
    [layout.table, Object.values(layout.columns).filter((column) => column !== undefined)],
    [companions.shard, COMPANION_COLUMNS.shard],
    [companions.relay, COMPANION_COLUMNS.relay],
    [companions.suspension, COMPANION_COLUMNS.suspension],
    [companions.audit, COMPANION_COLUMNS.audit],
    [companions.confirmation, COMPANION_COLUMNS.confirmation],
    [companions.unmatched, COMPANION_COLUMNS.unmatched],
    [companions.archive, ["archived_at"]],
  ];
}

function missing(expected: readonly Expected[], { columns: found, names }: Tables): string[] {
  return expected.flatMap(([table, columns]) => {
    if (!names.has(table.toLowerCase())) return [`table ${table} is missing`];
    return columns.flatMap((column) =>
      found.has(`${table}.${column}`.toLowerCase()) ? [] : [`column ${table}.${column} is missing`],
    );
  });
}
