import { createPool as createMariadbPool } from "mariadb";
import { createPool } from "mysql2/promise";
import pg from "pg";
import createSql from "postgres";
import { describe, expect, test } from "vitest";
import { TransactionRequiredError } from "../runtime/errors.ts";
import type { Executor } from "./executor.ts";
import { runTransaction, toExecutor } from "./index.ts";

describe("toExecutor says what a handle is and what to pass instead", () => {
  test.each([
    [undefined, "got undefined"],
    [null, "got null"],
    ["tx", "got tx"],
    [5, "got 5"],
    [{}, "got a Object"],
    [Object.create(null), "got a object"],
    [new Map(), "got a Map"],
    [Promise.resolve(), "got a Promise"],
  ])("%s", (handle, reason) => {
    for (const dialect of ["mysql", "postgres", "sqlite"] as const) {
      expect(() => toExecutor(handle, dialect)).toThrow(TransactionRequiredError);
      expect(() => toExecutor(handle, dialect)).toThrow(reason);
      expect(() => toExecutor(handle, dialect)).toThrow("Nothing was written");
    }
  });

  test("pools, which connect to nothing by being looked at", async () => {
    const mysqlPool = createPool({ host: "127.0.0.1", port: 1 });
    const mariadbPool = createMariadbPool({ host: "127.0.0.1", port: 1, minimumIdle: 0 });
    const pgPool = new pg.Pool({ host: "127.0.0.1", port: 1 });
    const sql = createSql("postgres://127.0.0.1:1/x");
    expect(() => toExecutor(mysqlPool, "mysql")).toThrow(
      "this is a mysql2 pool, not an open transaction: take a connection",
    );
    expect(() => toExecutor(mariadbPool, "mysql")).toThrow("this is a mariadb pool");
    expect(() => toExecutor(pgPool, "postgres")).toThrow("this is a pg pool");
    expect(() => toExecutor(sql, "postgres")).toThrow("use sql.begin(async (tx) => …) and pass its tx");
    await Promise.all([mysqlPool.end(), mariadbPool.end(), pgPool.end(), sql.end()]);
  });

  test("a handle of another database", () => {
    const client = new pg.Client({ host: "127.0.0.1", port: 1 });
    expect(() => toExecutor(client, "mysql")).toThrow("this is a pg handle, but the outbox is on mysql");
    expect(() => toExecutor(client, "sqlite")).toThrow("this is a pg handle, but the outbox is on sqlite");
  });

  test("Drizzle on SQLite, whose transactions are synchronous", () => {
    const method = (): void => {};
    const tx = { dialect: {}, session: {}, transaction: method, select: method, insert: method, rollback: method };
    expect(() => toExecutor(tx, "sqlite")).toThrow("synchronous");
    expect(() => toExecutor({ ...tx, rollback: undefined }, "sqlite")).toThrow("this is a Drizzle database");
  });

  test("a tx of outbox.transaction is used as it is", () => {
    const tx: Executor & { query(): void } = {
      kind: "mysql2",
      run: async () => ({ rows: [], affected: 0 }),
      query: () => {},
    };
    expect(toExecutor(tx, "mysql")).toBe(tx);
  });
});

test("runTransaction begins on raw drivers only, and says so", async () => {
  await expect(runTransaction({}, "mysql", async () => {})).rejects.toThrow(
    "a pool, connection or handle of mysql2 or mariadb",
  );
  await expect(runTransaction(5, "postgres", async () => {})).rejects.toBeInstanceOf(TransactionRequiredError);
});
