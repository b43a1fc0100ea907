/** Every SQLite handle, on a file that two handles are open on. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import type { SqliteHandle } from "../../src/databases/sqlite/driver.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createOutbox, createRelay, DatabaseUnavailableError, memory, migrate } from "../../src/index.ts";
import { defineAppendCases } from "./append-cases.ts";
import { type CasePlace, createTables, defineHandleCases } from "./handle-cases.ts";
import type { Handles } from "./handles.ts";
import { sqliteHandles } from "./sqlite-bracketing.ts";

type Open = (file: string) => SqliteHandle;

/** How each package opens a file; the reason where it cannot be had here. */
const PACKAGES: Readonly<Record<string, () => Promise<Open | string>>> = {
  "node:sqlite": async () => {
    // The types of Node 20 do not know it.
    const name = "node:sqlite";
    const module: { DatabaseSync: new (file: string) => SqliteHandle } | undefined = await import(name).catch(
      () => undefined,
    );
    return module === undefined
      ? `Node ${process.versions.node} has none; tools/test-matrix.sh runs it on 22 and 24`
      : (file) => new module.DatabaseSync(file);
  },
  "@photostructure/sqlite": async () => {
    const { DatabaseSync } = await import("@photostructure/sqlite");
    return (file): SqliteHandle => new DatabaseSync(file);
  },
  "better-sqlite3": async () => {
    // Version 13 ends the process on Node 20 instead of refusing to load.
    if (Number.parseInt(process.versions.node, 10) < 22) return "tools/test-matrix.sh runs it on Node 22 and 24";
    // No development dependency: npm compiles it at each install, for 3 minutes. The matrix fetches
    // it, and what it names must be there.
    const folder = process.env["ROWPOST_TEST_BETTER_SQLITE3"];
    if (folder === undefined) return "tools/test-matrix.sh brings it along";
    const require = createRequire(import.meta.url);
    const BetterSqlite3: new (file: string) => SqliteHandle = require(folder);
    return (file) => new BetterSqlite3(file);
  },
};

const opens = await Promise.all(Object.entries(PACKAGES).map(async ([name, load]) => [name, await load()] as const));
const ends = ["", "-wal", "-shm"];

for (const [name, open] of opens) {
  if (typeof open === "string") {
    console.warn(`SKIPPED: handles of ${name}: ${open}`);
    describe.skipIf(true)(`handles of ${name} [skipped: ${open}]`, () => {});
    continue;
  }
  describe("handles of SQLite", () => {
    const file = join(tmpdir(), `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}.db`);
    let database: Database;
    let place: CasePlace & { close(): unknown };
    beforeAll(async () => {
      database = sqlite({ file });
      await createTables(database);
      const other = open(file);
      const column = async (sql: string): Promise<string[]> =>
        (other.prepare(sql).all() as { value: string }[]).map(({ value }) => value);
      place = {
        database,
        close: () => other.close(),
        onlooker: {
          keys: () => column("SELECT message_key AS value FROM local_message"),
          orders: () => column("SELECT id AS value FROM orders"),
        },
      };
    });
    afterAll(async () => {
      place?.close();
      await database?.close();
      for (const end of ends) await rm(`${file}${end}`, { force: true });
    });
    let sent = 0;
    defineAppendCases(name, { database: () => database, open: async () => sqliteHandles(open(file)) });
    defineHandleCases(name, {
      place: () => place,
      open: async () => handlesOf(open(file), () => (sent += 1)),
      countStatements: async () => (sent += 1),
      statementsPerEnqueue: 1,
    });

    test(`${name}: a database that only this handle can see, written and relayed through it`, async () => {
      const handle = open(":memory:");
      const own = sqlite({ handle });
      await migrate(own, { layout: own.defaultLayout });
      const outbox = createOutbox({ database: own });
      await outbox.transaction(async (tx) => {
        for (const key of ["1", "2"]) await outbox.enqueue(tx, { type: "made", key, topic: "orders", body: { key } });
      });
      const broker = memory();
      const relay = createRelay({ database: own, broker });
      expect(await relay.tick()).toMatchObject({ claimed: 2, sent: 2 });
      expect(broker.published("orders").map(({ key }) => key)).toEqual(["1", "2"]);
      await relay.stop();
      await own.close();
      const states = handle.prepare("SELECT DISTINCT state FROM local_message").all();
      expect(states, "the handle stays open").toEqual([{ state: 2 }]);
      handle.close();
    });

    test(`${name}: a COMMIT that a deferred constraint refuses throws the database's own error, and nothing is left`, async () => {
      const handle = open(":memory:");
      const own = sqlite({ handle });
      await migrate(own, { layout: own.defaultLayout });
      handle.exec("PRAGMA foreign_keys = ON");
      handle.exec("CREATE TABLE lines (order_id TEXT REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)");
      handle.exec("CREATE TABLE orders (id TEXT PRIMARY KEY)");
      const outbox = createOutbox({ database: own });
      const transaction = outbox.transaction(async (tx) => {
        await tx.query("INSERT INTO lines (order_id) VALUES (?)", ["nobody's"]);
        await outbox.enqueue(tx, { type: "made", key: "1", topic: "orders", body: {} });
      });
      await expect(transaction).rejects.toThrow(/FOREIGN KEY constraint failed/);
      await expect(transaction).rejects.not.toBeInstanceOf(DatabaseUnavailableError);
      expect(handle.prepare("SELECT 1 FROM local_message UNION ALL SELECT 1 FROM lines").all()).toEqual([]);
      await outbox.transaction(async (tx) => void (await tx.query("INSERT INTO orders (id) VALUES (?)", ["next"])));
      expect(handle.prepare("SELECT id FROM orders").all()).toEqual([{ id: "next" }]);
      await own.close();
      handle.close();
    });
  });
}

function handlesOf(handle: SqliteHandle, onStatement: () => void): Handles {
  counting(handle, onStatement);
  return sqliteHandles(handle);
}

/** Counts the runs of prepared statements and lets them pass. */
function counting(handle: SqliteHandle, onStatement: () => void): void {
  const prepare = handle.prepare.bind(handle);
  const countingPrepare: SqliteHandle["prepare"] = (sql) => {
    const statement = prepare(sql);
    for (const method of ["run", "all"] as const) {
      const call: (...params: readonly unknown[]) => unknown = statement[method].bind(statement);
      Object.defineProperty(statement, method, {
        value: (...params: readonly unknown[]) => {
          onStatement();
          return call(...params);
        },
      });
    }
    return statement;
  };
  Object.defineProperty(handle, "prepare", { value: countingPrepare });
}
