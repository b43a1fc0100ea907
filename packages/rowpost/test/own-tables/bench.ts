/** Empty databases for tables of somebody's own, with every driver of each server. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createTestDatabase, type DatabaseServiceName, describeWithService, sampled } from "../services.ts";

export interface OwnTablePlace {
  readonly database: Database;
  readonly url: string;
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  close(): Promise<void>;
}

type Driver = readonly [name: string, connect: (url: string) => Database];

export type OpenPlace = () => Promise<OwnTablePlace>;

/** `name`: the server; with its driver where it has several. */
export function describeOnEach(
  title: string,
  define: (open: OpenPlace, on: { readonly name: string; readonly dialect: Database["dialect"] }) => void,
): void {
  const servers = sampled<DatabaseServiceName>(["mariadb", "mysql9", "postgres"], ["mysql8"]);
  describeWithService(servers, title, ({ name }) => {
    const MYSQL2: Driver = ["mysql2", (url) => mysql({ url })];
    const MARIADB: Driver = ["mariadb", (url) => mariadb({ url })];
    const drivers: Readonly<Record<DatabaseServiceName, readonly Driver[]>> = {
      postgres: [["pg", (url) => postgres({ url })]],
      mariadb: [MYSQL2, MARIADB],
      mysql8: sampled([MYSQL2], [MARIADB]),
      mysql9: sampled([MYSQL2], [MARIADB]),
    };
    for (const [driver, connect] of drivers[name]) {
      describe(driver, () => {
        const open = async (): Promise<OwnTablePlace> => {
          const made = await createTestDatabase(name);
          return await placeOf(connect(made.url), made.url, () => made.drop());
        };
        define(open, { name: `${name}, ${driver}`, dialect: name === "postgres" ? "postgres" : "mysql" });
      });
    }
  });
  describe(`${title} (sqlite)`, () => {
    const open = async (): Promise<OwnTablePlace> => {
      const file = join(tmpdir(), `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}.db`);
      return await placeOf(sqlite({ file }), file, async () => {
        for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
      });
    };
    define(open, { name: "sqlite", dialect: "sqlite" });
  });
}

async function placeOf(database: Database, url: string, drop: () => Promise<void>): Promise<OwnTablePlace> {
  const session = await database.connect({ purpose: "tool" });
  return {
    database,
    url,
    sql: async (text) => (await session.run({ name: "test", text, params: [] })).rows,
    async close() {
      await session.close();
      await database.close();
      await drop();
    },
  };
}
