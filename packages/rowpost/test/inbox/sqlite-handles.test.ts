/** SQLite's handles: node:sqlite where Node has it, and @photostructure/sqlite. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync as PhotostructureDatabase } from "@photostructure/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import type { SqliteHandle } from "../../src/databases/sqlite/driver.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { createTables } from "../transactions/handle-cases.ts";
import { sqliteHandles } from "../transactions/sqlite-bracketing.ts";
import { defineInboxHandleCases, type InboxPlace } from "./handle-cases.ts";

type Open = (file: string) => SqliteHandle;

/** The types of Node 20 do not know it; tools/test-matrix.sh runs it on 22 and 24. */
const nodes: { DatabaseSync: new (file: string) => SqliteHandle } | undefined = await import(
  "node:sqlite".toString()
).catch(() => undefined);
const opens: [string, Open][] = [["@photostructure/sqlite", (file) => new PhotostructureDatabase(file)]];
if (nodes !== undefined) opens.push(["node:sqlite", (file) => new nodes.DatabaseSync(file)]);

describe.each(opens)("inbox in handles of %s", (name, open) => {
  const file = join(tmpdir(), `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}.db`);
  let database: Database;
  let place: InboxPlace & { close(): unknown };
  beforeAll(async () => {
    database = sqlite({ file });
    await createTables(database);
    await createInbox({ database }).migrate();
    const onlooker = open(file);
    const read = async (sql: string): Promise<string[]> =>
      onlooker
        .prepare(sql)
        .all()
        .map((row) => String(Reflect.get(row as object, "value")));
    place = {
      database,
      keys: () => read("SELECT message_key AS value FROM message_inbox"),
      orders: () => read("SELECT id AS value FROM orders"),
      close: () => onlooker.close(),
    };
  });
  afterAll(async () => {
    place?.close();
    await database?.close();
    for (const end of ["", "-wal", "-shm"]) await rm(`${file}${end}`, { force: true });
  });
  defineInboxHandleCases(name, { place: () => place, open: async () => sqliteHandles(open(file)) });

  it("opens no transaction on a handle that has none", async () => {
    const handle = open(file);
    const message = { type: "order.paid", key: "none" };
    const handling = createInbox({ database, consumer: "points" }).handle(handle, { message }, async () => undefined);
    await expect(handling).rejects.toMatchObject({ code: "TRANSACTION_REQUIRED" });
    handle.exec("BEGIN");
    handle.exec("ROLLBACK");
    handle.close();
  });

  it("takes turns on a database that only this handle can see", async () => {
    const handle = open(":memory:");
    const own = sqlite({ handle });
    const inbox = createInbox({ database: own, consumer: "points" });
    await inbox.migrate();
    let handled = 0;
    const deliver = () => inbox.handle(own, { message: { type: "order.paid", key: "1" } }, async () => (handled += 1));
    const outcomes = (await Promise.all([deliver(), deliver(), deliver()])).map(({ outcome }) => outcome);
    expect([outcomes, handled]).toEqual([["handled", "duplicate", "duplicate"], 1]);
    expect(await inbox.purge()).toBe(0);
    await own.close();
    handle.close();
  });
});
