/**
 * Rule: sqlite-handle: handles of our own, waiting without blocking, one mutex for a database
 * without a file.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { isSafe, type SqliteHandle } from "../../src/databases/sqlite/driver.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createSession } from "../../src/databases/sqlite/session.ts";
import { createStatements } from "../../src/databases/sqlite/statements.ts";
import type { QueryResult, Statement } from "../../src/transactions/executor.ts";
import { plainHandle, type SqliteFixture, sqliteFixture } from "./sqlite-setup.ts";
import { sampleMessage } from "./statement-samples.ts";

const sql = (text: string, params: readonly unknown[] = []): Statement => ({ name: "test", text, params });
const scanAll = {
  shards: undefined,
  afterId: "0",
  bodyLimit: Number.MAX_SAFE_INTEGER,
  immediateLimit: 10,
  dueLimit: 10,
} as const;
const INSERT =
  "INSERT INTO local_message (message_type, message_key, topic, message_body) VALUES ('t', ?, 'orders', '{}')";

test("texts that come once do not keep one that comes often from staying prepared", async () => {
  const handle = await plainHandle(":memory:");
  const prepared: string[] = [];
  const counting: SqliteHandle = {
    ...handle,
    exec: (text) => handle.exec(text),
    close: () => handle.close(),
    prepare(text) {
      prepared.push(text);
      return handle.prepare(text);
    },
  };
  const session = createSession(counting, { purpose: "relay" });
  try {
    for (let index = 0; index < 600; index += 1) {
      await session.run(sql("SELECT 'often'"));
      await session.run(sql(`SELECT ${index}`));
    }
    // Begins behind the texts that came once: those must not have taken all places.
    for (let index = 0; index < 3; index += 1) await session.run(sql("SELECT 'late'"));
    expect(prepared.filter((text) => text === "SELECT 'often'")).toHaveLength(1);
    expect(prepared.filter((text) => text === "SELECT 'late'")).toHaveLength(1);
  } finally {
    await session.close();
    handle.close();
  }
});

describe("a SQLite file", () => {
  let fixture: SqliteFixture;
  let user: SqliteHandle;
  beforeEach(async () => {
    fixture = await sqliteFixture();
    user = await fixture.handle();
  });
  afterEach(() => fixture.drop());

  test("the relay reads no row before its transaction has committed", async () => {
    const relay = await fixture.session();
    const scan = async (): Promise<number> => (await relay.run(fixture.statements.relay.scan(scanAll))).rows.length;
    user.exec("BEGIN IMMEDIATE");
    user.prepare(INSERT).run("1");
    expect(await scan()).toBe(0);
    user.exec("COMMIT");
    expect(await scan()).toBe(1);
  });

  test("with the user's handle the relay opens one of its own", async () => {
    const database = sqlite({ handle: user });
    const relay = await database.connect({ purpose: "relay" });
    user.exec("BEGIN IMMEDIATE");
    user.prepare(INSERT).run("1");
    // On the user's handle this would see the row: a relay there publishes what may yet be rolled
    // back.
    expect(user.prepare("SELECT count(*) AS n FROM local_message").all()).toEqual([{ n: 1 }]);
    expect((await relay.run(fixture.statements.relay.scan(scanAll))).rows).toEqual([]);
    user.exec("ROLLBACK");
    await database.close();
    expect(user.prepare("SELECT 1 AS one").all(), "the user's handle stays open").toEqual([{ one: 1 }]);
  });

  test("a write waits for another process's transaction, and the event loop goes on meanwhile", async () => {
    const relay = await fixture.session();
    const holder = await lockFrom(fixture.file);
    let ticks = 0;
    const ticking = setInterval(() => {
      ticks += 1;
    }, 1);
    let done = false;
    const writing = relay.run(fixture.statements.leases.ensureShards()).then((result) => {
      done = true;
      return result;
    });
    // Some turns of the loop, in which the write has tried and could not.
    while (ticks < 30) await new Promise((resolve) => setImmediate(resolve));
    expect(done).toBe(false);
    await holder.release();
    expect((await writing).affected).toBe(1);
    clearInterval(ticking);
  });

  test("a write that waits too long ends as a conflict without effect, and the session stays usable", async () => {
    const relay = await fixture.session({ lockWaitTimeoutMs: 50 });
    user.exec("BEGIN IMMEDIATE");
    const ensure = fixture.statements.leases.ensureShards();
    await expect(relay.run(ensure)).rejects.toMatchObject({ code: "DATABASE_CONFLICT", retriable: true });
    await expect(relay.transaction((tx) => tx.run(ensure))).rejects.toMatchObject({ code: "DATABASE_CONFLICT" });
    user.exec("ROLLBACK");
    expect(relay.dead).toBe(false);
    expect((await relay.run(ensure)).affected).toBe(1);
  });

  test("a transaction of ours takes the write lock at once, and gives it back when its work throws", async () => {
    const relay = await fixture.session();
    user.exec("PRAGMA busy_timeout = 0");
    const work = relay.transaction(async (tx) => {
      await tx.run(sql("SELECT 1"));
      expect(() => user.exec("BEGIN IMMEDIATE")).toThrow(/locked/);
      throw new Error("the work failed");
    });
    await expect(work).rejects.toThrow("the work failed");
    user.exec("BEGIN IMMEDIATE");
    user.exec("ROLLBACK");
  });

  test("sessions take turns: nobody's statement slips into another's transaction", async () => {
    const [first, second] = [await fixture.session(), await fixture.session()];
    const order: string[] = [];
    await Promise.all([
      first.transaction(async (tx) => {
        await tx.run(fixture.statements.leases.ensureShards());
        await new Promise((resolve) => setImmediate(resolve));
        order.push("transaction");
      }),
      second.run(sql("SELECT 1")).then(() => order.push("statement")),
    ]);
    expect(order).toEqual(["transaction", "statement"]);
  });

  test("a transaction that SQLite ended by itself runs nothing more (rule: ended-transaction)", async () => {
    const session = await fixture.session();
    const work = session.transaction(async (tx) => {
      await tx.run(
        sql("INSERT INTO local_message_relay (table_name, owner, label, seen_at) VALUES ('t', 'a', 'l', 'now')"),
      );
      // What a full disk or an I/O error does: the whole transaction is gone, and the next
      // statement would commit alone.
      await tx
        .run(
          sql(
            "INSERT OR ROLLBACK INTO local_message_relay (table_name, owner, label, seen_at) VALUES ('t', 'a', 'l', 'now')",
          ),
        )
        .catch(() => undefined);
      await expect(tx.run(sql("DELETE FROM local_message_relay"))).rejects.toMatchObject({ code: "TRANSACTION_LOST" });
    });
    await expect(work).rejects.toMatchObject({ code: "TRANSACTION_LOST" });
    expect((await session.run(sql("SELECT * FROM local_message_relay"))).rows).toEqual([]);
  });

  test("an abandoned or closed session runs nothing more", async () => {
    const [abandoned, closed] = [await fixture.session(), await fixture.session()];
    const waiting = [abandoned.run(sql("SELECT 1 AS one")), closed.run(sql("SELECT 1 AS one"))];
    await Promise.all([abandoned.abandon(), closed.close()]);
    const [cut, finished] = await Promise.allSettled(waiting);
    // What had not begun when the session was abandoned never begins; what a closed session was
    // asked for is still done.
    expect(cut).toMatchObject({ status: "rejected", reason: { code: "DATABASE_UNAVAILABLE" } });
    expect(finished).toMatchObject({ status: "fulfilled", value: { rows: [{ one: 1 }] } });
    for (const session of [abandoned, closed]) {
      expect(session.dead).toBe(true);
      await expect((async () => await session.run(sql("SELECT 1")))()).rejects.toMatchObject({
        code: "DATABASE_UNAVAILABLE",
      });
    }
  });

  test("what is no database, and what cannot be in WAL mode, is refused", async () => {
    await expect(
      sqlite({ file: `${fixture.file}/no/such/folder.db` }).connect({ purpose: "tool" }),
    ).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
    });
    await expect(sqlite({ file: fileURLToPath(import.meta.url) }).connect({ purpose: "tool" })).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
    });
    expect(() => sqlite({})).toThrow(/exactly one of file and handle/);
    expect(() => sqlite({ file: "a.db", handle: user })).toThrow(/exactly one of file and handle/);
    expect(() => sqlite({ handle: {} as SqliteHandle })).toThrow(/open handle/);
    // dot-file locking has no shared memory, which is what WAL needs; as on network file systems.
    await expect(
      sqlite({ file: `file:${fixture.file}.none?vfs=unix-dotfile` }).connect({ purpose: "tool" }),
    ).rejects.toMatchObject({
      code: "CONFIGURATION",
    });
  });

  test("versions with the WAL-reset bug are told apart", () => {
    for (const version of ["3.7.0", "3.45.1", "3.51.2", "3.51"]) expect(isSafe(version), version).toBe(false);
    for (const version of ["3.51.3", "3.52.0", "3.53.4", "4.0.0"]) expect(isSafe(version), version).toBe(true);
  });
});

describe("a SQLite database in memory", () => {
  let database: Database;
  const statements = createStatements(sqlite({ file: ":memory:" }).defaultLayout);
  const insert = (key: string): Statement => statements.enqueue.insert([sampleMessage({ key })]);

  async function startScan(): Promise<{ readonly result: Promise<QueryResult>; done: boolean }> {
    const relay = await database.connect({ purpose: "relay" });
    const state = { result: relay.run(statements.relay.scan(scanAll)), done: false };
    void state.result.then(() => {
      state.done = true;
    });
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    return state;
  }

  test("no relay statement runs while a transaction of outbox.transaction is open", async () => {
    database = sqlite({ file: ":memory:" });
    await migrate(database, { layout: database.defaultLayout });
    let scan: Awaited<ReturnType<typeof startScan>> | undefined;
    await expect(
      database.transaction(async (tx) => {
        await tx.run(insert("1"));
        // From outside of this transaction's own work, as a relay's timer would.
        scan = await outside(startScan);
        expect(scan.done).toBe(false);
        throw new Error("rolled back");
      }),
    ).rejects.toThrow("rolled back");
    expect((await scan?.result)?.rows).toEqual([]);
    await database.close();
  });

  // Node 22.13 to 22.15 do not tell: their handles have no isTransaction.
  test.each([true, false])("nor while the user has one open on the handle by hand (it tells: %s)", async (tells) => {
    const plain = await plainHandle(":memory:");
    const handle = tells ? plain : silent(plain);
    database = sqlite({ handle });
    await migrate(database, { layout: database.defaultLayout });
    handle.exec("BEGIN");
    handle.prepare(INSERT).run("1");
    const scan = await startScan();
    expect(scan.done).toBe(false);
    handle.exec("ROLLBACK");
    expect((await scan.result).rows).toEqual([]);
    handle.prepare(INSERT).run("2");
    expect((await (await startScan()).result).rows).toHaveLength(1);
    await database.close();
    handle.close();
  });
});

/** The handle, without what tells of a transaction. */
function silent(handle: SqliteHandle): SqliteHandle {
  return {
    prepare: (text) => handle.prepare(text),
    exec: (text) => handle.exec(text),
    close: () => handle.close(),
  };
}

test("a failed transaction is rolled back on a handle that does not tell of it", async () => {
  const handle = silent(await plainHandle(":memory:"));
  const database = sqlite({ handle });
  const session = await database.connect({ purpose: "relay" });
  const failed = session.transaction(async (tx) => {
    await tx.run(sql("CREATE TABLE t (a INTEGER)"));
    throw new Error("failed");
  });
  await expect(failed).rejects.toThrow("failed");
  expect((await session.run(sql("SELECT 1 FROM sqlite_master WHERE name = 't'"))).rows).toEqual([]);
  await session.close();
  await database.close();
  handle.close();
});

// Node 20 has no node:sqlite; tools/test-matrix.sh runs this on 22 and 24.
if (process.getBuiltinModule?.("node:sqlite") !== undefined)
  test("loading node:sqlite warns of nothing, and other warnings come through", loadsQuietly);

async function loadsQuietly(): Promise<void> {
  const entry = new URL("../../src/databases/sqlite/index.ts", import.meta.url).href;
  const program = `process.emitWarning("heard");
const { sqlite } = await import(${JSON.stringify(entry)});
const database = sqlite({ file: ":memory:" });
await (await database.connect({ purpose: "tool" })).run({ name: "x", text: "SELECT 1", params: [] });
process.emitWarning("heard too", "ExperimentalWarning");`;
  const { stderr } = await promisify(execFile)(
    process.execPath,
    ["--conditions=rowpost-source", "--input-type=module", "-e", program],
    {
      env: { ...process.env, NODE_OPTIONS: "" },
    },
  );
  expect(stderr).toContain("Warning: heard\n");
  expect(stderr).toContain("ExperimentalWarning: heard too");
  expect(stderr).not.toMatch(/SQLite is an experimental/);
}

/**
 * Runs work as if it had been started at the top of the program, outside of any transaction's
 * asynchronous context.
 */
const outside: <T>(work: () => Promise<T>) => Promise<T> = await (async () => {
  const { AsyncResource } = await import("node:async_hooks");
  const resource = new AsyncResource("outside");
  return (work) => resource.runInAsyncScope(work);
})();

/** Another process that holds the file's write lock until it is told to let go. */
async function lockFrom(file: string): Promise<{ release(): Promise<void> }> {
  const program = `
const sqlite = process.getBuiltinModule?.("node:sqlite") ?? (await import("@photostructure/sqlite"));
const handle = new sqlite.DatabaseSync(${JSON.stringify(file)});
handle.exec("BEGIN IMMEDIATE");
console.log("locked");
process.stdin.once("data", () => { handle.exec("COMMIT"); process.exit(0); });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["pipe", "pipe", "inherit"],
    cwd: fileURLToPath(new URL(".", import.meta.url)),
  });
  const lines = createInterface(child.stdout);
  await once(lines, "line");
  return {
    async release() {
      const exit = once(child, "exit");
      child.stdin.write("go\n");
      await exit;
    },
  };
}
