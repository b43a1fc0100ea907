/**
 * Every statement on SQLite: prepared for each layout, and its plan at 200,000 rows of which 99 %
 * are finished.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Session } from "../../src/databases/database.ts";
import { createLayout, messageTableLayout, tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { migrate, printMigrations } from "../../src/databases/sql/migrate.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import { type SqliteFixture, sqliteFixture } from "./sqlite-setup.ts";
import { hotStatements, otherStatements, sampleMessage } from "./statement-samples.ts";

describe("statements on sqlite", () => {
  const custom = createLayout({
    base: messageTableLayout,
    table: "own messages",
    columns: { topic: "order" },
    states: {
      pending: "待发送",
      sending: "发送中",
      sent: "已发送",
      failed: "发送失败",
      consumed: "已消费",
      suspended: "it's held",
    },
  });
  for (const layout of [sqlite({ file: ":memory:" }).defaultLayout, tLocalMessageLayout, messageTableLayout, custom]) {
    test(`all can be prepared and run with the layout ${layout.table}`, async () => {
      const own = `CREATE TABLE "own messages" (id INTEGER PRIMARY KEY AUTOINCREMENT, message_type TEXT NOT NULL, message_key TEXT NOT NULL, "order" TEXT,
  message_body TEXT, state TEXT, retry_count INT, next_retry_at TEXT, last_retry_time TEXT, fail_reason TEXT, message_id TEXT, lock_version INT,
  gmt_create TEXT DEFAULT CURRENT_TIMESTAMP, gmt_modified TEXT, UNIQUE (message_type, message_key))`;
      const fixture = await sqliteFixture(layout, layout === custom ? [own] : []);
      const session = await fixture.session();
      for (const statement of [...hotStatements(fixture.statements), ...otherStatements(fixture.statements)]) {
        await session.run(statement);
      }
      const store = fixture.database.relayStore({ layout });
      await store.open({ sendingMark: "on", statementTimeoutMs: 5_000, lockWaitTimeoutMs: 1_000 });
      await store.close();
      await fixture.drop();
    });
  }

  test("a migration finds nothing to do the second time", async () => {
    const fixture = await sqliteFixture();
    expect((await migrate(fixture.database, { layout: fixture.layout })).applied).toEqual([]);
    await fixture.drop();
  });

  test("schema/sqlite.sql is what the migrations of the default layout are", async () => {
    const database = sqlite({ file: ":memory:" });
    const { migrations } = database.schema({ layout: database.defaultLayout });
    // A change that is meant: npx vitest run
    // packages/rowpost/test/databases/sqlite-statements.test.ts -u
    await expect(printMigrations(migrations)).toMatchFileSnapshot("../../schema/sqlite.sql");
  });

  describe("at 200,000 rows", () => {
    let fixture: SqliteFixture;
    let session: Session;
    beforeAll(async () => {
      fixture = await sqliteFixture();
      const handle = await fixture.handle();
      handle.exec(`WITH RECURSIVE n(g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM n WHERE g < 200000)
INSERT INTO local_message (message_type, message_key, topic, message_body, state, ordering_key, next_retry_at, sent_at)
SELECT 'order.created', 'k' || g, 't' || (g % 20), '{}', CASE WHEN g % 100 <> 0 THEN 2 ELSE CASE (g / 100) % 6 WHEN 3 THEN 1 WHEN 4 THEN 3 WHEN 5 THEN 5 ELSE 0 END END,
  CASE WHEN g % 3 = 0 THEN 'o' || (g % 1000) END, CASE WHEN g % 200 = 0 THEN datetime('now', '-1 minute') END, CASE WHEN g % 100 <> 0 THEN datetime('now') END
FROM n`);
      session = await fixture.session();
    });
    afterAll(() => fixture.drop());

    for (const analyzed of [false, true]) {
      test(`${analyzed ? "analyzed" : "never analyzed"}: no full scan, and nothing sorted in the hot statements`, async () => {
        if (analyzed) await session.run({ name: "analyze", text: "ANALYZE", params: [] });
        for (const statement of [...hotStatements(fixture.statements), ...otherStatements(fixture.statements)]) {
          // A person who asks for everything gets everything.
          if (statement.name === "countByState") continue;
          const plan = await planOf(session, statement);
          const scans = plan.filter((line) => /^SCAN (m|local_message)$/.test(line));
          expect(scans, `${statement.name}\n${statement.text}\n${plan.join("\n")}`).toEqual([]);
          // Rows of a batch are found by their ids, not by walking everything in their state.
          if (
            /json_each\(\?\)/.test(statement.text) &&
            !/_archive AS m/.test(statement.text) &&
            /m\.id (=|IN)/.test(statement.text)
          ) {
            expect(plan, statement.name).toContain("SEARCH m USING INTEGER PRIMARY KEY (rowid=?)");
          }
        }
        for (const statement of hotStatements(fixture.statements)) {
          const plan = await planOf(session, statement);
          // The queues of keys sort their result.
          const sorts = statement.name === "keyQueues" ? [] : plan.filter((line) => line.includes("USE TEMP B-TREE"));
          expect(sorts, `${statement.name}\n${plan.join("\n")}`).toEqual([]);
        }
      });
    }

    test("an array of messages is inserted by one statement, whose ids stand in its order", async () => {
      const messages = Array.from({ length: 300 }, (_, index) => sampleMessage({ key: `array-${index}` }));
      await session.run(fixture.statements.enqueue.insert(messages));
      const { rows } = await session.run({
        name: "look",
        text: "SELECT message_key FROM local_message WHERE message_key LIKE 'array-%' ORDER BY id",
        params: [],
      });
      expect(rows.map((row) => row["message_key"])).toEqual(messages.map(({ key }) => key));
    });
  });

  test("an id is never given twice, although its message was deleted (rule: sqlite-handle)", async () => {
    const fixture = await sqliteFixture();
    const session = await fixture.session();
    const insert = async (key: string): Promise<string> => {
      await session.run(fixture.statements.enqueue.insert([sampleMessage({ key })]));
      const { rows } = await session.run({
        name: "look",
        text: "SELECT max(id) || '' AS id FROM local_message",
        params: [],
      });
      return String(rows[0]?.["id"]);
    };
    const first = await insert("1");
    await session.run(fixture.statements.housekeeping.deleteRows([first]));
    expect(await insert("2")).not.toBe(first);
    await fixture.drop();
  });

  test("instants compare with those that other programs write", async () => {
    const fixture = await sqliteFixture();
    const handle = await fixture.handle();
    const put = (key: string, at: string): unknown =>
      handle.exec(
        `INSERT INTO local_message (message_type, message_key, topic, message_body, next_retry_at) VALUES ('t', '${key}', 'orders', '{}', ${at})`,
      );
    put("past", "datetime('now', '-1 second')");
    put("ahead", "datetime('now', '+5 seconds')");
    put("now", "CURRENT_TIMESTAMP");
    const session = await fixture.session();
    const { rows } = await session.run(
      fixture.statements.relay.scan({
        shards: undefined,
        afterId: "0",
        bodyLimit: Number.MAX_SAFE_INTEGER,
        immediateLimit: 9,
        dueLimit: 9,
      }),
    );
    expect(rows.map((row) => row["message_key"])).toEqual(["past", "now"]);
    await fixture.drop();
  });
});

async function planOf(session: Session, statement: Statement): Promise<string[]> {
  const explained = { ...statement, text: `EXPLAIN QUERY PLAN ${statement.text}` };
  return (await session.run(explained)).rows.map((row) => String(row["detail"]));
}
