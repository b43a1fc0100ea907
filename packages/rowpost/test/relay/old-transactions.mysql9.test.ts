import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWithService } from "../services.ts";
import { createRelayDatabase, type RelayTestDatabase } from "./bench-database.ts";
import { defineOldTransactionCases } from "./old-transactions.cases.ts";

describeWithService("mysql9", "a forgotten transaction", () =>
  defineOldTransactionCases({
    service: "mysql9",
    forget: ["START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM local_message"],
    ownName: "SELECT 'thread' AS kind, CAST(CONNECTION_ID() AS CHAR) AS name",
  }),
);

describeWithService("mysql9", "the list of transactions beside a letter of four bytes", () => {
  let table: RelayTestDatabase;
  beforeAll(async () => {
    table = await createRelayDatabase("mysql9");
  });
  afterAll(() => table.drop());

  it("is not known, which stops nothing", async () => {
    const [holder, waiter] = await Promise.all([createConnection(table.url), createConnection(table.url)]);
    const lock = `four-bytes-${process.pid}`;
    await holder.query("SELECT GET_LOCK(?, 0)", [lock]);
    await waiter.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    const waiting = waiter.query("SELECT GET_LOCK(?, 60), '𠮷'", [lock]);
    const list = (): Promise<unknown> => holder.query("SELECT 1 FROM information_schema.INNODB_TRX");
    await expect.poll(() => list().catch(({ errno }: { errno: number }) => errno)).toBe(3854);
    const database = table.connect();
    const store = database.relayStore({ layout: database.defaultLayout });
    expect(await store.housekeeping.oldTransactions({ olderThanMs: 0, heldTransactions: 0 })).toEqual([]);
    await holder.query("SELECT RELEASE_LOCK(?)", [lock]);
    await waiting;
    await Promise.all([store.close(), holder.end(), waiter.end()]);
  });
});
