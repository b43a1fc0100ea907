/** `outbox.transaction` and failed transactions (rule: ended-transaction) on PostgreSQL. */
import pg from "pg";
import createSql from "postgres";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import {
  createLayout,
  createOutbox,
  migrate,
  type Outbox,
  type Transaction,
  TransactionLostError,
  TransactionRequiredError,
} from "../../src/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { createTables } from "./handle-cases.ts";
import { commitWithoutAnswer, forgottenAwaits, message } from "./own-cases.ts";

describeWithService("postgres", "outbox.transaction", () => {
  let place: TestDatabase;
  let database: Database;
  let outbox: Outbox;
  let pool: pg.Pool;
  beforeAll(async () => {
    place = await createTestDatabase("postgres");
    database = postgres({ url: place.url });
    await createTables(database);
    outbox = createOutbox({ database });
    pool = new pg.Pool({ connectionString: place.url, max: 4 });
    pool.on("error", () => {});
  });
  afterAll(async () => {
    await database?.close();
    await pool?.end();
    await place?.drop();
  });
  beforeEach(async () => {
    await pool.query("DELETE FROM local_message; DELETE FROM orders; INSERT INTO orders VALUES ('first')");
  });

  async function keys(): Promise<string[]> {
    const { rows } = await pool.query<{ message_key: string }>("SELECT message_key FROM local_message ORDER BY id");
    return rows.map(({ message_key }) => message_key);
  }

  /** Pools, clients and the sql of postgres.js. */
  async function withEach(check: (on: unknown, name: string) => Promise<void>): Promise<void> {
    const client = new pg.Client({ connectionString: place.url });
    await client.connect();
    const sql = createSql(place.url, { max: 2, onnotice: () => {} });
    try {
      for (const [name, on] of Object.entries({ own: undefined, pool, client, sql })) await check(on, name);
    } finally {
      await client.end();
      await sql.end();
    }
  }

  test("commits, returns what the work returned, and rings after the commit", async () => {
    await withEach(async (on, name) => {
      const seenAtRing: Promise<string[]>[] = [];
      const end = database.doorbell.subscribe(() => seenAtRing.push(keys()));
      const work = async (tx: Transaction) => {
        const rows = await tx.query<{ n: number }>("SELECT $1::int AS n", [42]);
        await outbox.enqueue(tx, [message(name), message(`${name}-2`)]);
        expect(seenAtRing).toEqual([]);
        return rows[0]?.n;
      };
      expect(await (on === undefined ? outbox.transaction(work) : outbox.transaction(on, work))).toBe(42);
      end();
      const [atRing] = await Promise.all(seenAtRing);
      expect(atRing).toContain(name);
    });
  });

  test("rolls back and rethrows what the work threw", async () => {
    await withEach(async (on) => {
      const thrown = new Error("no");
      const work = async (tx: unknown): Promise<void> => {
        await outbox.enqueue(tx, message("thrown"));
        throw thrown;
      };
      await expect(on === undefined ? outbox.transaction(work) : outbox.transaction(on, work)).rejects.toBe(thrown);
      expect(await keys()).toEqual([]);
    });
  });

  test("after a statement that failed, enqueue is refused; going on as if nothing had happened is told at the end (rule: ended-transaction)", async () => {
    await withEach(async (on, name) => {
      let refused: unknown;
      const work = async (tx: Transaction): Promise<void> => {
        await outbox.enqueue(tx, message(name));
        await expect(tx.query("INSERT INTO orders VALUES ('first')")).rejects.toMatchObject({ code: "23505" });
        refused = await outbox.enqueue(tx, message(`${name}-after`)).catch((error: unknown) => error);
      };
      const running = on === undefined ? outbox.transaction(work) : outbox.transaction(on, work);
      // postgres.js reports the statement that failed; pg would have answered COMMIT with ROLLBACK
      // and no error.
      if (name === "sql") await expect(running).rejects.toMatchObject({ code: "23505" });
      else await expect(running).rejects.toBeInstanceOf(TransactionLostError);
      expect(refused).toBeInstanceOf(TransactionLostError);
      expect(await keys()).toEqual([]);
    });
  });

  test("the user's own transaction after a statement that failed: enqueue says so", async () => {
    const client = await pool.connect();
    await client.query("BEGIN");
    await expect(client.query("INSERT INTO orders VALUES ('first')")).rejects.toMatchObject({ code: "23505" });
    await expect(outbox.enqueue(client, message("after"))).rejects.toBeInstanceOf(TransactionLostError);
    await client.query("ROLLBACK");
    client.release();
    expect(await keys()).toEqual([]);
  });

  test("a savepoint of the user's brings a failed transaction back", async () => {
    await outbox.transaction(async (tx) => {
      await tx.query("SAVEPOINT mine");
      await expect(tx.query("INSERT INTO orders VALUES ('first')")).rejects.toThrow();
      await tx.query("ROLLBACK TO SAVEPOINT mine");
      await outbox.enqueue(tx, message("back"));
    });
    expect(await keys()).toEqual(["back"]);
  });

  test("a forgotten await rolls back and is told (rule: awaited-work)", async () => {
    await withEach(async (on) => {
      await pool.query("DELETE FROM local_message");
      const orders = async (): Promise<string[]> => {
        const { rows } = await pool.query<{ id: string }>("SELECT id FROM orders");
        return rows.map(({ id }) => id);
      };
      await forgottenAwaits({ outbox, keys, orders, on });
    });
  });

  test("a COMMIT among the user's statements ends the transaction, and is told", async () => {
    const work = outbox.transaction(async (tx) => {
      await tx.query("COMMIT");
      await outbox.enqueue(tx, message("alone"));
    });
    await expect(work).rejects.toBeInstanceOf(TransactionLostError);
    expect(await keys()).toEqual([]);
  });

  test("a deferred constraint that fails at COMMIT is the user's error, and nothing is there", async () => {
    await pool.query("CREATE TABLE late (id INT UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    const work = outbox.transaction(async (tx) => {
      await tx.query("INSERT INTO late VALUES (1), (1)");
      await outbox.enqueue(tx, message("late"));
    });
    await expect(work).rejects.toMatchObject({ code: "23505" });
    expect(await keys()).toEqual([]);
  });

  test("a connection that is lost takes the transaction with it; the pool gives a new one", async () => {
    const work = outbox.transaction(pool, async (tx) => {
      await outbox.enqueue(tx, message("lost"));
      const [row] = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await pool.query("SELECT pg_terminate_backend($1)", [row?.pid]);
      await expect(tx.query("SELECT 1")).rejects.toThrow();
      await expect(outbox.enqueue(tx, message("later"))).rejects.toThrow();
    });
    await expect(work).rejects.toThrow();
    await outbox.transaction(pool, (tx) => outbox.enqueue(tx, message("again")));
    expect(await keys()).toEqual(["again"]);
  });

  test("a client of the user's that is lost inside ends the transaction, not the process", async () => {
    const client = new pg.Client({ connectionString: place.url });
    await client.connect();
    const ended = new Promise((resolve) => client.once("end", resolve));
    const work = outbox.transaction(client, async (tx) => {
      await outbox.enqueue(tx, message("lost"));
      const [row] = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await pool.query("SELECT pg_terminate_backend($1)", [row?.pid]);
      await ended;
      await expect(outbox.enqueue(tx, message("later"))).rejects.toThrow();
    });
    await expect(work).rejects.toThrow();
    expect(await keys()).toEqual([]);
  });

  test("a COMMIT without an answer is told as what it is", async () => {
    const openPool = (connectionString: string): pg.Pool => {
      const ours = new pg.Pool({ connectionString });
      ours.on("error", () => {});
      return ours;
    };
    await commitWithoutAnswer({ url: place.url, outbox, keys, openPool });
  });

  test("with prepare, rowpost's own statements are prepared once for each text; without, none is", async () => {
    const prepared = async (prepare: boolean): Promise<number | undefined> => {
      const own = postgres({ url: place.url, prepare });
      await migrate(own, { layout: ours });
      const [one, two] = [createOutbox({ database: own }), createOutbox({ database: own, layout: ours })];
      const count = await one.transaction(async (tx) => {
        for (const key of ["a", "b"]) {
          await one.enqueue(tx, message(`${key}-${prepare}`));
          await two.enqueue(tx, [message(`${key}-${prepare}`), message(`${key}2-${prepare}`)]);
          await tx.query("SELECT $1::int", [1]);
        }
        const rows = await tx.query<{ n: number }>("SELECT COUNT(*)::int AS n FROM pg_prepared_statements");
        return rows[0]?.n;
      });
      await own.close();
      return count;
    };
    const ours = createLayout({ base: database.defaultLayout, table: "other_message", companion: "other_message" });
    expect([await prepared(true), await prepared(false)]).toEqual([2, 0]);
  });

  test("a client that is in a transaction already is refused, and its transaction stays as it is", async () => {
    const client = await pool.connect();
    await client.query("BEGIN");
    await client.query("INSERT INTO orders VALUES ('open')");
    await expect(outbox.transaction(client, async () => {})).rejects.toBeInstanceOf(TransactionRequiredError);
    await client.query("ROLLBACK");
    client.release();
    expect((await pool.query("SELECT id FROM orders")).rows).toEqual([{ id: "first" }]);
  });

  test("what has no transaction to begin is refused with what to do", async () => {
    for (const on of [{}, null, undefined, "pool", () => {}]) {
      await expect(outbox.transaction(on, async () => {})).rejects.toBeInstanceOf(TransactionRequiredError);
    }
    await expect(outbox.transaction({ not: "a function" } as never)).rejects.toMatchObject({ code: "CONFIGURATION" });
  });

  test("1,001 messages are two statements, and none is left when the last cannot be written", async () => {
    const many = Array.from({ length: 1_001 }, (_, n) => message(`many-${n}`));
    await outbox.transaction((tx) => outbox.enqueue(tx, message("many-1000")));
    await outbox.transaction(async (tx) => {
      await expect(outbox.enqueue(tx, many)).rejects.toMatchObject({ code: "DUPLICATE_MESSAGE" });
      await outbox.enqueue(tx, message("after"));
    });
    expect(await keys()).toEqual(["many-1000", "after"]);
  });
});
