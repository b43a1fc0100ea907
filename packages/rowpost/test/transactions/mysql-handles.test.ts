/** Every handle of the MySQL family, on real servers with several connections. */
import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll } from "vitest";
import { mysql } from "../../src/databases/mysql/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { type CasePlace, createTables, defineHandleCases } from "./handle-cases.ts";
import { MYSQL_HANDLES } from "./mysql-handles.ts";

/**
 * Statements of one enqueue on MySQL 8 and 9, which cannot check inside the INSERT that there is a transaction: one more to ask for the status, two
 * where the handle hides the status (a savepoint and its release); the mariadb driver asks with a ping, which the server does not count.
 */
const STATEMENTS_ON_MYSQL: Readonly<Record<string, number>> = {
  kysely: 3,
  "mariadb connection": 1,
  "mariadb connection with callbacks": 1,
  "sequelize on mariadb": 1,
};

describeWithService(["mariadb", "mysql9"], "handles of the MySQL family", ({ name: service }) => {
  let test: TestDatabase;
  let place: CasePlace;
  beforeAll(async () => {
    test = await createTestDatabase(service);
    const url = test.url.replace(/^mariadb:/, "mysql:");
    const database = mysql({ url });
    await createTables(database);
    const other = await createConnection({ uri: url });
    const column = async (sql: string): Promise<string[]> => {
      const [rows] = await other.query(sql);
      return (rows as { value: string }[]).map(({ value }) => value);
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

  for (const [name, open] of Object.entries(MYSQL_HANDLES)) {
    defineHandleCases(name, {
      place: () => place,
      open: () => open(test.url),
      async countStatements({ database }, tx) {
        const statement = { name: "count", text: "SHOW SESSION STATUS LIKE 'Questions'", params: [] };
        const { rows } = await database.executor(tx).run(statement);
        return Number(rows[0]?.["Value"]);
      },
      statementsPerEnqueue: service === "mariadb" ? 1 : (STATEMENTS_ON_MYSQL[name] ?? 2),
    });
  }
});
