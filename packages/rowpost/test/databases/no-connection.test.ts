/** `outbox.transaction` on an application's pool that gives no connection. */
import { createPool as createMariadbPool } from "mariadb";
import { createPool } from "mysql2";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";

interface Pooled {
  readonly database: Database;
  readonly end: () => Promise<unknown>;
}
type Pools = Readonly<Record<string, (url: URL) => Pooled>>;

/** Of one connection, and soon at the end of their patience. */
const OF_MYSQL: Pools = {
  mysql2(url) {
    const pool = createPool({ uri: url.href, connectionLimit: 1, waitForConnections: false });
    return { database: mysql({ pool }), end: () => pool.promise().end() };
  },
  mariadb(url) {
    const address = { host: url.hostname, port: Number(url.port), user: url.username, allowPublicKeyRetrieval: true };
    const pool = createMariadbPool({ ...address, connectionLimit: 1, acquireTimeout: 300 });
    return { database: mariadb({ pool }), end: () => pool.end() };
  },
};
const OF_POSTGRES: Pools = {
  pg(url) {
    const pool = new pg.Pool({ connectionString: url.href, max: 1, connectionTimeoutMillis: 300 });
    return { database: postgres({ pool }), end: () => pool.end() };
  },
};

describeWithService(["mariadb", "mysql9", "postgres"], "a pool without a connection", ({ name }) => {
  let place: TestDatabase;
  beforeAll(async () => {
    place = await createTestDatabase(name);
  });
  afterAll(() => place?.drop());

  for (const [driver, make] of Object.entries(name === "postgres" ? OF_POSTGRES : OF_MYSQL)) {
    function open(change: (url: URL) => void): Database {
      const address = new URL(place.url);
      change(address);
      const { database, end } = make(address);
      onTestFinished(async () => {
        await end();
      });
      return database;
    }

    test(`${driver}: no server`, async () => {
      const outbox = createOutbox({
        database: open((address) => {
          address.port = "1";
        }),
      });
      const failure = outbox.transaction(async () => undefined);
      await expect(failure).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retriable: true });
    });

    test(`${driver}: all are taken`, async () => {
      const outbox = createOutbox({ database: open(() => undefined) });
      await outbox.transaction(async () => {
        const failure = outbox.transaction(async () => undefined);
        await expect(failure).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retriable: true });
      });
    });

    test(`${driver}: what the work throws is the caller's`, async () => {
      const error = Object.assign(new Error("mine"), { code: "ECONNREFUSED" });
      const outbox = createOutbox({ database: open(() => undefined) });
      await expect(outbox.transaction(() => Promise.reject(error))).rejects.toBe(error);
    });
  }
});
