/** Location of the demo's tables: a SQLite file in a temporary folder, or the given database. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "rowpost";
import {
  checkSqliteFile,
  type DatabaseAddress,
  explainDatabaseError,
  isMissingDatabase,
  openDatabase,
  parseDatabaseUrl,
} from "../database-url.ts";

export interface DemoPlace {
  readonly database: Database;
  readonly address: DatabaseAddress;
  /** Closes the database, and removes the temporary folder unless it is kept. */
  close(): Promise<void>;
}

export async function temporaryPlace(keep: boolean): Promise<DemoPlace> {
  const folder = await mkdtemp(join(tmpdir(), "rowpost-demo-"));
  const address = parseDatabaseUrl(`sqlite:${join(folder, "demo.db")}`, {});
  const database = await openDatabase(address);
  return {
    database,
    address,
    async close() {
      await database.close();
      if (!keep) await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function namedPlace(address: DatabaseAddress, say: (text: string) => void): Promise<DemoPlace> {
  checkSqliteFile(address, true);
  if (address.engine !== "sqlite" && (await isMissing(address))) {
    say(`making the database ${address.name} …`);
    await createDatabase(address);
  }
  const database = await openDatabase(address);
  return { database, address, close: () => database.close() };
}

async function isMissing(address: DatabaseAddress): Promise<boolean> {
  const database = await openDatabase(address);
  try {
    const session = await database.connect({ purpose: "tool" });
    await session.close();
    return false;
  } catch (error) {
    if (isMissingDatabase(error)) return true;
    throw explainDatabaseError(error, address);
  } finally {
    await database.close();
  }
}

/** Connects to the server's own database: `postgres` there, none on MySQL. */
async function createDatabase(address: DatabaseAddress): Promise<void> {
  const isPostgres = address.engine === "postgres";
  const url = new URL(address.url);
  url.pathname = isPostgres ? "/postgres" : "/";
  const database = await openDatabase({ ...address, url: url.href });
  try {
    const session = await database.connect({ purpose: "tool" });
    try {
      const text = isPostgres
        ? `CREATE DATABASE "${address.name.replaceAll('"', '""')}" ENCODING 'UTF8' TEMPLATE template0`
        : `CREATE DATABASE IF NOT EXISTS \`${address.name.replaceAll("`", "``")}\` CHARACTER SET utf8mb4`;
      await session.run({ name: "demoCreateDatabase", text, params: [] });
    } finally {
      await session.close();
    }
  } catch (error) {
    throw explainDatabaseError(error, address);
  } finally {
    await database.close();
  }
}
