/**
 * What is stored is what was given, or nothing (rule: exact-text): pools and servers whose settings
 * would change a message's text, with the check of the session and without it.
 */
import { createPool as createMariadbPool } from "mariadb";
import { createPool, type PoolOptions } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import { ConfigurationError, createOutbox } from "../../src/index.ts";
import type { Executor } from "../../src/transactions/executor.ts";
import { describeWithService } from "../services.ts";
import { MYSQL_SERVICES, type MysqlFixture, message, mysqlFixture } from "./mysql-setup.ts";

const TEXT = "张𠮷";
const NO_ESCAPES = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')";
const [WORD, TOPIC] = ["forged", "payments"].map((text) => `0x${Buffer.from(text).toString("hex")}`);
const REST = `NULL, NULL, NULL, ${WORD}, ${WORD}, NOW(3), NOW(3)`;
/** Where a backslash escapes nothing it ends its value and its row, and adds a row of its own. */
const FORGING = `x', ${REST}), (0, ${WORD}, ${WORD}, ${TOPIC}, ${WORD}, ${REST}) -- `;

describeWithService(MYSQL_SERVICES, "exact text", (service) => {
  let fixture: MysqlFixture;
  beforeAll(async () => {
    fixture = await mysqlFixture(service.name, defaultLayout);
  });
  afterAll(() => fixture?.drop());
  afterEach(async () => {
    await fixture.plain.query("DELETE FROM local_message");
  });

  const stored = () => fixture.plain.query("SELECT topic, message_key AS k, message_body AS body FROM local_message");
  const writer = () => fixture.database.messageWriter({ layout: fixture.layout });

  /** A pool of a user's with settings of its own. */
  function userPool(settings: PoolOptions) {
    const pool = createPool({ uri: fixture.url.replace(/^mariadb:/, "mysql:"), ...settings });
    onTestFinished(() => pool.end());
    return pool;
  }

  /** The same statements without the check of the session. */
  function unchecked(tx: Executor): Executor {
    return {
      ...tx,
      run: ({ name, text, params }) => {
        const without = text.replace(/CASE WHEN @@character_set_client[\s\S]* ELSE (0|TRUE) END/, "$1");
        return tx.run({ name, text: without, params });
      },
    };
  }

  /** Values as text of the statement, as mysql2 and the ORMs on it send them. */
  function asText(query: (sql: string, params: readonly unknown[]) => Promise<unknown>): Executor {
    return {
      kind: "text",
      run: async ({ text, params }) => {
        await query(text, params);
        return { rows: [], affected: 1 };
      },
    };
  }

  for (const charset of ["utf8", "latin1", "gbk"]) {
    for (const count of [1, 9]) {
      test(`a pool with charset ${charset}: ${count} refused, and with utf8mb4 all there`, async () => {
        const messages = Array.from({ length: count }, (_, n) => ({
          type: "order.created",
          key: `${TEXT}-${n}`,
          topic: "orders",
          headers: { source: TEXT },
          body: { text: TEXT },
        }));
        const outbox = createOutbox({ database: fixture.database });
        const enqueueOn = (pool: unknown) => outbox.transaction(pool, (tx) => outbox.enqueue(tx, messages));
        await expect(enqueueOn(userPool({ charset }))).rejects.toBeInstanceOf(ConfigurationError);
        await enqueueOn(userPool({ charset: "utf8mb4" }));
        const keys = (await stored()).map(({ k }) => k);
        expect(new Set(keys)).toEqual(new Set(messages.map(({ key }) => key)));
      });
    }
  }

  test("guard removed: in a session of latin1 other letters are stored, without a word", async () => {
    const connection = await fixture.connect();
    await connection.query("SET NAMES latin1");
    await connection.query("BEGIN");
    const tx = unchecked(asText((sql, params) => connection.query(sql, params)));
    await writer().insert(tx, [message({ key: "k", body: TEXT })], { duplicates: "throw" });
    await connection.query("COMMIT");
    const [row] = await stored();
    expect(row?.["body"]).not.toBe(TEXT);
  });

  for (const count of [1, 9]) {
    test(`under NO_BACKSLASH_ESCAPES, set at any time, a batch of ${count} forges nothing`, async () => {
      const connection = await fixture.connect();
      const tx = fixture.database.executor(connection.handle);
      const bodies = Array.from({ length: count }, (_, n) => message({ key: `k-${n}`, body: FORGING }));
      await connection.query("BEGIN");
      await writer().insert(tx, [message({ key: "before" })], { duplicates: "throw" });
      await connection.query(NO_ESCAPES);
      for (const duplicates of ["throw", "ignore"] as const) {
        await expect(writer().insert(tx, bodies, { duplicates })).rejects.toBeInstanceOf(ConfigurationError);
      }
      await connection.query("COMMIT");
      expect((await stored()).map(({ k }) => k)).toEqual(["before"]);
    });
  }

  test("guard removed: as text under NO_BACKSLASH_ESCAPES a body forges a message", async () => {
    const connection = await fixture.connect();
    await connection.query("BEGIN");
    await connection.query(NO_ESCAPES);
    const tx = unchecked(asText((sql, params) => connection.query(sql, params)));
    await writer().insert(tx, [message({ key: "forging", body: FORGING })], { duplicates: "throw" });
    await connection.query("COMMIT");
    expect((await stored()).map(({ topic }) => topic)).toEqual(["orders", "payments"]);
  });

  test("mysql2 encodes by its option, so SET NAMES utf8mb4 does not help, and is refused", async () => {
    const connection = await userPool({ charset: "utf8" }).getConnection();
    await connection.query("SET NAMES utf8mb4");
    await connection.query("BEGIN");
    expect(() => fixture.database.executor(connection)).toThrow(ConfigurationError);
    connection.release();
  });

  test("outbox.transaction refuses NO_BACKSLASH_ESCAPES with mysql2 before any statement of the user's", async () => {
    const pool = userPool({ connectionLimit: 1 });
    await pool.query(NO_ESCAPES);
    let entered = false;
    const work = createOutbox({ database: fixture.database }).transaction(pool, async () => {
      entered = true;
    });
    await expect(work).rejects.toBeInstanceOf(ConfigurationError);
    expect(entered).toBe(false);
  });

  test("a relay's session over a pool with another charset reads and writes utf8mb4", async () => {
    const { hostname, port, pathname, username } = new URL(fixture.url);
    const pool = createMariadbPool({
      host: hostname,
      port: Number(port),
      user: username,
      database: pathname.slice(1),
      charset: "latin1",
      allowPublicKeyRetrieval: true,
    });
    onTestFinished(() => pool.end());
    const session = await mariadb({ pool }).connect({ purpose: "relay" });
    try {
      const { rows } = await session.run({
        name: "echo",
        text: "SELECT ? AS text, HEX(?) AS bytes",
        params: [TEXT, TEXT],
      });
      expect(rows).toEqual([{ text: TEXT, bytes: Buffer.from(TEXT).toString("hex").toUpperCase() }]);
    } finally {
      await session.close();
    }
  });
});
