/**
 * Sessions, sources of connections, and LISTEN on PostgreSQL: settings, time-outs, proof of death,
 * reconnection.
 */
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { channelOf } from "../../src/databases/postgres/enqueue.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createOutbox } from "../../src/index.ts";
import { createTcpProxy } from "../../src/testing/tcp-proxy.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import { describeWithService } from "../services.ts";
import { type PostgresFixture, postgresFixture, waitingForLocks } from "./postgres-setup.ts";
import { sampleMessage } from "./statement-samples.ts";

const sql = (text: string, params: readonly unknown[] = []): Statement => ({ name: "test", text, params });

describeWithService("postgres", "session", () => {
  let fixture: PostgresFixture;
  beforeAll(async () => {
    fixture = await postgresFixture(undefined, [
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''serializable''', current_database());
EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Shanghai''', current_database());
EXECUTE format('ALTER DATABASE %I SET array_nulls = off', current_database());
EXECUTE format('ALTER DATABASE %I SET datestyle = ''German''', current_database()); END $$`,
    ]);
  });
  afterAll(() => fixture.drop());

  test("means the same whatever the database's defaults and the program's type parsers are", async () => {
    const parsers = [20, 1184].map((oid) => [oid, pg.types.getTypeParser(oid)] as const);
    for (const [oid] of parsers) pg.types.setTypeParser(oid, () => "changed by the program");
    try {
      const session = await fixture.session();
      expect(session.server).toMatchObject({ product: "postgres" });
      const { rows } = await session.run(
        sql(
          "SELECT current_setting('transaction_isolation') AS isolation, $1::bigint AS big, timestamptz '2026-01-02T03:04:05Z' AS at, 7 AS small",
          ["9007199254740993"],
        ),
      );
      expect(rows).toEqual([
        { isolation: "read committed", big: "9007199254740993", at: "2026-01-02 03:04:05+00", small: 7 },
      ]);
    } finally {
      for (const [oid, parser] of parsers) pg.types.setTypeParser(oid, parser);
    }
  });

  test("under array_nulls = off NULL stays NULL, in a session and in an enqueue of one or two", async () => {
    const session = await fixture.session();
    const { rows } = await session.run(sql("SELECT ($1::text[])[1] IS NULL AS none", [[null]]));
    expect(String(rows[0]?.["none"])).toMatch(/^t/);
    const client = new pg.Client({ connectionString: fixture.url });
    await client.connect();
    try {
      const outbox = createOutbox({ database: fixture.database });
      const messages = ["a", "b", "c"].map((key) => ({ type: "order.created", key, topic: "orders", body: "" }));
      await client.query("BEGIN");
      await outbox.enqueue(client, messages.slice(0, 1));
      await outbox.enqueue(client, messages.slice(1));
      const found = await client.query("SELECT headers, ordering_key FROM local_message ORDER BY id");
      expect(found.rows).toEqual(messages.map(() => ({ headers: null, ordering_key: null })));
      await client.query("ROLLBACK");
    } finally {
      await client.end();
    }
  });

  test("counts matched rows, prepares a text once, and serves two layouts with statements of one name", async () => {
    const session = await fixture.session();
    for (const value of [1, 2]) {
      await session.run({ name: "same", text: "SELECT $1::int AS a", params: [value] });
      await session.run({ name: "same", text: "SELECT $1::int AS b", params: [value] });
    }
    const { rows } = await session.run(
      sql("SELECT count(*)::int AS n FROM pg_prepared_statements WHERE statement LIKE 'SELECT $1::int AS _'"),
    );
    expect(rows).toEqual([{ n: 2 }]);
    const { affected } = await session.run(sql("UPDATE local_message_shard SET epoch = epoch"));
    expect(affected).toBe(0);
  });

  test("a statement over its time fails as unavailable, and the session is dead", async () => {
    const session = await fixture.session({ statementTimeoutMs: 200 });
    await expect(session.run(sql("SELECT pg_sleep(20)"))).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    expect(session.dead).toBe(true);
    await expect(session.run(sql("SELECT 1"))).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  });

  test("a wait for a row lock ends after its own time, undoes the statement, and leaves the session usable", async () => {
    const holder = await fixture.client();
    await holder.query("BEGIN");
    await holder.query("LOCK TABLE local_message_relay");
    const session = await fixture.session({ lockWaitTimeoutMs: 100 });
    await expect(session.run(sql("DELETE FROM local_message_relay"))).rejects.toMatchObject({
      code: "DATABASE_CONFLICT",
      retriable: true,
    });
    await holder.query("ROLLBACK");
    expect(session.dead).toBe(false);
    await session.run(sql("DELETE FROM local_message_relay"));
  });

  test("a missing table is named, with the command that helps", async () => {
    const session = await fixture.session();
    await expect(session.run(sql("SELECT * FROM no_such_table"))).rejects.toThrow(/no_such_table.*rowpost migrate/);
  });

  test("a transaction in which a statement failed runs nothing more and is not taken for committed (rule: ended-transaction)", async () => {
    const session = await fixture.session();
    await session.run(sql("CREATE TABLE IF NOT EXISTS kept (a int PRIMARY KEY)"));
    const work = session.transaction(async (tx) => {
      await tx.run(sql("INSERT INTO kept VALUES (1)"));
      await tx.run(sql("INSERT INTO kept VALUES (1)")).catch(() => undefined);
      await expect(tx.run(sql("INSERT INTO kept VALUES (2)"))).rejects.toMatchObject({ code: "TRANSACTION_LOST" });
    });
    await expect(work).rejects.toMatchObject({ code: "TRANSACTION_LOST" });
    // The server's own answer to COMMIT is ROLLBACK here, without an error: the other half of the
    // rule.
    const plain = await fixture.client();
    await plain.query("BEGIN");
    await plain.query("SELECT 1/0").catch(() => undefined);
    expect((await plain.query("COMMIT")).command).toBe("ROLLBACK");
    expect((await session.run(sql("SELECT * FROM kept"))).rows).toEqual([]);
  });

  test("transactions and statements of one session take turns", async () => {
    const session = await fixture.session();
    const order: string[] = [];
    await Promise.all([
      session.transaction(async (tx) => {
        await tx.run(sql("SELECT pg_sleep(0.05)"));
        order.push("transaction");
      }),
      session.run(sql("SELECT 1")).then(() => order.push("statement")),
    ]);
    expect(order).toEqual(["transaction", "statement"]);
  });

  test("a server that falls silent is given up after the time-out, and its late statement cannot take effect after abandon", async () => {
    const plain = await fixture.client();
    await plain.query("CREATE TABLE silent AS SELECT 0 AS a");
    const server = new URL(fixture.url);
    const target = { host: server.hostname, port: server.port === "" ? 5432 : Number(server.port) };
    const proxy = await createTcpProxy({ target });
    const url = Object.assign(server, { hostname: proxy.host, port: String(proxy.port) }).href;
    const database = postgres({ url });
    try {
      const session = await database.connect({ purpose: "relay", statementTimeoutMs: 300, lockWaitTimeoutMs: 20_000 });
      // The server would give up by itself after the statement's time; this is about one whose
      // answer does not come.
      await session.run(sql("SET statement_timeout = 0"));
      await plain.query("BEGIN");
      await plain.query("UPDATE silent SET a = 0");
      const late = session.run(sql("UPDATE silent SET a = 1"));
      late.catch(() => undefined);
      const watcher = await fixture.client();
      await waitingForLocks(watcher, 1);
      proxy.mute("toClient");
      await expect(late).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
      expect(session.dead).toBe(true);
      proxy.unmute();
      // The server does not know yet: its statement still waits, and would take effect as soon as
      // the row is free.
      await waitingForLocks(watcher, 1);
      await session.abandon();
      await plain.query("COMMIT");
      expect((await plain.query("SELECT a FROM silent")).rows).toEqual([{ a: 0 }]);
    } finally {
      await database.close();
      await proxy.close();
    }
  });

  test("with the user's pool, sessions are connections of our own and the pool stays as it was", async () => {
    const pool = new pg.Pool({ connectionString: fixture.url, max: 1 });
    const database = postgres({ pool });
    const held = await pool.connect();
    // The only connection of the pool is taken: a session from the pool would wait forever.
    const session = await database.connect({ purpose: "relay" });
    expect((await session.run(sql("SELECT current_setting('application_name') AS name"))).rows).toEqual([
      { name: "rowpost relay" },
    ]);
    await session.close();
    held.release();
    await database.close();
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });

  test("options that fit nothing are refused with what to write instead", async () => {
    const pool = new pg.Pool({});
    expect(() => postgres({})).toThrow(/exactly one of pool, url, options/);
    expect(() => postgres({ pool, url: "postgres://localhost/x" })).toThrow(/exactly one/);
    expect(() => postgres({ url: "mysql://localhost/x" })).toThrow(/must begin with postgres:/);
    await pool.end();
    expect(postgres({ url: "postgres://somebody:secret@db.example:6543/orders" }).label).toBe(
      "postgres://db.example:6543/orders",
    );
    await expect(postgres({ url: "postgres://127.0.0.1:1/none" }).connect({ purpose: "tool" })).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
    });
  });
});

describeWithService("postgres", "listen", () => {
  let fixture: PostgresFixture;
  let user: pg.Client;
  beforeAll(async () => {
    fixture = await postgresFixture();
    user = await fixture.client();
  });
  afterAll(() => fixture.drop());

  const enqueue = async (key: string, client: pg.Client = user): Promise<void> => {
    const { text, params } = fixture.statements.enqueue.insert([
      sampleMessage({ key }),
      sampleMessage({ key: `${key} too` }),
    ]);
    await client.query(text, [...params]);
  };

  /** A listener on a Database object of its own, as in another process. */
  async function listener(): Promise<{ rings: number; ring(): Promise<void>; close(): Promise<void> }> {
    const database = postgres({ url: fixture.url });
    let waiting: (() => void) | undefined;
    const state = {
      rings: 0,
      /** Resolves at the next ring. */
      ring: () =>
        new Promise<void>((resolve) => {
          waiting = resolve;
        }),
      async close() {
        await listening?.close();
        await database.close();
      },
    };
    database.doorbell.subscribe(() => {
      state.rings += 1;
      waiting?.();
    });
    const listening = await database.listen(fixture.layout);
    return state;
  }

  test("one ring for each transaction, at its commit, however many messages it holds", async () => {
    const bell = await listener();
    expect(bell.rings, "once when it begins to listen").toBe(1);
    await user.query("BEGIN");
    await enqueue("1");
    await enqueue("2");
    const rung = bell.ring();
    await user.query("COMMIT");
    await rung;
    await user.query("BEGIN");
    await enqueue("rolled back");
    await user.query("ROLLBACK");
    const next = bell.ring();
    await enqueue("3");
    await next;
    expect(bell.rings).toBe(3);
    await bell.close();
  });

  test("a transaction that stays open silences no later one", async () => {
    const bell = await listener();
    const slow = await fixture.client();
    await slow.query("BEGIN");
    await enqueue("slow", slow);
    // Those that begin within the same 50 ms may be silent; so another one, until it is heard.
    let heard = false;
    const rung = bell.ring().then(() => {
      heard = true;
    });
    for (let n = 0; !heard; n += 1) await enqueue(`later ${n}`);
    await rung;
    await slow.query("ROLLBACK");
    await bell.close();
  });

  test("a transaction holds one lock however long it enqueues, and rings after a savepoint that it went back to", async () => {
    const bell = await listener();
    const slow = await fixture.client();
    await slow.query("BEGIN");
    // The lock's window is 50 ms wide: four calls in four of them.
    for (const n of [1, 2, 3, 4]) {
      await slow.query("SAVEPOINT before");
      await enqueue(`long ${n}`, slow);
      if (n < 3) await slow.query("ROLLBACK TO before");
      await slow.query("SELECT pg_sleep(0.06)");
    }
    const { rows } = await slow.query(
      "SELECT count(*)::int AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    );
    expect(rows).toEqual([{ locks: 1 }]);
    const rung = bell.ring();
    await slow.query("COMMIT");
    await rung;
    expect(bell.rings).toBe(2);
    await bell.close();
  });

  test("connects again after a loss, and rings then, because something may have been missed", async () => {
    const bell = await listener();
    const again = bell.ring();
    await user.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rowpost listen' AND datname = current_database()",
    );
    await again;
    const rung = bell.ring();
    await enqueue("after the loss");
    await rung;
    await bell.close();
    const { rows } = await user.query(
      "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rowpost listen' AND datname = current_database()",
    );
    expect(rows).toEqual([]);
  });

  test("channels differ by table, and fit PostgreSQL's 63 bytes", () => {
    const tables = ["a", "b", "x".repeat(63), `${"x".repeat(62)}y`, "表".repeat(50)];
    const names = tables.map((table) => channelOf({ ...fixture.layout, table }));
    names.push(channelOf({ ...fixture.layout, table: "a", schema: "other" }));
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
  });
});
