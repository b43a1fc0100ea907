/** Calls whose transaction ends beside them: an `await` was forgotten (rule: ended-transaction). */
import mysql2 from "mysql2/promise";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createOutbox, migrate, type NewMessage } from "../../src/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";

const messages = (count: number): NewMessage[] =>
  Array.from({ length: count }, (_, index) => ({ type: "t", key: `k${index}`, topic: "x", body: { index } }));

describeWithService("postgres", "an enqueue with pg behind the end of its transaction", () => {
  let made: TestDatabase;
  let pool: pg.Pool;

  beforeEach(async () => {
    made = await createTestDatabase("postgres");
    pool = new pg.Pool({ connectionString: made.url });
  });
  afterEach(async () => {
    await pool.end();
    await made.drop();
  });

  test.each(["ROLLBACK", "COMMIT"])("writes nothing behind a %s that nobody awaits", async (end) => {
    const database = postgres({ pool });
    await migrate(database, { layout: database.defaultLayout });
    const outbox = createOutbox({ database });
    const client = await pool.connect();
    await client.query("BEGIN");
    const ending = client.query(end);
    const [message] = messages(1);
    await expect(outbox.enqueue(client, message as NewMessage)).rejects.toMatchObject({ code: "TRANSACTION_REQUIRED" });
    await ending;
    client.release();
    expect((await pool.query("SELECT 1 FROM local_message")).rowCount).toBe(0);
    await database.close();
  });
});

describeWithService(["mariadb", "mysql8", "mysql9"], "the first enqueue on a connection of mysql2", (service) => {
  let made: TestDatabase;
  let pool: mysql2.Pool;

  beforeEach(async () => {
    made = await createTestDatabase(service.name);
    pool = mysql2.createPool({ uri: made.url.replace(/^mariadb:/, "mysql:") });
  });
  afterEach(async () => {
    await pool.end();
    await made.drop();
  });

  // The connection is looked at first, so that the INSERT comes behind what the program sends. A
  // lenient session has the INSERT repeated.
  test.each([
    [1, "STRICT_TRANS_TABLES"],
    [3, "STRICT_TRANS_TABLES"],
    [1, ""],
    [3, ""],
  ])("leaves nothing in the next transaction, of %s at once, sql_mode '%s'", async (count, mode) => {
    const database = mysql({ pool });
    await migrate(database, { layout: database.defaultLayout });
    const outbox = createOutbox({ database });
    for (const onDuplicate of ["throw", "ignore"] as const) {
      const client = await mysql2.createConnection(made.url.replace(/^mariadb:/, "mysql:"));
      await client.query(`SET SESSION sql_mode = '${mode}'`);
      await client.query("BEGIN");
      const enqueue = outbox.enqueue(client, messages(count), { onDuplicate });
      const refused = expect(enqueue).rejects.toMatchObject({ code: "TRANSACTION_REQUIRED" });
      await Promise.all([client.query("ROLLBACK"), client.query("BEGIN"), refused]);
      await client.query("COMMIT");
      await client.end();
      expect((await pool.query("SELECT 1 FROM local_message"))[0]).toEqual([]);
    }
    await database.close();
  });
});

describeWithService(["mariadb", "mysql9"], "an enqueue of several statements", (service) => {
  test("leaves what was committed between two of them, and says so", async () => {
    const made = await createTestDatabase(service.name);
    const pool = mysql2.createPool({ uri: made.url.replace(/^mariadb:/, "mysql:") });
    const database = mysql({ pool });
    try {
      await migrate(database, { layout: database.defaultLayout });
      const connection = await pool.getConnection();
      await connection.beginTransaction();
      const enqueue = createOutbox({ database }).enqueue(commitBehindFirst(connection), messages(1_500));
      await expect(enqueue).rejects.toMatchObject({
        code: "TRANSACTION_REQUIRED",
        message: expect.stringContaining("The first 1000 went the way of that transaction"),
      });
      await connection.commit();
      connection.release();
      const [rows] = await pool.query("SELECT COUNT(*) AS n FROM local_message");
      expect(rows).toEqual([{ n: 1_000 }]);
    } finally {
      await database.close();
      await pool.end();
      await made.drop();
    }
  });
});

/** The connection, with a COMMIT behind the first INSERT, and a BEGIN behind the second. */
function commitBehindFirst(connection: mysql2.PoolConnection): mysql2.PoolConnection {
  let inserts = 0;
  const core = connection.connection as unknown as Record<"query" | "execute", (...args: unknown[]) => unknown>;
  for (const name of ["query", "execute"] as const) {
    const send = core[name].bind(core);
    core[name] = (...args) => {
      const sent = send(...args);
      const [first] = args as [{ readonly sql?: string } | string];
      const text = typeof first === "string" ? first : (first.sql ?? "");
      if (/^\s*INSERT/i.test(text)) {
        inserts += 1;
        if (inserts === 1) send("COMMIT");
        // What comes now would be in another transaction.
        if (inserts === 2) send("BEGIN");
      }
      return sent;
    };
  }
  return connection;
}
