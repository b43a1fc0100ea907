/** Every handle that enqueue takes, on real servers with several connections. */
import pg from "pg";
import { afterAll, beforeAll, beforeEach, vi } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { defineAppendCases } from "./append-cases.ts";
import * as drivers from "./driver-handles.ts";
import { type CasePlace, createTables, defineHandleCases } from "./handle-cases.ts";
import { type Connect, targetOf } from "./handles.ts";
import * as orms from "./orm-handles.ts";
import { defineSettingsCases } from "./settings-cases.ts";

/**
 * A handle and its price: statements of one enqueue. MariaDB checks inside the INSERT that there is
 * a transaction. MySQL 8 and 9 and PostgreSQL cannot, so there it takes one more, on postgres.js in
 * one round trip with the INSERT, and none where the driver knows (pg).
 */
type Priced = readonly [name: string, connect: Connect, onMysql: number | undefined, onPostgres: number | undefined];

const HANDLES: readonly Priced[] = [
  ["mysql2 connection", drivers.mysql2Promise, 2, undefined],
  ["mysql2 connection with callbacks", drivers.mysql2Callback, 2, undefined],
  ["mariadb connection", drivers.mariadbPromise, 2, undefined],
  ["mariadb connection with callbacks", drivers.mariadbCallback, 2, undefined],
  ["pg client", drivers.pgClient, undefined, 1],
  ["postgres.js transaction", drivers.postgresJs, undefined, 2],
  ["postgres.js transaction with camelCase", drivers.postgresJsCamel, undefined, 2],
  ["postgres.js transaction with PascalCase", drivers.postgresJsPascal, undefined, 2],
  ["drizzle", orms.drizzle, 2, 2],
  ["drizzle on postgres.js", orms.drizzleOnPostgresJs, undefined, 2],
  ["kysely", orms.kysely, 2, 2],
  ["kysely with camelCase", orms.kyselyCamelCase, 2, 2],
  ["kysely, controlled", orms.kyselyControlled, 2, 2],
  ["knex", orms.knex, 2, 2],
  ["knex with camelCase", orms.knexCamelCase, 2, 2],
  ["typeorm entity manager", orms.typeormManager, 2, 2],
  ["typeorm query runner", orms.typeormRunner, 2, 2],
  ["mikro-orm", orms.mikroOrm, 2, 2],
  ["sequelize", orms.sequelize, 2, 1],
  ["sequelize on the mariadb driver", orms.sequelizeOnMariadb, 2, undefined],
  ["prisma", orms.prisma, 2, 2],
];

describeWithService(["mariadb", "mysql9", "postgres"], "handles", ({ name: service }) => {
  let test: TestDatabase;
  let database: Database;
  let place: CasePlace;
  /** Statements that went to PostgreSQL; MySQL counts by itself. */
  let sent = 0;
  beforeAll(async () => {
    test = await createTestDatabase(service);
    const { url } = targetOf(test.url, () => {});
    database = service === "postgres" ? postgres({ url }) : mysql({ url });
    await createTables(database);
    const column = (sql: string): Promise<string[]> =>
      database.transaction(async (tx) => {
        const rows = await tx.query<{ value: string }>(sql);
        return rows.map(({ value }) => value);
      });
    const keys = (): Promise<string[]> => column("SELECT message_key AS value FROM local_message");
    place = { database, onlooker: { keys, orders: () => column("SELECT id AS value FROM orders") } };
  });
  afterAll(async () => {
    await database?.close();
    await test?.drop();
  });
  beforeEach(() => {
    if (service !== "postgres") return;
    // Counts what goes through pg, underneath every ORM, and lets it pass.
    const { prototype } = pg.Client;
    const query: unknown = Reflect.get(prototype, "query");
    const counting = vi.spyOn(prototype, "query").mockImplementation(function (this: pg.Client, ...args: unknown[]) {
      sent += 1;
      return Reflect.apply(query as () => void, this, args);
    });
    return () => counting.mockRestore();
  });

  /** The counting counts as one. */
  async function countStatements(tx: unknown): Promise<number> {
    if (service === "postgres") {
      sent += 1;
      return sent;
    }
    const statement = { name: "count", text: "SHOW SESSION STATUS LIKE 'Questions'", params: [] };
    const { rows } = await database.executor(tx).run(statement);
    return Number(rows[0]?.["Value"]);
  }

  for (const [name, connect, onMysql, onPostgres] of HANDLES) {
    const price = service === "postgres" ? onPostgres : onMysql;
    if (price === undefined) continue;
    if (service !== "postgres") {
      defineSettingsCases(name, { place: () => place, open: () => connect(targetOf(test.url, () => {})) });
    }
    defineAppendCases(name, { database: () => database, open: () => connect(targetOf(test.url, () => {})) });
    defineHandleCases(name, {
      place: () => place,
      open: () =>
        connect(
          targetOf(test.url, () => {
            sent += 1;
          }),
        ),
      countStatements,
      statementsPerEnqueue: service === "mariadb" ? 1 : price,
    });
  }
});
