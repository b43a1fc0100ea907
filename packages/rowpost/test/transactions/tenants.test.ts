/**
 * A connection that goes from one database (on PostgreSQL: schema) to another: a statement that the
 * driver keeps prepared would go on writing into the first one.
 */
import { createPool as createMariadbPool } from "mariadb";
import { createPool as createCallbackPool } from "mysql2";
import { createPool } from "mysql2/promise";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import type { Transaction } from "../../src/index.ts";
import { describeWithService } from "../services.ts";
import { targetOf } from "./handles.ts";
import { HANDLES } from "./priced-handles.ts";
import { createTenants, type InTenant, type Tenants } from "./tenants.ts";

describeWithService(["mariadb", "mysql9", "postgres"], "tenants", ({ name: service }) => {
  let tenants: Tenants;
  let database: Database;
  beforeAll(async () => {
    tenants = await createTenants(service);
    const { url } = tenants;
    database = service === "postgres" ? postgres({ url, prepare: true }) : mysql({ url });
  });
  afterAll(async () => {
    await database?.close();
    await tenants?.drop();
  });

  async function expectEachItsOwn(on: Database, inTenant: InTenant): Promise<void> {
    const { expected, found } = await tenants.walk(on, inTenant);
    expect(found).toEqual(expected);
  }

  for (const [name, connect, onMysql, onPostgres] of HANDLES) {
    if ((service === "postgres" ? onPostgres : onMysql) === undefined) continue;
    // MySQL 8 and 9 take no USE as a prepared statement, and Prisma prepares every one.
    if (name === "prisma" && service.startsWith("mysql")) continue;
    test(`${name}: 20 transactions over 4 of them`, async () => {
      const handles = await connect(targetOf(tenants.url, () => {}));
      try {
        await expectEachItsOwn(database, (use, work) =>
          handles.transaction(async (tx) => {
            await database.executor(tx).run({ name: "use", text: use, params: [] });
            await work(tx);
          }),
        );
      } finally {
        await handles.close();
      }
    });
  }

  describe("outbox.transaction", () => {
    const within =
      (on: Database, pool?: unknown): InTenant =>
      (use, work) =>
        on.transaction(async (tx: Transaction) => {
          await tx.query(use);
          await work(tx);
        }, pool);

    test("on rowpost's own pools", async () => {
      await expectEachItsOwn(database, within(database));
      if (service === "postgres") return;
      const { host, port, user, database: name } = targetOf(tenants.url, () => {});
      const other = mariadb({ host, port, user, database: name, allowPublicKeyRetrieval: true });
      await expectEachItsOwn(other, within(other));
      await other.close();
    });

    const address = () => {
      const { database: name, host, port, user } = targetOf(tenants.url, () => {});
      return { host, port, user, database: name, connectionLimit: 2 };
    };
    const untold = { allowPublicKeyRetrieval: true, initSql: "SET session_track_schema = OFF" };
    if (service === "postgres") {
      test("on a pool of pg, on which the user sets search_path beside it", async () => {
        const pool = new pg.Pool({ connectionString: tenants.url, max: 2 });
        const given = postgres({ pool, prepare: true });
        await expectEachItsOwn(given, within(given, pool));
        await pool.end();
      });
      return;
    }
    const pools: readonly (readonly [string, () => { end(): unknown }])[] = [
      ["mysql2", () => createPool(address())],
      ["mysql2 with callbacks", () => createCallbackPool(address())],
      ["mariadb", () => createMariadbPool({ ...address(), allowPublicKeyRetrieval: true })],
      // The driver learns the database from the server, where that tells.
      ["mariadb that is not told of it", () => createMariadbPool({ ...address(), ...untold })],
    ];
    for (const [name, open] of pools) {
      test(`on a pool of ${name}, on which the user sends USE beside it`, async () => {
        const pool = open();
        await expectEachItsOwn(database, within(database, pool));
        await pool.end();
      });
    }
  });
});
