/** The databases that the store contract runs on: each server, each driver, each layout. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { defaultLayout, messageTableLayout, tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import type { StoreFeatures, StoreHarness, UserHandle } from "../contracts/store-contract/harness.ts";
import { createTestDatabase, type DatabaseServiceName } from "../services.ts";

export const LAYOUTS: readonly TableLayout[] = [defaultLayout, tLocalMessageLayout, messageTableLayout];

/** A driver of the MySQL family. */
export type MysqlDriver = "mysql2" | "mariadb";

/** An empty database on a server of the MySQL family. */
export async function mysqlHarness(
  service: Exclude<DatabaseServiceName, "postgres">,
  driver: MysqlDriver,
  layout: TableLayout,
): Promise<StoreHarness> {
  const database = await createTestDatabase(service);
  const { url } = database;
  return {
    name: `${service} (${driver}), ${layout.name}`,
    layout,
    features: {
      ...SERVER_FEATURES,
      // The seeds' tables have the server's own collation.
      comparesBytes: layout.name === "default",
      nullableCounts: layout.name === "message_table",
    },
    createDatabase: () => (driver === "mysql2" ? mysql({ url }) : mariadb({ url })),
    createUserHandle: () => (driver === "mysql2" ? mysql2Handle(url) : mariadbHandle(url)),
    close: () => database.drop(),
  };
}

/** An empty database on PostgreSQL. */
export async function postgresHarness(layout: TableLayout): Promise<StoreHarness> {
  const database = await createTestDatabase("postgres");
  const { url } = database;
  return {
    name: `postgres, ${layout.name}`,
    layout,
    features: { ...SERVER_FEATURES, notifies: true },
    createDatabase: () => postgres({ url }),
    async createUserHandle() {
      const { default: pg } = await import("pg");
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      return { handle: client, close: () => client.end() };
    },
    close: () => database.drop(),
  };
}

/** A new SQLite file, or a database in memory. */
export function sqliteHarness(where: "file" | "memory", layout: TableLayout): StoreHarness {
  const file =
    where === "memory"
      ? ":memory:"
      : join(tmpdir(), `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}.db`);
  let inMemory: Database | undefined;
  return {
    name: `sqlite (${where}), ${layout.name}`,
    layout,
    features: { ...SERVER_FEATURES, rowLocks: false, runsUnmarked: false },
    createDatabase() {
      if (where === "file") return sqlite({ file });
      inMemory ??= sqlite({ file });
      return inMemory;
    },
    async close() {
      if (where === "memory") return;
      for (const end of ["", "-wal", "-shm"]) await rm(`${file}${end}`, { force: true });
    },
  };
}

const SERVER_FEATURES: StoreFeatures = {
  rowLocks: true,
  comparesBytes: true,
  nullableCounts: false,
  notifies: false,
  runsUnmarked: true,
  takesUnknownStates: true,
};

async function mysql2Handle(url: string): Promise<UserHandle> {
  const { createConnection } = await import("mysql2/promise");
  const connection = await createConnection({ uri: url.replace(/^mariadb:/, "mysql:") });
  return { handle: connection, close: () => connection.end() };
}

async function mariadbHandle(url: string): Promise<UserHandle> {
  const { createConnection } = await import("mariadb");
  const connection = await createConnection(url.replace(/^mysql:/, "mariadb:"));
  return { handle: connection, close: () => connection.end() };
}
