/** Every PostgreSQL handle, on a real server with several connections. */
import pg from "pg";
import { afterAll, beforeAll, beforeEach, vi } from "vitest";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { type CasePlace, createTables, defineHandleCases } from "./handle-cases.ts";
import { POSTGRES_HANDLES } from "./postgres-handles.ts";

/** pg tells by itself whether it is in a transaction; all else asks with one statement, because PostgreSQL's INSERT cannot check it. */
const FREE: ReadonlySet<string> = new Set(["pg client", "sequelize"]);

describeWithService("postgres", "handles of PostgreSQL", () => {
  let test: TestDatabase;
  let place: CasePlace;
  let sent = 0;
  beforeAll(async () => {
    test = await createTestDatabase("postgres");
    const database = postgres({ url: test.url });
    await createTables(database);
    const other = new pg.Client({ connectionString: test.url });
    await other.connect();
    const column = async (sql: string): Promise<string[]> => {
      const { rows } = await other.query<{ value: string }>(sql);
      return rows.map(({ value }) => value);
    };
    place = {
      database,
      onlooker: {
        keys: () => column("SELECT message_key AS value FROM local_message"),
        orders: () => column("SELECT id AS value FROM orders"),
        close: () => other.end(),
      },
    };
  });
  afterAll(async () => {
    await place?.onlooker.close();
    await place?.database.close();
    await test?.drop();
  });
  beforeEach(() => {
    // Counts what goes through pg, underneath every ORM, and lets it pass.
    const query = pg.Client.prototype.query;
    const counting = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
      this: pg.Client,
      ...args: unknown[]
    ) {
      sent += 1;
      return Reflect.apply(query, this, args);
    });
    return () => counting.mockRestore();
  });

  for (const [name, open] of Object.entries(POSTGRES_HANDLES)) {
    defineHandleCases(name, {
      place: () => place,
      open: () =>
        open(test.url, () => {
          sent += 1;
        }),
      // The counting counts as one, because where a server counts it is one.
      countStatements: async () => (sent += 1),
      statementsPerEnqueue: FREE.has(name) ? 1 : 2,
    });
  }
});
