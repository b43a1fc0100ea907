/** `outbox.transaction` on SQLite: one handle is one connection (rule: sqlite-handle). */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createOutbox, type Outbox, TransactionLostError, TransactionRequiredError } from "../../src/index.ts";
import { createTables } from "./handle-cases.ts";
import { forgottenAwaits, message } from "./own-cases.ts";

let file: string;
let handle: InstanceType<typeof DatabaseSync>;
let database: Database;
let outbox: Outbox;
beforeEach(async () => {
  file = join(tmpdir(), `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}.db`);
  handle = new DatabaseSync(file);
  database = sqlite({ handle });
  await createTables(database);
  outbox = createOutbox({ database });
});
afterEach(async () => {
  await database.close();
  handle.close();
  for (const end of ["", "-wal", "-shm"]) await rm(`${file}${end}`, { force: true });
});

function keys(): string[] {
  return column("SELECT message_key AS value FROM local_message ORDER BY id");
}

function column(sql: string): string[] {
  const other = new DatabaseSync(file);
  const rows = other.prepare(sql).all();
  other.close();
  return rows.map((row) => String((row as { value: unknown }).value));
}

test("commits and rolls back", async () => {
  const result = await outbox.transaction(async (tx) => {
    await tx.query("INSERT INTO orders VALUES (?)", ["a"]);
    expect(await tx.query("SELECT id FROM orders")).toEqual([{ id: "a" }]);
    return await outbox.enqueue(tx, message("a"));
  });
  expect(result).toBe("enqueued");
  const thrown = new Error("no");
  const work = outbox.transaction(async (tx) => {
    await outbox.enqueue(tx, message("b"));
    throw thrown;
  });
  await expect(work).rejects.toBe(thrown);
  expect(keys()).toEqual(["a"]);
});

test("a forgotten await rolls back and is told (rule: awaited-work)", async () => {
  await forgottenAwaits({ outbox, keys, orders: () => column("SELECT id AS value FROM orders") });
});

test("two transactions on one handle take turns", async () => {
  const first = outbox.transaction(async (tx) => {
    await outbox.enqueue(tx, message("first"));
    await sleep(20);
    await outbox.enqueue(tx, message("first-2"));
    throw new Error("no");
  });
  const second = outbox.transaction(async (tx) => {
    await outbox.enqueue(tx, message("second"));
  });
  await expect(first).rejects.toThrow("no");
  await second;
  expect(keys()).toEqual(["second"]);
});

test("one inside the other would wait for itself: refused; one after the other from there is fine", async () => {
  let later: Promise<unknown> = Promise.resolve();
  await outbox.transaction(async (tx) => {
    await expect(outbox.transaction(async () => {})).rejects.toBeInstanceOf(TransactionRequiredError);
    await outbox.enqueue(tx, message("outer"));
    later = sleep(10).then(() => outbox.transaction((inner) => outbox.enqueue(inner, message("later"))));
  });
  await later;
  expect(keys()).toEqual(["outer", "later"]);
});

test("waits for another handle's transaction without stopping the process", async () => {
  const other = new DatabaseSync(file);
  handle.exec("PRAGMA busy_timeout = 0");
  other.exec("BEGIN IMMEDIATE");
  let turns = 0;
  const ticking = setInterval(() => (turns += 1), 5);
  const work = outbox.transaction((tx) => outbox.enqueue(tx, message("waits")));
  await sleep(100);
  clearInterval(ticking);
  expect(turns).toBeGreaterThan(5);
  expect(keys()).toEqual([]);
  other.exec("COMMIT");
  other.close();
  await work;
  expect(keys()).toEqual(["waits"]);
});

test("a transaction that SQLite or the user ended is told, and nothing more is written", async () => {
  const work = outbox.transaction(async (tx) => {
    // OR ROLLBACK ends the whole transaction when the statement fails, as a full disk does.
    await tx.query("INSERT INTO orders VALUES ('x')");
    await expect(tx.query("INSERT OR ROLLBACK INTO orders VALUES ('x')")).rejects.toThrow();
    await outbox.enqueue(tx, message("alone"));
  });
  await expect(work).rejects.toBeInstanceOf(TransactionLostError);
  const committed = outbox.transaction(async (tx) => {
    await tx.query("COMMIT");
    await outbox.enqueue(tx, message("alone"));
  });
  await expect(committed).rejects.toBeInstanceOf(TransactionLostError);
  expect(keys()).toEqual([]);
});

test("a deferred foreign key that fails at COMMIT leaves nothing open", async () => {
  handle.exec("PRAGMA foreign_keys = ON");
  handle.exec("CREATE TABLE child (id TEXT REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)");
  const work = outbox.transaction(async (tx) => {
    await tx.query("INSERT INTO child VALUES ('nobody')");
    await outbox.enqueue(tx, message("orphan"));
  });
  await expect(work).rejects.toThrow(/constraint/i);
  expect(handle.isTransaction).toBe(false);
  expect(keys()).toEqual([]);
});

test("the user's open transaction on the handle is refused, and stays as it is", async () => {
  handle.exec("BEGIN");
  handle.exec("INSERT INTO orders VALUES ('open')");
  await expect(outbox.transaction(async () => {})).rejects.toBeInstanceOf(TransactionRequiredError);
  expect(handle.isTransaction).toBe(true);
  handle.exec("ROLLBACK");
});

test("a closed handle is refused", async () => {
  const closed = new DatabaseSync(":memory:");
  closed.close();
  await expect(outbox.enqueue(closed, message("closed"))).rejects.toBeInstanceOf(TransactionRequiredError);
});
