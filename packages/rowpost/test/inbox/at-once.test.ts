/**
 * Deliveries of one message at once: one is handled, the others wait, or are told to come again.
 */
import { createPool } from "mysql2/promise";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createInbox, type Duplicate, type Handled } from "../../src/inbox/index.ts";
import type { Transaction } from "../../src/index.ts";
import { DatabaseConflictError } from "../../src/runtime/errors.ts";
import { describeOnAll, type QueuePlace } from "../queue/places.ts";
import { signal } from "../transactions/handle-cases.ts";

class Failed extends Error {}

const unreachable = (): Promise<never> => expect.unreachable("handled twice");

/** Statements of this database that are at it: an INSERT that need not wait is never seen. */
const WAITING = {
  mysql:
    "SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'INSERT INTO `message_inbox`%'",
  postgres:
    "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
};

/** Connections that wait for a lock for a moment only. */
function impatient({ kind, url }: QueuePlace["address"]): { readonly database: Database; close(): Promise<unknown> } {
  if (kind === "postgres") {
    return { database: postgres({ url: `${url}?options=-c%20lock_timeout%3D100` }), close: async () => undefined };
  }
  const pool = createPool(url.replace(/^mariadb:/, "mysql:"));
  pool.on("connection", (connection) => void connection.query("SET SESSION innodb_lock_wait_timeout = 1"));
  return { database: mysql({ pool }), close: () => pool.end() };
}

describeOnAll("deliveries at once", (make, { isServer }) => {
  let place: QueuePlace;
  let database: Database;
  beforeEach(async () => {
    place = await make();
    database = place.open();
    await createInbox({ database }).migrate();
    await place.query("CREATE TABLE effects (message VARCHAR(255) NOT NULL)");
  });
  afterEach(async () => {
    await place.drop();
  });

  const effect = (key: string) => (tx: Transaction) =>
    tx.query(`INSERT INTO effects (message) VALUES (${database.dialect === "postgres" ? "$1" : "?"})`, [key]);
  const effects = async (): Promise<unknown[]> =>
    (await place.query("SELECT message FROM effects ORDER BY message")).map(({ message }) => message);

  /** `on` a database object of its own, as another process has it. */
  function deliver<Result>(
    on: Database,
    key: string,
    handler: (tx: Transaction) => Promise<Result>,
  ): Promise<Handled<Result> | Duplicate> {
    return createInbox({ database: on, consumer: "points" }).handle(
      on,
      { message: { type: "order.paid", key } },
      handler,
    );
  }

  function within<Result>(tx: Transaction, key: string, handler: (tx: Transaction) => Promise<Result>) {
    return createInbox({ database, consumer: "points" }).handle(tx, { message: { type: "order.paid", key } }, handler);
  }

  /** SQLite shows nobody who waits, and needs nobody to. */
  async function untilWaiting(count: number): Promise<void> {
    if (database.dialect === "sqlite") return;
    const text = WAITING[database.dialect];
    await expect.poll(async () => Number((await place.query(text))[0]?.["n"]), { timeout: 20_000 }).toBe(count);
  }

  it("one is handled; the others wait for it, and are duplicates", async () => {
    const [began, go] = [signal(), signal()];
    const done: string[] = [];
    const first = deliver(database, "1", async (tx) => {
      began.give();
      await effect("1")(tx);
      await go.given;
      done.push("first");
    });
    await began.given;
    const others = [1, 2, 3].map(async () => {
      const { outcome } = await deliver(place.open(), "1", unreachable);
      done.push(outcome);
    });
    await untilWaiting(3);
    go.give();
    expect((await first).outcome).toBe("handled");
    await Promise.all(others);
    expect(done).toEqual(["first", "duplicate", "duplicate", "duplicate"]);
    expect(await effects()).toEqual(["1"]);
  });

  it("when the first one fails, one of those that wait is handled", async () => {
    const [began, go] = [signal(), signal()];
    const first = deliver(database, "1", async (tx) => {
      began.give();
      await effect("1")(tx);
      await go.given;
      throw new Failed();
    });
    const failing = expect(first).rejects.toBeInstanceOf(Failed);
    await began.given;
    const others = [1, 2, 3].map(() => deliver(place.open(), "1", effect("1")));
    await untilWaiting(3);
    go.give();
    await failing;
    // On MySQL and MariaDB those that wait may deadlock then: they try again by themselves.
    const outcomes = (await Promise.all(others)).map(({ outcome }) => outcome);
    expect(outcomes.sort()).toEqual(["duplicate", "duplicate", "handled"]);
    expect(await effects()).toEqual(["1"]);
  });

  it("a wait that takes too long ends with an error that says to come again, and nothing is left", async () => {
    const [began, go] = [signal(), signal()];
    const first = deliver(database, "1", async (tx) => {
      began.give();
      await effect("1")(tx);
      await go.given;
    });
    await began.given;
    const hasty = isServer ? impatient(place.address) : undefined;
    const refused = hasty === undefined ? withoutPatience() : deliver(hasty.database, "1", unreachable);
    await expect(refused).rejects.toBeInstanceOf(DatabaseConflictError);
    await expect(refused).rejects.toMatchObject({ retriable: true, message: expect.stringMatching(/come again/) });
    go.give();
    await first;
    if (hasty !== undefined) {
      expect((await deliver(hasty.database, "1", unreachable)).outcome).toBe("duplicate");
      await hasty.database.close();
      await hasty.close();
    }
    expect(await effects()).toEqual(["1"]);
  });

  /** On a SQLite handle of the user's, which waits for nothing. */
  async function withoutPatience(): Promise<unknown> {
    const { DatabaseSync } = await import("@photostructure/sqlite");
    const handle = new DatabaseSync(place.address.url, { timeout: 0 });
    const own = sqlite({ handle });
    try {
      handle.exec("BEGIN");
      return await createInbox({ database: own, consumer: "points" }).handle(
        handle,
        { message: { type: "order.paid", key: "1" } },
        unreachable,
      );
    } finally {
      handle.exec("ROLLBACK");
      handle.close();
      await own.close();
    }
  }

  it("a duplicate holds up no other message, whatever its key", async () => {
    for (const key of ["b", "d", "f"]) await deliver(database, key, effect(key));
    const [found, go] = [signal(), signal()];
    const holding = database.transaction(async (tx) => {
      expect((await within(tx, "d", unreachable)).outcome).toBe("duplicate");
      found.give();
      await go.given;
    });
    await found.given;
    // SQLite has one writer, whatever it writes.
    if (isServer) {
      const hasty = impatient(place.address);
      const neighbors = ["a", "c", "e", "g"].map((key) => deliver(hasty.database, key, effect(key)));
      expect((await Promise.all(neighbors)).map(({ outcome }) => outcome)).toEqual(Array(4).fill("handled"));
      await hasty.database.close();
      await hasty.close();
    }
    go.give();
    await holding;
  });

  if (!isServer) return;

  it("two transactions that handle two messages in opposite order: one is told to come again", async () => {
    const [firstHasOne, secondHasTwo] = [signal(), signal()];
    const first = database.transaction(async (tx) => {
      await within(tx, "1", effect("1"));
      firstHasOne.give();
      await secondHasTwo.given;
      await within(tx, "2", effect("2"));
    });
    const second = database.transaction(async (tx) => {
      await firstHasOne.given;
      await within(tx, "2", effect("2"));
      secondHasTwo.give();
      await within(tx, "1", effect("1"));
    });
    const ends = await Promise.allSettled([first, second]);
    expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const { reason } = ends.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(reason).toMatchObject({ code: "DATABASE_CONFLICT", retriable: true });
    expect(await effects()).toEqual(["1", "2"]);
  });

  it("a transaction that began before the first one ended sees the duplicate, or is told to come again", async () => {
    const outcome = database.transaction(async (tx) => {
      await tx.query(
        database.dialect === "postgres" ? "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ" : "SELECT 1 AS one",
      );
      await tx.query("SELECT message FROM effects");
      await deliver(place.open(), "1", effect("1"));
      return (await within(tx, "1", unreachable)).outcome;
    });
    if (database.dialect === "postgres") await expect(outcome).rejects.toMatchObject({ code: "DATABASE_CONFLICT" });
    else expect(await outcome).toBe("duplicate");
    expect(await effects()).toEqual(["1"]);
  });
});
