/** Does the live database have what the layout says? Asked once, when a relay or a tool opens. */

import { PermissionError, SchemaError } from "../../runtime/errors.ts";
import type { Session } from "../database.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { companionTables } from "./layouts.ts";
import { integer, text, textOrNull } from "./rows.ts";
import type { SchemaStatements } from "./statements.ts";

/** Columns of rowpost's own tables. */
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

/**
 * Columns that tell messages apart: a folding collation would take two messages for one (rule:
 * exact-bytes).
 */
const IDENTITY_COLUMNS: readonly (keyof LayoutColumns)[] = ["messageType", "messageKey", "topic", "orderingKey"];

/** What was seen on the way. */
export interface CheckedSchema {
  /** next_retry_at holds instants to the millisecond, beyond the year 3000. */
  readonly nextRetryKeepsMs: boolean;
}

/**
 * Throws `PermissionError` for a table that this user may not see, and `SchemaError` with every
 * table and column that is missing, and the command that makes them. In the default layout it also
 * refuses an identity column whose collation folds case or accents; the seeds' tables have such
 * columns by their own DDL, and the writer compares there.
 */
export async function checkSchema(
  session: Session,
  options: { readonly layout: TableLayout; readonly schema: SchemaStatements },
): Promise<CheckedSchema> {
  const { layout, schema } = options;
  const found = new Map<string, string | null>();
  const keepMs = new Set<string>();
  const tables = new Set<string>();
  for (const row of (await session.run(schema.columns())).rows) {
    const table = text(row, "table_name").toLowerCase();
    tables.add(table);
    const column = `${table}.${text(row, "column_name").toLowerCase()}`;
    found.set(column, textOrNull(row, "collation"));
    if (integer(row, "keeps_ms") === 1) keepMs.add(column);
  }
  const problems = missing(layout, tables, found);
  if (problems.length > 0) await findDenied(session, schema, layout, tables);
  if (problems.length === 0 && layout.name === "default") {
    for (const property of IDENTITY_COLUMNS) {
      const column = layout.columns[property];
      if (column === undefined) continue;
      const collation = found.get(`${layout.table}.${column}`.toLowerCase()) ?? null;
      if (!schema.comparesBytes(collation)) {
        problems.push(
          `column ${layout.table}.${column} has the collation ${collation}, which takes different keys for one; it has to compare bytes`,
        );
      }
    }
  }
  if (problems.length === 0) {
    return { nextRetryKeepsMs: keepMs.has(`${layout.table}.${layout.columns.nextRetryAt}`.toLowerCase()) };
  }
  throw new SchemaError(
    `the database does not fit the layout ${layout.name}: ${problems.join("; ")}. ` +
      `Run: rowpost migrate --database URL --layout ${layout.name}${layout.name === layout.table || layout.name === "default" ? "" : ` --table ${layout.table}`}`,
  );
}

/** Throws `PermissionError` when a table is only hidden from this user. */
async function findDenied(
  session: Session,
  { lookAt }: SchemaStatements,
  layout: TableLayout,
  tables: ReadonlySet<string>,
): Promise<void> {
  const { shard, relay, suspension, audit, confirmation, unmatched, archive } = companionTables(layout);
  for (const table of [layout.table, shard, relay, suspension, audit, confirmation, unmatched, archive]) {
    if (lookAt === undefined || tables.has(table.toLowerCase())) continue;
    await session.run(lookAt(table)).catch((error: unknown) => {
      if (error instanceof PermissionError) throw error;
    });
  }
}

function missing(layout: TableLayout, tables: ReadonlySet<string>, found: ReadonlyMap<string, unknown>): string[] {
  const companions = companionTables(layout);
  const expected: [table: string, columns: readonly string[]][] = [
    [layout.table, Object.values(layout.columns).filter((column) => column !== undefined)],
    [companions.shard, COMPANION_COLUMNS.shard],
    [companions.relay, COMPANION_COLUMNS.relay],
    [companions.suspension, COMPANION_COLUMNS.suspension],
    [companions.audit, COMPANION_COLUMNS.audit],
    [companions.confirmation, COMPANION_COLUMNS.confirmation],
    [companions.unmatched, COMPANION_COLUMNS.unmatched],
    [companions.archive, ["archived_at"]],
  ];
  const problems: string[] = [];
  for (const [table, columns] of expected) {
    if (!tables.has(table.toLowerCase())) {
      problems.push(`table ${table} is missing`);
      continue;
    }
    for (const column of columns) {
      if (!found.has(`${table}.${column}`.toLowerCase())) problems.push(`column ${table}.${column} is missing`);
    }
  }
  return problems;
}
