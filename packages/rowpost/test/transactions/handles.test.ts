/** Every handle that enqueue takes, on real servers with several connections. */
import pg from "pg";
import { afterAll, beforeAll, beforeEach, vi } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { defineAppendCases } from "./append-cases.ts";
import { type CasePlace, createTables, defineHandleCases } from "./handle-cases.ts";
import { targetOf } from "./handles.ts";
import { HANDLES } from "./priced-handles.ts";
import { defineSettingsCases } from "./settings-cases.ts";

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
