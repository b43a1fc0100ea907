/** Every transaction handle that enqueue takes, on real servers with several connections. */
import { afterAll, beforeAll } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import * as drivers from "../transactions/driver-handles.ts";
import { createTables } from "../transactions/handle-cases.ts";
import { type Connect, targetOf } from "../transactions/handles.ts";
import * as orms from "../transactions/orm-handles.ts";
import { defineInboxHandleCases, type InboxPlace } from "./handle-cases.ts";

const { mysql2Promise, mysql2Callback, mariadbPromise, mariadbCallback } = drivers;
const { pgClient, postgresJs, postgresJsCamel, postgresJsPascal } = drivers;
const { drizzleOnPostgresJs, sequelizeOnMariadb, ...everywhere } = orms;
const MYSQL = { mysql2Promise, mysql2Callback, mariadbPromise, mariadbCallback, sequelizeOnMariadb };
const POSTGRES = { pgClient, postgresJs, postgresJsCamel, postgresJsPascal, drizzleOnPostgresJs };

describeWithService(["mariadb", "mysql9", "postgres"], "inbox in handles", ({ name: service }) => {
  let test: TestDatabase;
  let database: Database;
  let place: InboxPlace;
  beforeAll(async () => {
    test = await createTestDatabase(service);
    const { url } = targetOf(test.url, () => {});
    database = service === "postgres" ? postgres({ url }) : mysql({ url });
    await createTables(database);
    await createInbox({ database }).migrate();
    const column = (sql: string): Promise<string[]> =>
      database.transaction(async (tx) => (await tx.query<{ value: string }>(sql)).map(({ value }) => value));
    place = {
      database,
      keys: () => column("SELECT message_key AS value FROM message_inbox"),
      orders: () => column("SELECT id AS value FROM orders"),
    };
  });
  afterAll(async () => {
    await database?.close();
    await test?.drop();
  });

  const handles: Readonly<Record<string, Connect>> = { ...(service === "postgres" ? POSTGRES : MYSQL), ...everywhere };
  for (const [name, connect] of Object.entries(handles)) {
    defineInboxHandleCases(name, { place: () => place, open: () => connect(targetOf(test.url, () => {})) });
  }
});
