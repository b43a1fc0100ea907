/**
 * Migrates a database to the tables of a layout: numbered steps, one migration at a time per
 * database, repeatable.
 */

import { DatabaseUnavailableError, SchemaError } from "../../runtime/errors.ts";
import type { Executor } from "../../transactions/executor.ts";
import type { Database, Session } from "../database.ts";
import { checkSchema, doesNotFit, messageTableProblems } from "./check-schema.ts";
import type { TableLayout } from "./layout.ts";
import { integer, text } from "./rows.ts";
import type { Migration, SchemaStatements } from "./statements.ts";
import { readIndexes, tableFindings } from "./table-findings.ts";

/** Result of a migration. */
export interface MigrationReport {
  /** Steps that ran now, such as `1 local message table`; empty if all were done already. */
  readonly applied: readonly string[];
  /** With `print`: the SQL of all steps, for your own migration tool; nothing was run. */
  readonly sql: string | undefined;
  /** Problems of the message table that do not stop the work yet. */
  readonly warnings: readonly string[];
}

/**
 * Makes the layout's message table (unless it is the user's own) and its companions. A parallel run
 * waits and finds all done; an interrupted one can be repeated. With `print` it needs no connection
 * and changes nothing. Throws `SchemaError` if a newer version migrated the database, a recorded
 * step differs from ours, or the message table does not fit the layout; in the last case nothing
 * was made.
 */
export async function migrate(
  database: Pick<Database, "connect" | "schema">,
  options: { readonly layout: TableLayout; readonly print?: boolean | undefined },
): Promise<MigrationReport> {
  const schema = database.schema({ layout: options.layout });
  const { layout } = schema;
  if (options.print === true) return { applied: [], sql: printMigrations(schema.migrations), warnings: [] };
  return await withSession(database, async (session) => {
    const problems = await messageTableProblems(session, { layout, schema });
    if (problems.length > 0) throw doesNotFit(layout, problems, false);
    const applied = await applyTo(session, schema);
    const checked = await checkSchema(session, { layout, schema });
    const findings = tableFindings({ layout, schema }, await readIndexes(session, schema), checked);
    const warnings = findings.filter(({ severity }) => severity !== "note");
    return {
      applied,
      sql: undefined,
      warnings: warnings.map(({ mend, what, why }) => `${what}: ${why}. Mend: ${mend}`),
    };
  });
}

/** Runs the missing steps and returns their names. */
export async function runMigrations(
  database: Pick<Database, "connect">,
  schema: SchemaStatements,
): Promise<readonly string[]> {
  return await withSession(database, (session) => applyTo(session, schema));
}

async function withSession<T>(
  { connect }: Pick<Database, "connect">,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await connect({ purpose: "tool", lockWaitTimeoutMs: 30_000, statementTimeoutMs: 120_000 });
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

function applyTo(session: Session, schema: SchemaStatements): Promise<readonly string[]> {
  return schema.transactional ? inTransaction(session, schema) : underLock(session, schema);
}

export function printMigrations(migrations: readonly Migration[]): string {
  return migrations
    .filter(({ undoes }) => undoes === undefined)
    .flatMap(({ version, name, statements }) => [
      `-- ${version} ${name}`,
      ...statements.map((statement) => `${statement};`),
      "",
    ])
    .join("\n");
}

function inTransaction(session: Session, schema: SchemaStatements): Promise<readonly string[]> {
  return session.transaction(async (tx) => {
    if (schema.lock !== undefined) await tx.run(schema.lock);
    return await apply(tx, schema);
  });
}

async function underLock(session: Session, schema: SchemaStatements): Promise<readonly string[]> {
  if (schema.lock !== undefined) {
    const { rows } = await session.run(schema.lock);
    if (rows[0] !== undefined && "locked" in rows[0] && integer(rows[0], "locked") !== 1) {
      throw new DatabaseUnavailableError(
        "another migration of this database is still running after 60 s; wait for it, then run this one again",
      );
    }
  }
  try {
    return await apply(session, schema);
  } finally {
    if (schema.unlock !== undefined && !session.dead) await session.run(schema.unlock);
  }
}

async function apply(session: Pick<Executor, "run">, schema: SchemaStatements): Promise<readonly string[]> {
  await session.run(schema.createVersionTable);
  const done = new Map(
    (await session.run(schema.readVersions())).rows.map((row) => [integer(row, "version"), text(row, "checksum")]),
  );
  const newest = schema.migrations.at(-1)?.version ?? 0;
  for (const version of done.keys()) {
    if (version > newest) {
      throw new SchemaError(
        `the database has migration ${version}, this version of rowpost knows ${newest}: use the newer version that made it`,
      );
    }
  }
  const applied: string[] = [];
  for (const migration of schema.migrations) {
    const checksum = checksumOf(migration);
    const recorded = done.get(migration.version);
    if (recorded === undefined) {
      const isNeeded = migration.undoes === undefined || done.has(migration.undoes);
      for (const statement of isNeeded ? migration.statements : []) await applyStatement(session, schema, statement);
      await session.run(schema.recordVersion(migration, checksum));
      applied.push(`${migration.version} ${migration.name}`);
    } else if (recorded !== checksum) {
      throw new SchemaError(
        `migration ${migration.version} (${migration.name}) of this database has the checksum ${recorded}, ours is ${checksum}: ` +
          "it was made by another version or for another layout of this table",
      );
    }
  }
  return applied;
}

async function applyStatement(
  session: Pick<Executor, "run">,
  schema: SchemaStatements,
  statement: string,
): Promise<void> {
  try {
    await session.run({ name: "migration", text: statement, params: [] });
  } catch (error) {
    if (!schema.alreadyDone(error)) throw error;
  }
}

/**
 * 64 bits of FNV-1a over the statements, as 16 hex digits: detects an edited migration. Not for
 * security.
 */
function checksumOf(migration: Migration): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(migration.statements.join("\n"))) {
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  return hash.toString(16).padStart(16, "0");
}
