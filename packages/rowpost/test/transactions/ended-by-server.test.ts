/**
 * Transactions that the MySQL server ends by itself, in the middle of a call or behind an answer
 * with rows: nothing is written or deleted alone.
 */
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { createOutbox, type NewMessage, TransactionLostError } from "../../src/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { createTables } from "./handle-cases.ts";

const message = (key: string, characters = 2): NewMessage => ({
  type: "t",
  key,
  topic: "orders",
  body: "x".repeat(characters),
});

describeWithService(["mariadb", "mysql8", "mysql9"], "a transaction that the server ends", ({ name: service }) => {
  let place: TestDatabase;
  let database: Database;
  const connections: Connection[] = [];

  beforeAll(async () => {
    place = await createTestDatabase(service);
    database = mysql({ url: place.url });
    await createTables(database);
    for (let count = 0; count < 3; count += 1) {
      connections.push(await createConnection(place.url.replace(/^mariadb:/, "mysql:")));
    }
  });
  afterAll(async () => {
    for (const connection of connections) connection.destroy();
    await database?.close();
    await place?.drop();
  });
  beforeEach(async () => {
    await connections[2]?.query("DELETE FROM local_message");
    await connections[2]?.query("DELETE FROM orders");
  });

  const connection = (index: number): Connection => {
    const found = connections[index];
    if (found === undefined) throw new Error("not connected");
    return found;
  };
  async function values(sql: string): Promise<unknown[]> {
    const [rows] = await connection(2).query({ sql, rowsAsArray: true });
    return (rows as unknown[][]).map(([value]) => value);
  }

  test("a deadlock in a call of several statements takes away no message of another transaction", async () => {
    const outbox = createOutbox({ database });
    const [victim, other] = [connection(0), connection(1)];
    await other.query("START TRANSACTION");
    // The server sacrifices the transaction that has written less.
    for (let id = 0; id < 300; id += 1) await other.query("INSERT INTO orders (id) VALUES (?)", [`o${id}`]);
    await outbox.enqueue(other, message("second"));
    await victim.query("START TRANSACTION");
    const failing = outbox.enqueue(victim, [message("first", 3_000_000), message("second", 3_000_000)]);
    const outcome = failing.catch((error: unknown) => error);
    const waiting = `SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_mysql_thread_id = ${victim.threadId}`;
    // InnoDB makes this table anew only when nobody has read it for 100 ms.
    await expect.poll(() => values(waiting), { timeout: 30_000, interval: 150 }).toEqual([1]);
    expect(await outbox.enqueue(other, message("first"))).toBe("enqueued");
    await other.query("COMMIT");
    expect(String(await outcome)).toMatch(/deadlock/i);
    expect(await values("SELECT message_key FROM local_message ORDER BY id")).toEqual(["second", "first"]);
  });

  describe("by a statement that answers with rows", () => {
    test.each([
      ["a procedure that rolls back", "CALL ends_it()"],
      ["a statement that commits", "ANALYZE TABLE orders"],
    ])("%s: the message is refused, and none is left", async (_, statement) => {
      await connection(0).query("DROP PROCEDURE IF EXISTS ends_it");
      await connection(0).query("CREATE PROCEDURE ends_it() BEGIN ROLLBACK; SELECT 1; END");
      const outbox = createOutbox({ database });
      const transaction = outbox.transaction(async (tx) => {
        await tx.query("INSERT INTO orders (id) VALUES ('o')");
        await tx.query(statement);
        await outbox.enqueue(tx, message("alone"));
      });
      await expect(transaction).rejects.toBeInstanceOf(TransactionLostError);
      expect(await values("SELECT message_key FROM local_message")).toEqual([]);
    });
  });
});
