/**
 * What the tests of the SQLite dialect share: a migrated file of their own, its statements, and
 * plain handles beside it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database, Session, SessionOptions } from "../../src/databases/database.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { DialectStatements } from "../../src/databases/sql/statements.ts";
import { openHandle, type SqliteHandle } from "../../src/databases/sqlite/driver.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createStatements } from "../../src/databases/sqlite/statements.ts";

export interface SqliteFixture {
  readonly file: string;
  readonly database: Database;
  readonly layout: TableLayout;
  readonly statements: DialectStatements;
  session(options?: Partial<SessionOptions>): Promise<Session>;
  /** A handle as a user has it. */
  handle(): Promise<SqliteHandle>;
  drop(): Promise<void>;
}

/** A handle that belongs to nobody of ours, opened with whichever package this Node has. */
export function plainHandle(file: string): Promise<SqliteHandle> {
  return openHandle({ file, synchronous: "FULL", onWarning: () => undefined });
}

/** A migrated file; `prepare` runs before the migration. */
export async function sqliteFixture(chosen?: TableLayout, prepare: readonly string[] = []): Promise<SqliteFixture> {
  const folder = await mkdtemp(join(tmpdir(), `rowpost_test_${process.pid}_`));
  const file = join(folder, "test.db");
  const database = sqlite({ file });
  const layout = chosen ?? database.defaultLayout;
  const handles: SqliteHandle[] = [];
  const handle = async (): Promise<SqliteHandle> => {
    const made = await plainHandle(file);
    handles.push(made);
    return made;
  };
  if (prepare.length > 0) {
    const first = await handle();
    for (const sql of prepare) first.exec(sql);
  }
  await migrate(database, { layout });
  return {
    file,
    database,
    layout,
    statements: createStatements(layout),
    handle,
    session: (options = {}) => database.connect({ purpose: "relay", ...options }),
    async drop() {
      for (const each of handles) each.close();
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
