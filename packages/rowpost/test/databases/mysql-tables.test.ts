/**
 * Enqueue, time, bytes and tables on MySQL and MariaDB: what depends on the server and not on the
 * flow.
 */
import { createPool } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { mysql } from "../../src/databases/mysql/index.ts";
import { createNames } from "../../src/databases/mysql/names.ts";
import { MESSAGE_TABLE, T_LOCAL_MESSAGE } from "../../src/databases/mysql/seed-tables.ts";
import {
  createLayout,
  defaultLayout,
  messageTableLayout,
  tLocalMessageLayout,
} from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { DuplicateMessageError, SchemaError, TransactionRequiredError } from "../../src/runtime/errors.ts";
import { createTestDatabase, describeWithService } from "../services.ts";
import {
  claimedTokens,
  MYSQL_SERVICES,
  type MysqlFixture,
  message,
  mysqlFixture,
  scanAll,
  scannedTokens,
  takeAll,
} from "./mysql-setup.ts";

describeWithService(MYSQL_SERVICES, "enqueue", (service) => {
  let own: MysqlFixture;
  let seed: MysqlFixture;
  beforeAll(async () => {
    own = await mysqlFixture(service.name, defaultLayout);
    seed = await mysqlFixture(service.name, tLocalMessageLayout);
  });
  afterAll(async () => {
    await own.drop();
    await seed.drop();
  });
  beforeEach(async () => {
    await own.plain.query("DELETE FROM local_message");
    await seed.plain.query("DELETE FROM t_local_message");
  });

  test("outside a transaction nothing is written", async () => {
    const writer = own.database.messageWriter({ layout: defaultLayout });
    const tx = own.database.executor(own.plain.handle);
    await expect(writer.insert(tx, [message()], { duplicates: "throw" })).rejects.toBeInstanceOf(
      TransactionRequiredError,
    );
    expect(await own.plain.query("SELECT id AS id FROM local_message")).toEqual([]);
  });

  test("the statement itself refuses, or with autocommit off accepts", async () => {
    if (service.name !== "mariadb") return; // MySQL has no @@in_transaction: there the executor is asked, in the test before.
    const writer = own.database.messageWriter({ layout: defaultLayout });
    const blind = {
      kind: "blind",
      run: async (statement: { text: string; params: readonly unknown[] }) => ({
        rows: await own.plain.query(statement.text, statement.params),
        affected: 1,
      }),
    };
    await expect(writer.insert(blind, [message()], { duplicates: "throw" })).rejects.toBeInstanceOf(
      TransactionRequiredError,
    );
    await own.plain.query("SET autocommit = 0");
    try {
      await writer.insert(blind, [message({ type: "订单💥".repeat(16) })], { duplicates: "throw" });
      expect(await own.plain.query("SELECT message_type AS type FROM local_message")).toEqual([
        { type: "订单💥".repeat(16) },
      ]);
      await own.plain.query("ROLLBACK");
    } finally {
      await own.plain.query("SET autocommit = 1");
    }
    expect(await own.plain.query("SELECT id AS id FROM local_message")).toEqual([]);
  });

  test("keys that differ in case, accent or a trailing blank are different messages in our table", async () => {
    await own.enqueue({ key: "A1" }, { key: "a1" }, { key: "á1" }, { key: "a1 " }, { key: "ａ1" });
    expect(await own.plain.query("SELECT message_key AS k FROM local_message WHERE message_key = 'a1'")).toEqual([
      { k: "a1" },
    ]);
  });

  test("on a seed's table a key that its collation takes for another one is never ignored (rule: exact-bytes)", async () => {
    await seed.enqueue({ key: "A1" });
    const writer = seed.database.messageWriter({ layout: tLocalMessageLayout });
    await seed.database.transaction(async (tx) => {
      const ignore = { duplicates: "ignore" } as const;
      expect(await writer.insert(tx, [message({ key: "A1" }), message({ key: "b" })], ignore)).toEqual([
        "duplicate",
        "enqueued",
      ]);
      const folded = writer.insert(tx, [message({ key: "a1" })], ignore);
      await expect(folded).rejects.toBeInstanceOf(DuplicateMessageError);
      // The transaction goes on.
      expect(await writer.insert(tx, [message({ key: "c" })], ignore)).toEqual(["enqueued"]);
    });
    const rows = await seed.plain.query("SELECT biz_key AS k FROM t_local_message ORDER BY id");
    expect(rows.map(({ k }) => k)).toEqual(["A1", "b", "c"]);
  });

  test("an array with one duplicate leaves nothing behind, and names the duplicate", async () => {
    await own.enqueue({ key: "there" });
    const writer = own.database.messageWriter({ layout: defaultLayout });
    await own.database.transaction(async (tx) => {
      const error: unknown = await writer
        .insert(tx, [message({ key: "new" }), message({ key: "there" })], { duplicates: "throw" })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(DuplicateMessageError);
      if (error instanceof DuplicateMessageError)
        expect(error.duplicates).toEqual([{ type: "order.created", key: "there" }]);
    });
    expect(await own.plain.query("SELECT message_key AS k FROM local_message")).toEqual([{ k: "there" }]);
  });

  test("what others commit meanwhile is found although this transaction's snapshot is older", async () => {
    const user = await own.connect();
    await user.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await user.query("BEGIN");
    await user.query("SELECT COUNT(*) AS n FROM local_message");
    await own.enqueue({ key: "meanwhile" });
    const writer = own.database.messageWriter({ layout: defaultLayout });
    const tx = own.database.executor(user.handle);
    const statuses = await writer.insert(tx, [message({ key: "mine" }), message({ key: "meanwhile" })], {
      duplicates: "ignore",
    });
    expect(statuses).toEqual(["enqueued", "duplicate"]);
    await user.query("COMMIT");
  });

  test("delays count from the server's clock whatever the user's time zone is, and are never early", async () => {
    for (const [fixture, columns] of [
      [own, "deliver_at AS at, gmt_create AS now"],
      [seed, "next_retry_time AS at, gmt_create AS now"],
    ] as const) {
      const { layout } = fixture;
      const user = await fixture.connect();
      await user.query("SET time_zone = '+05:30'");
      // 0.7 s past the full second: MySQL would round up, MariaDB cut off.
      await user.query("SET timestamp = 1900000000.7");
      await user.query("BEGIN");
      const writer = fixture.database.messageWriter({ layout });
      const tx = fixture.database.executor(user.handle);
      const deliverAtMs = 1_900_000_000_650;
      await writer.insert(tx, [message({ key: "delay", delayMs: 200 }), message({ key: "instant", deliverAtMs })], {
        duplicates: "throw",
      });
      await user.query("COMMIT");
      const rows = await fixture.plain.query(`SELECT ${columns} FROM ${layout.table} ORDER BY id`);
      // 1,900,000,000 is 2030-03-17 17:46:40 UTC, the zone of the test servers.
      expect(rows.map(({ at }) => at)).toEqual(
        layout === defaultLayout
          ? ["2030-03-17 17:46:40.900", "2030-03-17 17:46:40.650"]
          : ["2030-03-17 17:46:41", "2030-03-17 17:46:41"],
      );
      expect(String(rows[0]?.["now"])).toMatch(/^2030-03-17 17:46:40(\.700)?$/);
    }
  });

  test("a retry time is never early in a column of whole seconds", async () => {
    const { plain } = own;
    const { later } = createNames(tLocalMessageLayout);
    await plain.query("CREATE TEMPORARY TABLE clock (at DATETIME)");
    await plain.query("SET timestamp = 1900000000.7");
    await plain.query(
      `INSERT INTO clock VALUES (${later("100")}), (${later("300")}), (${later("301")}), (${later("1300")})`,
    );
    await plain.query("SET timestamp = DEFAULT");
    const rows = await plain.query("SELECT UNIX_TIMESTAMP(at) - 1900000000 AS seconds FROM clock");
    expect(rows.map(({ seconds }) => Number(seconds))).toEqual([1, 1, 2, 2]);
  });
});

describeWithService(MYSQL_SERVICES, "tables", (service) => {
  const words = createLayout({
    base: messageTableLayout,
    states: {
      pending: "待发送",
      sending: "发送中",
      sent: "已发送",
      failed: "发送失败",
      consumed: "已消费",
      suspended: "已挂起",
    },
  });

  for (const [layout, ddl] of [
    [tLocalMessageLayout, T_LOCAL_MESSAGE],
    [messageTableLayout, MESSAGE_TABLE],
    [words, MESSAGE_TABLE],
  ] as const) {
    const title = layout === words ? "with words in Chinese" : "";
    test(`a plain client's row in the seed's own ${layout.table} goes its way ${title}`, async () => {
      const fixture = await mysqlFixture(service.name, layout, [ddl]);
      try {
        const { columns, states, table } = layout;
        const others = columns.createdBy === undefined ? "gmt_create, gmt_modified" : "created_by, updated_by";
        const values = columns.createdBy === undefined ? "NOW(), NOW()" : "'shop', 'shop'";
        const insert = `INSERT INTO ${table} (${columns.messageType}, ${columns.messageKey}, topic, message_body, ${columns.state}, ${others})`;
        for (const key of ["a", "b", "汉"])
          await fixture.plain.query(`${insert} VALUES ('t', ?, 'orders', '{}', ?, ${values})`, [key, states.pending]);
        await fixture.plain.query(`${insert} VALUES ('t', 'odd', 'orders', '{}', ?, ${values})`, [
          typeof states.pending === "number" ? 77 : "zzz",
        ]);

        const store = await fixture.openStore();
        const fence = await takeAll(store, "me");
        const rows = await scanAll(store);
        expect(rows.map(({ key }) => key)).toEqual(["a", "b", "汉"]);
        const tokens = scannedTokens(rows);
        expect(await store.claim({ fence, rows: tokens })).toBe(3);
        const targets = ["sent", "pending", "failed"] as const;
        const outcomes = claimedTokens(tokens, layout).map((row, index) => ({
          ...row,
          toState: targets[index] ?? "sent",
          messageId: index === 0 ? "receipt-1" : null,
          retryDelta: index === 0 ? (0 as const) : (1 as const),
          deliveryDelta: 0 as const,
          nextRetryInMs: index === 1 ? 60_000 : null,
          failReason: index === 0 ? null : "没有主题 💥",
        }));
        expect(await store.settle({ fence, outcomes, elapsedMs: 3, from: "sending" })).toEqual([]);
        expect(await store.housekeeping.failUnknownStates({ limit: 10 })).toHaveLength(1);
        const admin = fixture.database.messageAdmin({ layout });
        const listed = (await admin.list({ filter: {}, limit: 10 })).messages;
        await admin.close();
        expect(listed.map(({ key, state }) => [key, state])).toEqual([
          ["odd", "failed"],
          ["汉", "failed"],
          ["b", "pending"],
          ["a", "sent"],
        ]);
        expect(listed[1]?.failReason).toBe("没有主题 💥");
        expect(listed[3]?.messageId).toBe(columns.messageId === undefined ? undefined : "receipt-1");
        expect(listed[2]?.nextRetryAt).not.toBeNull();
      } finally {
        await fixture.drop();
      }
    });
  }

  describe("migrations", () => {
    test("two at once agree; one that was killed half way is run again; a third finds nothing to do", async () => {
      const server = await createTestDatabase(service.name);
      const { url } = server;
      const database = mysql({ url });
      try {
        const [first] = database.schema({ layout: defaultLayout }).migrations;
        const session = await database.connect({ purpose: "tool" });
        // The table is there and its version is not: DDL commits by itself.
        for (const text of first?.statements ?? []) await session.run({ name: "half", text, params: [] });
        await session.close();
        const reports = await Promise.all([1, 2].map(() => migrate(database, { layout: defaultLayout })));
        expect(reports.map(({ applied }) => applied.length).sort((left, right) => left - right)).toEqual([0, 12]);
        expect((await migrate(database, { layout: defaultLayout })).applied).toEqual([]);
        expect((await migrate(database, { layout: tLocalMessageLayout })).applied).toHaveLength(12);
      } finally {
        await database.close();
        await server.drop();
      }
    });

    test("an open names everything that is missing, and the command that makes it", async () => {
      const server = await createTestDatabase(service.name);
      const { url } = server;
      const database = mysql({ url });
      const store = database.relayStore({ layout: defaultLayout });
      const options = { sendingMark: "on", statementTimeoutMs: 5_000, lockWaitTimeoutMs: 1_000 } as const;
      try {
        const nothing = store.open(options);
        await expect(nothing).rejects.toBeInstanceOf(SchemaError);
        await expect(nothing).rejects.toThrow(
          /local_message is missing.*local_message_shard is missing.*rowpost migrate --database/s,
        );
        await migrate(database, { layout: defaultLayout });
        const session = await database.connect({ purpose: "tool" });
        await session.run({ name: "drop", text: "ALTER TABLE local_message DROP COLUMN headers", params: [] });
        await expect(store.open(options)).rejects.toThrow(/column local_message\.headers is missing/);
        await session.run({ name: "add", text: "ALTER TABLE local_message ADD COLUMN headers TEXT NULL", params: [] });
        const folding =
          "ALTER TABLE local_message MODIFY message_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL";
        await session.run({ name: "fold", text: folding, params: [] });
        await expect(store.open(options)).rejects.toThrow(/message_key has the collation utf8mb4_general_ci/);
        await session.close();
      } finally {
        await store.close();
        await database.close();
        await server.drop();
      }
    });
  });

  test("a session over a user's pool has connections of its own, and the pool keeps its settings", async () => {
    const server = await createTestDatabase(service.name);
    const { url } = server;
    const pool = createPool({ uri: url.replace(/^mariadb:/, "mysql:"), connectionLimit: 1 });
    const database = mysql({ pool });
    try {
      const before = await pool.query("SELECT @@time_zone AS zone, @@innodb_lock_wait_timeout AS wait");
      // With the only connection of the pool busy a session can still be opened.
      const borrowed = await pool.getConnection();
      const session = await database.connect({ purpose: "relay", lockWaitTimeoutMs: 2_000 });
      const { rows } = await session.run({
        name: "zone",
        text: "SELECT @@time_zone AS zone, @@innodb_lock_wait_timeout AS wait",
        params: [],
      });
      expect(rows.map(({ zone, wait }) => [zone, Number(wait)])).toEqual([["+00:00", 2]]);
      borrowed.release();
      await session.close();
      const after = await pool.query("SELECT @@time_zone AS zone, @@innodb_lock_wait_timeout AS wait");
      expect(after[0]).toEqual(before[0]);
      expect(database.label).not.toContain("root");
    } finally {
      await database.close();
      await pool.end();
      await server.drop();
    }
  });
});
