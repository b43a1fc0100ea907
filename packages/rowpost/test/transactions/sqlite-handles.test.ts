/** Every SQLite handle, on a file that two handles are open on. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { type CasePlace, createTables, defineHandleCases } from "./handle-cases.ts";
import type { Handles } from "./handles.ts";

/** The part of the three packages' handles that the tests use themselves. */
interface Handle {
  exec(sql: string): unknown;
  prepare(sql: string): { run(...params: readonly unknown[]): unknown; all(): unknown };
  close(): unknown;
}

type Open = (file: string) => Handle;

/** How each package opens a file; the reason where it cannot be had here. */
const PACKAGES: Readonly<Record<string, () => Promise<Open | string>>> = {
  "node:sqlite": async () => {
    // The types of Node 20 do not know it.
    const name = "node:sqlite";
    const module: { DatabaseSync: new (file: string) => Handle } | undefined = await import(name).catch(
      () => undefined,
    );
    return module === undefined ? `Node ${process.versions.node} has none` : (file) => new module.DatabaseSync(file);
  },
  "@photostructure/sqlite": async () => {
    const { DatabaseSync } = await import("@photostructure/sqlite");
    return (file): Handle => new DatabaseSync(file);
  },
  "better-sqlite3": async () => {
    const name = "better-sqlite3";
    // Version 13 ends the process on Node 20 instead of refusing to load. No development dependency: npm compiles it at each install, for 3 minutes.
    if (Number.parseInt(process.versions.node, 10) < 22) return "it needs Node 22";
    const module: { default: new (file: string) => Handle } | undefined = await import(name).catch(() => undefined);
    return module === undefined ? "it is not installed" : (file) => new module.default(file);
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
    defineHandleCases(name, {
      place: () => place,
      open: async () => handlesOf(open(file), () => (sent += 1)),
      countStatements: async () => (sent += 1),
      statementsPerEnqueue: 1,
    });
  });
}

function handlesOf(handle: Handle, onStatement: () => void): Handles {
  counting(handle, onStatement);
  return {
    root: undefined,
    async transaction(work) {
      handle.exec("BEGIN IMMEDIATE");
      try {
        await work(handle, async (id) => handle.prepare("INSERT INTO orders (id) VALUES (?)").run(id));
      } catch (error) {
        handle.exec("ROLLBACK");
        throw error;
      }
      handle.exec("COMMIT");
    },
    withoutTransaction: (work) => work(handle),
    close: async () => handle.close(),
  };
}

/** Counts the runs of prepared statements and lets them pass. */
function counting(handle: Handle, onStatement: () => void): void {
  const prepare = handle.prepare.bind(handle);
  const countingPrepare: Handle["prepare"] = (sql) => {
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
