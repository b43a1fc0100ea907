/**
 * `outbox.transaction` and transactions that ended by themselves (rule: ended-transaction), on the
 * MySQL family.
 */
import { createConnection as createMariadb, createPool as createMariadbPool } from "mariadb";
import { createPool as createCallbackPool } from "mysql2";
import { type Connection, createConnection, createPool, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { createOutbox, type Outbox, TransactionLostError, TransactionRequiredError } from "../../src/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { createTables } from "./handle-cases.ts";
import { commitWithoutAnswer, forgottenAwaits, message } from "./own-cases.ts";

describeWithService(["mariadb", "mysql9"], "outbox.transaction", ({ name: service }) => {
  let place: TestDatabase;
  let url: string;
  let other: Connection;
  beforeAll(async () => {
    place = await createTestDatabase(service);
    url = place.url.replace(/^mariadb:/, "mysql:");
    const database = mysql({ url });
    await createTables(database);
    await database.close();
    other = await createConnection({ uri: url });
  });
  afterAll(async () => {
    await other?.end();
    await place?.drop();
  });
  beforeEach(async () => {
    await other.query("DELETE FROM local_message");
    await other.query("DELETE FROM orders");
    await other.query("INSERT INTO orders VALUES ('first'), ('second')");
  });

  async function keys(): Promise<string[]> {
    const [rows] = await other.query<RowDataPacket[]>("SELECT message_key FROM local_message ORDER BY id");
    return rows.map((row) => String(row["message_key"]));
  }

  /**
   * Makes whoever runs `work` the victim of a deadlock. `lock` and `collide` run on the victim's
   * connection.
   */
  async function deadlock(lock: () => Promise<unknown>, collide: () => Promise<unknown>): Promise<unknown> {
    const rival = await createConnection({ uri: url });
    try {
      await rival.query("BEGIN");
      // The transaction with fewer changes is rolled back: the rival makes many.
      await rival.query(
        `INSERT INTO orders VALUES ${Array.from({ length: 50 }, (_, n) => `('many-${n}')`).join(", ")}`,
      );
      await rival.query("SELECT id FROM orders WHERE id = 'second' FOR UPDATE");
      await lock();
      const rivalWaits = rival.query("SELECT id FROM orders WHERE id = 'first' FOR UPDATE");
      const outcome = await collide().then(
        () => undefined,
        (error: unknown) => error,
      );
      await rivalWaits;
      await rival.query("ROLLBACK");
      return outcome;
    } finally {
      await rival.end();
    }
  }
  const LOCK_FIRST = "SELECT id FROM orders WHERE id = 'first' FOR UPDATE";
  const LOCK_SECOND = "SELECT id FROM orders WHERE id = 'second' FOR UPDATE";

  describe.each([
    ["mysql2", () => mysql({ url })],
    ["mariadb", () => mariadb({ url })],
  ] as const)("through %s", (_driver, open) => {
    let database: Database;
    let outbox: Outbox;
    beforeAll(() => {
      database = open();
      outbox = createOutbox({ database });
    });
    afterAll(async () => {
      await database?.close();
    });

    test("commits, returns what the work returned, and rings after the commit", async () => {
      const seenAtRing: Promise<string[]>[] = [];
      const end = database.doorbell.subscribe(() => seenAtRing.push(keys()));
      const result = await outbox.transaction(async (tx) => {
        await tx.query("INSERT INTO orders VALUES (?)", ["third"]);
        await outbox.enqueue(tx, message("rings"));
        expect(seenAtRing).toEqual([]);
        return 42;
      });
      end();
      expect(result).toBe(42);
      expect(await Promise.all(seenAtRing)).toEqual([["rings"]]);
    });

    test("rolls back and rethrows what the work threw, and does not ring", async () => {
      let rings = 0;
      const end = database.doorbell.subscribe(() => (rings += 1));
      const thrown = new Error("no");
      const work = outbox.transaction(async (tx) => {
        await outbox.enqueue(tx, message("thrown"));
        throw thrown;
      });
      await expect(work).rejects.toBe(thrown);
      end();
      expect([await keys(), rings]).toEqual([[], 0]);
    });

    test("after a deadlock every further call is refused, and nothing is there (rule: ended-transaction)", async () => {
      let code: unknown;
      let afterwards: unknown;
      const work = outbox.transaction(async (tx) => {
        await tx.query("UPDATE orders SET id = 'changed' WHERE id = 'first'");
        code = await deadlock(
          () => tx.query(LOCK_FIRST),
          () => tx.query(LOCK_SECOND),
        );
        afterwards = await outbox.enqueue(tx, message("alone")).catch((error: unknown) => error);
      });
      await expect(work).rejects.toMatchObject({ code: "TRANSACTION_LOST", retriable: true });
      expect(code).toMatchObject({ errno: 1213 });
      expect(afterwards).toBeInstanceOf(TransactionLostError);
      expect(await keys()).toEqual([]);
    });

    test("DDL ends the transaction, and is told", async () => {
      const work = outbox.transaction(async (tx) => {
        await tx.query("CREATE TABLE IF NOT EXISTS unrelated (id INT)");
        await outbox.enqueue(tx, message("alone"));
      });
      await expect(work).rejects.toBeInstanceOf(TransactionLostError);
      expect(await keys()).toEqual([]);
    });

    test.each([
      ["DDL", "CREATE TABLE IF NOT EXISTS unrelated (id INT)"],
      ["DDL that fails", "/* twice */ CREATE TABLE orders (id INT)"],
    ])("what %s has committed is not to be written again", async (_what, ddl) => {
      const work = outbox.transaction(async (tx) => {
        await outbox.enqueue(tx, message("committed"));
        await tx.query(ddl).catch(() => undefined);
      });
      await expect(work).rejects.toMatchObject({ code: "TRANSACTION_LOST", retriable: false });
      expect(await keys()).toEqual(["committed"]);
    });

    test("a statement that fails without ending the transaction does not end it", async () => {
      await outbox.transaction(async (tx) => {
        await expect(tx.query("INSERT INTO orders VALUES ('first')")).rejects.toMatchObject({ errno: 1062 });
        await outbox.enqueue(tx, message("goes-on"));
      });
      expect(await keys()).toEqual(["goes-on"]);
    });

    test("a connection that is lost takes the transaction with it; the pool gives a new one", async () => {
      const work = outbox.transaction(async (tx) => {
        await outbox.enqueue(tx, message("lost"));
        const [row] = await tx.query<{ id: number | bigint }>("SELECT CONNECTION_ID() AS id");
        await other.query(`KILL ${Number(row?.id)}`);
        await expect(tx.query("SELECT 1")).rejects.toThrow();
        await expect(outbox.enqueue(tx, message("later"))).rejects.toBeInstanceOf(TransactionLostError);
      });
      await expect(work).rejects.toBeInstanceOf(TransactionLostError);
      await outbox.transaction((tx) => outbox.enqueue(tx, message("again")));
      expect(await keys()).toEqual(["again"]);
    });

    test("a forgotten await rolls back and is told (rule: awaited-work)", async () => {
      const orders = async (): Promise<string[]> => {
        const [rows] = await other.query<RowDataPacket[]>("SELECT id FROM orders");
        return rows.map((row) => String(row["id"]));
      };
      await forgottenAwaits({ outbox, keys, orders });
    });

    test("a COMMIT without an answer is told as what it is", async () => {
      await commitWithoutAnswer({ url, outbox, keys, openPool: (uri) => createPool({ uri }) });
    });

    test("a tx is refused once its transaction is over", async () => {
      const kept = await outbox.transaction(async (tx) => tx);
      await expect(outbox.enqueue(kept, message("late"))).rejects.toBeInstanceOf(TransactionRequiredError);
      expect(await keys()).toEqual([]);
    });

    test("pools and connections of both drivers will do, whichever the outbox has", async () => {
      const address = { host: "127.0.0.1", port: Number(new URL(url).port), user: "root", database: place.name };
      const promisePool = createPool(address);
      const callbackPool = createCallbackPool(address);
      const connection = await createConnection(address);
      const mariadbPool = createMariadbPool({ ...address, allowPublicKeyRetrieval: true, connectionLimit: 2 });
      const mariadbConnection = await createMariadb({ ...address, allowPublicKeyRetrieval: true });
      const all = { promisePool, callbackPool, connection, mariadbPool, mariadbConnection };
      for (const [name, on] of Object.entries(all)) {
        await outbox.transaction(on, async (tx) => {
          await outbox.enqueue(tx, message(name));
        });
        await expect(
          outbox.transaction(on, async (tx) => {
            await outbox.enqueue(tx, message(`${name}-no`));
            throw new Error("no");
          }),
        ).rejects.toThrow("no");
      }
      expect(await keys()).toEqual(Object.keys(all));
      // A BEGIN would commit what the user has begun.
      const queries = [
        [connection, (sql: string) => connection.query(sql)],
        [mariadbConnection, (sql: string) => mariadbConnection.query(sql)],
      ] as const;
      for (const [on, query] of queries) {
        await query("BEGIN");
        await query("INSERT INTO orders VALUES ('open')");
        await expect(outbox.transaction(on, async () => {})).rejects.toBeInstanceOf(TransactionRequiredError);
        await query("ROLLBACK");
      }
      const [rows] = await other.query<RowDataPacket[]>("SELECT id FROM orders WHERE id = 'open'");
      expect(rows).toEqual([]);
      await Promise.all([
        promisePool.end(),
        callbackPool.promise().end(),
        connection.end(),
        mariadbPool.end(),
        mariadbConnection.end(),
      ]);
    });
  });

  test.each([
    ["mysql2", async () => await createConnection({ uri: url })],
    [
      "mariadb",
      async () => {
        const { port } = new URL(url);
        return await createMariadb({
          host: "127.0.0.1",
          port: Number(port),
          user: "root",
          database: place.name,
          allowPublicKeyRetrieval: true,
        });
      },
    ],
  ])(
    "the user's own %s transaction after a deadlock: refused, no message without its business row (rule: ended-transaction)",
    async (_name, connect) => {
      const database = mysql({ url });
      const outbox = createOutbox({ database });
      const connection = (await connect()) as unknown as { query(sql: string): Promise<unknown>; end(): Promise<void> };
      await connection.query("BEGIN");
      await connection.query("UPDATE orders SET id = 'changed' WHERE id = 'first'");
      const outcome = await deadlock(
        () => connection.query(LOCK_FIRST),
        () => connection.query(LOCK_SECOND),
      );
      expect(outcome).toMatchObject({ errno: 1213 });
      await expect(outbox.enqueue(connection, message("alone"))).rejects.toBeInstanceOf(TransactionRequiredError);
      await connection.query("COMMIT");
      expect(await keys()).toEqual([]);
      // Autocommit off: there is always a transaction.
      await connection.query("SET autocommit = 0");
      await outbox.enqueue(connection, message("off"));
      expect(await keys()).toEqual([]);
      await connection.query("COMMIT");
      expect(await keys()).toEqual(["off"]);
      await connection.end();
      await database.close();
    },
  );

  test("1,001 messages are two statements, and none is left when the last cannot be written", async () => {
    const database = mysql({ url });
    const outbox = createOutbox({ database });
    const many = Array.from({ length: 1_001 }, (_, n) => message(`many-${n}`));
    await outbox.transaction((tx) => outbox.enqueue(tx, message("many-1000")));
    await outbox.transaction(async (tx) => {
      await expect(outbox.enqueue(tx, many)).rejects.toMatchObject({
        code: "DUPLICATE_MESSAGE",
        duplicates: [{ key: "many-1000" }],
      });
      await outbox.enqueue(tx, message("after"));
    });
    expect(await keys()).toEqual(["many-1000", "after"]);
    const statuses = await outbox.transaction((tx) => outbox.enqueue(tx, many, { onDuplicate: "ignore" }));
    expect(statuses.filter((status) => status === "duplicate")).toHaveLength(1);
    expect(await keys()).toHaveLength(1_002);
    await database.close();
  });
});
