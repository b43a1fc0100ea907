/**
 * Behind PgBouncer. In transaction mode, where each transaction may run on another connection of
 * the server, messages can be enqueued, and a relay is refused before it has changed anything. In
 * session mode everything works.
 */
import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pg from "pg";
import createSql from "postgres";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { ConfigurationError, createOutbox, createRelay } from "../../src/index.ts";
import { freePort } from "../brokers/redis-server.ts";
import { describeWithService, testService } from "../services.ts";
import { type PostgresFixture, postgresFixture } from "./postgres-setup.ts";

const script = fileURLToPath(new URL("../../../../tools/services/pgbouncer", import.meta.url));

/** The same database by another address. */
function through(fixture: PostgresFixture, host: string): string {
  return Object.assign(new URL(fixture.url), { host }).href;
}

describeWithService("pgbouncer", "in transaction mode", () => {
  let fixture: PostgresFixture;
  let pool: pg.Pool;
  let url: string;
  beforeAll(async () => {
    fixture = await postgresFixture();
    url = through(fixture, new URL(testService("pgbouncer").address).host);
    pool = new pg.Pool({ connectionString: url, max: 8 });
    await pool.query("CREATE TABLE orders (id text PRIMARY KEY)");
  });
  beforeEach(async () => {
    await pool.query("DELETE FROM local_message; DELETE FROM orders");
  });
  afterAll(async () => {
    await pool?.end();
    await fixture?.drop();
  });

  test("a relay and a tool are refused with the way out, and leave no setting on the application's connections", async () => {
    const database = postgres({ pool });
    const relay = createRelay({ database, broker: memory() });
    await expect(relay.start()).rejects.toThrow(ConfigurationError);
    await relay.stop();
    await expect(database.connect({ purpose: "tool" })).rejects.toThrow(
      /transaction mode.*address of the server itself/,
    );
    const clients = await Promise.all(Array.from({ length: 8 }, () => pool.connect()));
    // All at once in transactions: each has a connection of the server, those of before among them.
    for (const client of clients) await client.query("BEGIN");
    for (const client of clients) {
      const { rows } = await client.query(
        "SELECT name FROM pg_settings WHERE source = 'session' AND name NOT IN ('client_encoding', 'application_name', 'DateStyle', 'TimeZone', 'standard_conforming_strings')",
      );
      expect(rows).toEqual([]);
    }
    for (const client of clients) {
      await client.query("ROLLBACK");
      client.release();
    }
  });

  test("it is refused each time, also while other clients take and give back connections", async () => {
    let busy = true;
    const others = Array.from({ length: 6 }, async () => {
      while (busy) await pool.query("SELECT 1");
    });
    for (let opened = 0; opened < 20; opened += 1) {
      const database = postgres({ url });
      await expect(database.connect({ purpose: "lease" })).rejects.toThrow(ConfigurationError);
      await database.close();
    }
    busy = false;
    await Promise.all(others);
  });

  test("messages are enqueued through it, in their transactions, and a relay with the server's address sends them", async () => {
    const outbox = createOutbox({ database: postgres({ pool }) });
    const broker = memory();
    const relay = createRelay({ database: fixture.database, broker });
    const sql = createSql(url, { max: 4, prepare: false, onnotice: () => {} });
    await relay.start();
    const enqueued = await Promise.allSettled(
      Array.from({ length: 100 }, async (_, n) => {
        await outbox.transaction(n % 2 === 0 ? pool : sql, async (tx) => {
          await tx.query("INSERT INTO orders VALUES ($1)", [`${n}`]);
          await outbox.enqueue(tx, { type: "order", key: `${n}`, topic: "orders", body: { n } });
          if (n % 5 === 0) throw new Error("no");
        });
      }),
    );
    await sql.end();
    expect(enqueued.filter(({ status }) => status === "fulfilled")).toHaveLength(80);
    const published = await broker.waitFor(80);
    await relay.stop();
    const { rows } = await pool.query<{ id: string }>("SELECT id FROM orders");
    expect(published.map(({ key }) => key).sort()).toEqual(rows.map(({ id }) => id).sort());
  });
});

describeWithService("pgbouncer", "in session mode", () => {
  let fixture: PostgresFixture;
  let port: number;
  let run: (verb: string) => Promise<unknown>;
  beforeAll(async () => {
    fixture = await postgresFixture();
    port = await freePort();
    const data = await mkdtemp(path.join(tmpdir(), "rowpost-test-pgbouncer-"));
    const env = {
      ...process.env,
      PGBOUNCER_PORT: `${port}`,
      PGBOUNCER_DATA: data,
      PGBOUNCER_POOL_MODE: "session",
    };
    run = (verb) => promisify(execFile)(script, [verb], { env, timeout: 60_000 });
    await run("start");
  });
  afterAll(async () => {
    await run?.("reset");
    await fixture?.drop();
  });

  test("a relay works, and its sessions keep their settings", async () => {
    const database = postgres({ url: through(fixture, `127.0.0.1:${port}`) });
    const broker = memory();
    const relay = createRelay({ database, broker });
    await relay.start();
    const outbox = createOutbox({ database });
    await outbox.transaction((tx) => outbox.enqueue(tx, { type: "order", key: "1", topic: "orders", body: {} }));
    await broker.waitFor(1);
    const session = await database.connect({ purpose: "relay", statementTimeoutMs: 12_345 });
    const { rows } = await session.run({ name: "test", text: "SHOW statement_timeout", params: [] });
    expect(rows).toEqual([{ statement_timeout: "12345ms" }]);
    await session.close();
    expect(await relay.stop()).toEqual({ drained: true, unsettled: 0 });
    await database.close();
  });
});
