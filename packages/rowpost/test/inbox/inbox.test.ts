/** The inbox on each database: what is kept and compared, and transactions of its own. */
import { once } from "node:events";
import { createPool } from "mysql2/promise";
import pg from "pg";
import postgresJs from "postgres";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { createInbox, type Inbox } from "../../src/inbox/index.ts";
import {
  ConfigurationError,
  createOutbox,
  InvalidMessageError,
  MissingAwaitError,
  migrate,
  SchemaError,
  type Transaction,
} from "../../src/index.ts";
import { describeOnEach, type QueuePlace } from "../queue/places.ts";

class Failed extends Error {}

const message = (key: string, type = "order.paid") => ({ type, key });
const unreachable = (): Promise<never> => expect.unreachable("handled twice");

describeOnEach("inbox", (make) => {
  let place: QueuePlace;
  let database: Database;
  let inbox: Inbox;
  beforeEach(async () => {
    place = await make();
    database = place.open();
    inbox = createInbox({ database, consumer: "points" });
    await inbox.migrate();
    await place.query("CREATE TABLE effects (message VARCHAR(255) NOT NULL)");
  });
  afterEach(async () => {
    await place.drop();
  });

  const insertEffect = (tx: Transaction, text: string): Promise<unknown> =>
    tx.query(`INSERT INTO effects (message) VALUES (${database.dialect === "postgres" ? "$1" : "?"})`, [text]);
  const effects = async (): Promise<unknown[]> =>
    (await place.query("SELECT message FROM effects ORDER BY message")).map(({ message: text }) => text);
  const rows = (): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    place.query(
      "SELECT consumer, message_type, message_key, topic, message_id, attempt, handled_by FROM message_inbox",
    );

  it("begins a transaction of its own, and keeps by whom and which copy was handled", async () => {
    const received = { ...message("1"), id: "orders-0@7", attempt: 3, topic: "orders" };
    const named = createInbox({ database, consumer: "points", handledBy: "host-a" });
    const first = await named.handle(database, { message: received }, async (tx) => {
      await insertEffect(tx, "1");
      return 42;
    });
    expect(first).toMatchObject({ outcome: "handled", result: 42 });
    const second = await inbox.handle(database, { message: { ...received, attempt: 4 } }, unreachable);
    expect(second).toMatchObject({ outcome: "duplicate", attempt: 4, handledBy: "host-a" });
    expect(await rows()).toEqual([
      {
        consumer: "points",
        message_type: "order.paid",
        message_key: "1",
        topic: "orders",
        message_id: "orders-0@7",
        attempt: 3,
        handled_by: "host-a",
      },
    ]);
    expect(await effects()).toEqual(["1"]);
  });

  it("leaves nothing of a handler that throws, which is then handled the next time", async () => {
    const failing = inbox.handle(database, { message: message("1") }, async (tx) => {
      await insertEffect(tx, "1");
      throw new Failed();
    });
    await expect(failing).rejects.toBeInstanceOf(Failed);
    expect([await rows(), await effects()]).toEqual([[], []]);
    const next = await inbox.handle(database, { message: message("1") }, (tx) => insertEffect(tx, "1"));
    expect(next.outcome).toBe("handled");
    expect(await effects()).toEqual(["1"]);
  });

  it("is once for each consumer, and tells identities apart byte for byte", async () => {
    const identities = ["A1", "a1", "A1 ", "Á1", "Ａ1", "ß", "ss", "x:y"].map((key) => message(key));
    identities.push(message("1", "order.Paid"), message("1", "order.paid"), message("y", "order.paid:x"));
    for (const each of identities) {
      for (const consumer of ["points", "Points"]) {
        const handled = await inbox.handle(database, { consumer, message: each }, (tx) => insertEffect(tx, each.key));
        expect(handled.outcome, JSON.stringify(each)).toBe("handled");
      }
    }
    for (const each of identities) {
      expect((await inbox.handle(database, { message: each }, unreachable)).outcome).toBe("duplicate");
    }
    expect(await effects()).toHaveLength(2 * identities.length);
  });

  it("takes identities as long as its columns, and refuses what does not fit before any SQL", async () => {
    const longest = { consumer: "𠮷".repeat(64), message: message("𠮷".repeat(255), "𠮷".repeat(128)) };
    await inbox.handle(database, longest, (tx) => insertEffect(tx, "1"));
    expect((await inbox.handle(database, longest, unreachable)).outcome).toBe("duplicate");
    const nobody = createInbox({ database });
    const refused: [Inbox, object][] = [
      [inbox, { message: message("x".repeat(256)) }],
      [inbox, { message: message("") }],
      [inbox, { message: message("1", "x".repeat(129)) }],
      [inbox, { message: { type: "order.paid" } }],
      [inbox, { message: { type: "order.paid", key: 7 } }],
      [inbox, { message: { type: "order.paid", key: null } }],
      [inbox, { message: message("a\0b") }],
      [inbox, { message: message("\ud842") }],
      [inbox, { message: undefined }],
      [inbox, { consumer: "x".repeat(65), message: message("1") }],
      [inbox, { consumer: "", message: message("1") }],
      [nobody, { message: message("1") }],
    ];
    for (const [each, handling] of refused) {
      const refusing = each.handle(database, handling as never, unreachable);
      await expect(refusing, JSON.stringify(handling)).rejects.toBeInstanceOf(InvalidMessageError);
    }
    const misnamed = inbox.handle(database, { message: message("1"), consumers: "x" } as never, unreachable);
    await expect(misnamed).rejects.toThrow(/did you mean "consumer"/);
    await expect(misnamed).rejects.toBeInstanceOf(ConfigurationError);
  });

  it("keeps no note that does not fit, and refuses no message for it", async () => {
    const noted = { ...message("1"), id: "𠮷".repeat(300), topic: "a\0b", attempt: 1.5 };
    await inbox.handle(database, { message: noted }, async () => undefined);
    const [row] = await rows();
    expect(row).toMatchObject({ message_id: "𠮷".repeat(255), topic: null, attempt: null });
  });

  it("says which table is missing, and how to make it", async () => {
    const absent = createInbox({ database, consumer: "points", table: "other_inbox" });
    const handling = absent.handle(database, { message: message("1") }, unreachable);
    await expect(handling).rejects.toBeInstanceOf(SchemaError);
    await expect(handling).rejects.toThrow(/inbox\.migrate\(\)/);
    const { applied, sql } = await absent.migrate({ print: true });
    expect(applied).toEqual([]);
    for (const statement of (sql ?? "").replaceAll(/^-- \d.*$/gm, "").split(/;\n/)) {
      if (statement.trim() !== "") await place.query(statement);
    }
    expect((await absent.handle(database, { message: message("1") }, async () => 1)).outcome).toBe("handled");
    expect(await absent.migrate()).toEqual({ applied: ["1 inbox"], sql: undefined });
    expect(await absent.migrate()).toEqual({ applied: [], sql: undefined });
    expect((await absent.handle(database, { message: message("1") }, unreachable)).outcome).toBe("duplicate");
  });

  it("commits what the handler enqueues with it, and wakes the relay", async () => {
    await migrate(database, { layout: database.defaultLayout });
    const outbox = createOutbox({ database });
    let rings = 0;
    database.doorbell.subscribe(() => (rings += 1));
    const enqueue = (tx: Transaction): Promise<unknown> =>
      outbox.enqueue(tx, { type: "points.given", key: "1", topic: "points", body: {} });
    for (let delivery = 0; delivery < 3; delivery++) await inbox.handle(database, { message: message("1") }, enqueue);
    expect(rings).toBeGreaterThan(0);
    expect(await place.query("SELECT message_key FROM local_message")).toEqual([{ message_key: "1" }]);
  });

  it("works in outbox.transaction, which is refused when a handling in it is not awaited", async () => {
    const outbox = createOutbox({ database });
    await outbox.transaction(async (tx) => {
      await inbox.handle(tx, { message: message("1") }, () => insertEffect(tx, "1"));
      const caught = inbox.handle(tx, { message: message("2") }, async () => {
        await insertEffect(tx, "2");
        throw new Failed();
      });
      await expect(caught).rejects.toBeInstanceOf(Failed);
    });
    expect(await effects()).toEqual(["1"]);
    const forgotten = outbox.transaction(async (tx) => {
      void inbox.handle(tx, { message: message("3") }, () => insertEffect(tx, "3"));
    });
    await expect(forgotten).rejects.toBeInstanceOf(MissingAwaitError);
    const misused = outbox.transaction(async (tx) => {
      await insertEffect(tx, "3");
      void inbox.handle(tx, { message: message("") }, unreachable);
    });
    await expect(misused).rejects.toBeInstanceOf(MissingAwaitError);
    const within = inbox.handle(database, { message: message("4") }, async (tx) => {
      void insertEffect(tx, "4").catch(() => undefined);
    });
    await expect(within).rejects.toBeInstanceOf(MissingAwaitError);
    expect(await effects()).toEqual(["1"]);
    expect(await rows()).toHaveLength(1);
  });

  it("begins on a pool that it is given", async () => {
    const { kind, url } = place.address;
    const deliver = async (pool: unknown, key = "1"): Promise<string[]> => {
      const handle = () => inbox.handle(pool, { message: message(key) }, (tx) => insertEffect(tx as Transaction, key));
      return [(await handle()).outcome, (await handle()).outcome];
    };
    if (kind === "sqlite") return;
    if (kind === "postgres") {
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      const client = await pool.connect();
      client.release();
      expect(await deliver(pool)).toEqual(["handled", "duplicate"]);
      const ended = once(client, "end");
      await pool.end();
      await ended;
      const sql = postgresJs(url, { max: 1, onnotice: () => {} });
      expect(await deliver(sql, "2")).toEqual(["handled", "duplicate"]);
      await sql.end();
    } else {
      const pool = createPool(url.replace(/^mariadb:/, "mysql:"));
      expect(await deliver(pool)).toEqual(["handled", "duplicate"]);
      await pool.end();
    }
    expect(await effects()).toEqual(kind === "postgres" ? ["1", "2"] : ["1"]);
  });

  it("says what it takes when it gets something else", async () => {
    for (const on of [undefined, null, {}, place.open(), "pool"]) {
      const refused = inbox.handle(on, { message: message("1") }, unreachable);
      await expect(refused).rejects.toThrow(/^inbox\.handle takes the database that the inbox was made with, a pool/);
    }
  });
});
