/**
 * What the tests of the PostgreSQL dialect share: a migrated database of their own, its statements,
 * and plain connections beside it.
 */
import pg from "pg";
import type { Database, Session, SessionOptions } from "../../src/databases/database.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createStatements } from "../../src/databases/postgres/statements.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { DialectStatements } from "../../src/databases/sql/statements.ts";
import { createTestDatabase } from "../services.ts";

export interface PostgresFixture {
  readonly url: string;
  readonly database: Database;
  readonly layout: TableLayout;
  readonly statements: DialectStatements;
  /** A session of ours; closed with the fixture. */
  session(options?: Partial<SessionOptions>): Promise<Session>;
  /** A plain connection, for what a person or another program does. */
  client(): Promise<pg.Client>;
  drop(): Promise<void>;
}

/** A migrated database; `prepare` runs before the migration. */
export async function postgresFixture(chosen?: TableLayout, prepare: readonly string[] = []): Promise<PostgresFixture> {
  const test = await createTestDatabase("postgres");
  const database = postgres({ url: test.url });
  const layout = chosen ?? database.defaultLayout;
  const open: { close(): Promise<unknown> }[] = [];
  const client = async (): Promise<pg.Client> => {
    const made = new pg.Client({ connectionString: test.url });
    made.on("error", () => undefined);
    await made.connect();
    open.push({ close: () => made.end() });
    return made;
  };
  if (prepare.length > 0) {
    const first = await client();
    for (const sql of prepare) await first.query(sql);
  }
  await migrate(database, { layout });
  return {
    url: test.url,
    database,
    layout,
    statements: createStatements(layout),
    client,
    async session(options = {}) {
      const session = await database.connect({ purpose: "relay", ...options });
      open.push(session);
      return session;
    },
    async drop() {
      for (const each of open) await each.close();
      await database.close();
      await test.drop();
    },
  };
}

/** Resolves once this many backends of the database wait for a lock. */
export async function waitingForLocks(client: pg.Client, count: number): Promise<void> {
  if ((await endsOrWaits(client, count, new Promise(() => {}))) !== "waits") throw new Error("unreachable");
}

/**
 * What comes first: the promise is settled, or this many backends of the database wait for a lock.
 * Throws after 5 s of neither.
 */
export async function endsOrWaits(
  client: pg.Client,
  count: number,
  promise: Promise<unknown>,
): Promise<"ends" | "waits"> {
  let ended = false;
  const end = (): void => {
    ended = true;
  };
  promise.then(end, end);
  for (let look = 0; look < 1_000; look += 1) {
    const { rows } = await client.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    if (ended) return "ends";
    if (rows[0].n >= count) return "waits";
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`${count} connections were to wait for a lock, and did not`);
}
