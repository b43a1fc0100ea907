/** What is told, and what is not, on every database. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { reconcile } from "../../src/admin/index.ts";
import { words as mysql } from "../../src/databases/mysql/words.ts";
import { words as postgres } from "../../src/databases/postgres/words.ts";
import { spelled } from "../../src/databases/sql/cold.ts";
import { messageTableLayout, tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { repeatedRows, userRows } from "../../src/databases/sql/reconciling/statements.ts";
import { words as sqlite } from "../../src/databases/sqlite/words.ts";
import { ConfigurationError, createOutbox, migrate } from "../../src/index.ts";
import { describeOnEach, type QueuePlace } from "../queue/places.ts";
import { openShop, PAID, type Shop } from "./shop.ts";

describeOnEach("reconcile", (make) => {
  let place: QueuePlace;
  let shop: Shop;
  beforeEach(async () => {
    place = await make();
    shop = await openShop(place);
  });
  afterEach(() => place.drop());

  it("tells what does not add up, and nothing else", async () => {
    await shop.order("good");
    await shop.message({ key: "good" });
    await shop.order("archived");
    await shop.message({ key: "archived", table: "local_message_archive" });
    await shop.order("no message");
    // A collation that folds case would take the one for the other.
    await shop.order("Case");
    await shop.message({ key: "case", ago: 31 });
    // Its row is a bit older than the window's part, or younger: no clock is exact.
    await shop.order("edge", 251);
    await shop.message({ key: "edge", ago: 249 });
    await shop.message({ key: "no receipt", receipt: "NULL", ago: 32 });
    await shop.order("no receipt");
    await shop.message({ key: "waits", nextRetryAt: shop.ago(-60) });
    await shop.order("waits");
    await shop.message({ key: "late", nextRetryAt: shop.ago(20), ago: 33 });
    await shop.order("late");
    await shop.message({ key: "told", nextRetryAt: "'9999-12-31 00:00:00'", ago: 34 });
    await shop.order("told");
    // Neither in the window nor of this type; still on its way.
    await shop.message({ key: "new", ago: 1 });
    await shop.message({ key: "other", type: "stock.moved" });
    await shop.message({ key: "pending", state: 0, receipt: "NULL" });
    await shop.order("pending");

    const { all, found, report } = await shop.reconcile();
    expect([...found].sort()).toEqual([
      "no-business-row case",
      "no-message Case",
      "no-message no message",
      "no-receipt no receipt",
      "unconfirmed late",
      "unconfirmed told",
    ]);
    expect(report).toMatchObject({
      complete: true,
      findings: 6,
      notes: [],
      counts: { "no-message": 2, "no-business-row": 1, "no-receipt": 1, unconfirmed: 2, "consumed-twice": 0 },
      looked: { businessRows: 10, messages: 10 },
    });
    const late = all.find(({ key }) => key === "late");
    expect(late?.advice).toContain(`rowpost retry --resend --id ${late?.id}`);
    expect(Date.parse(late?.at ?? "")).toBeLessThan(Date.now() - 30 * 60_000);
  });

  it("does not tell what retention may have deleted", async () => {
    // One that waits for its confirmation is kept where the others are deleted.
    await shop.query(`UPDATE local_message SET next_retry_at = ${shop.ago(-60)}`);
    await shop.order("deleted", 150);
    await shop.order("second", 100);
    await shop.message({ key: "second", ago: 100 });
    await shop.order("missing", 60);
    const told = await shop.reconcile();
    expect(told.found).toEqual(["no-message missing"]);
    expect(told.report).toMatchObject({
      complete: false,
      notes: [expect.stringMatching(/^1 business rows .* deleted/)],
    });
    expect((await shop.reconcile({ keptForMs: 86_400_000 })).found).toEqual([
      "no-message deleted",
      "no-message missing",
    ]);
    const none = await shop.reconcile({ keptForMs: 0 });
    expect(none.found).toEqual([]);
    expect(none.report.notes).toEqual([expect.stringMatching(/^2 business rows/)]);
  });

  it("goes by when messages were finished, as retention does", async () => {
    await shop.query(`UPDATE local_message SET next_retry_at = ${shop.ago(-60)}`);
    await shop.order("deleted", 150);
    // Delayed: written before the other, and sent long after it was deleted.
    await shop.order("delayed", 200);
    await shop.message({ key: "delayed", ago: 200 });
    await shop.query(`UPDATE local_message SET sent_at = ${shop.ago(100)} WHERE message_key = 'delayed'`);
    await shop.order("missing", 60);
    const { found, report } = await shop.reconcile();
    expect(found).toEqual(["no-message missing"]);
    expect(report.notes).toEqual([expect.stringMatching(/^1 business rows .* was finished at /)]);
  });

  it("does not tell rows of a query without times, which may be of any", async () => {
    await shop.order("of last year", 600_000);
    const businessQuery = "SELECT order_no AS message_key FROM orders";
    const from = new Date(Date.now() - 100 * 60_000);
    const { found, report } = await shop.reconcile({ businessQuery, from });
    expect(found).toEqual([]);
    expect(report.complete).toBe(false);
    expect(report.notes).toEqual([expect.stringMatching(/^1 business rows .* with :from and :to in it/)]);
  });

  it("says so when the query finds nothing where messages are", async () => {
    const businessQuery = `${PAID} AND order_no = 'none'`;
    const { found, report } = await shop.reconcile({ businessQuery });
    expect(found).toEqual(["no-business-row first"]);
    expect(report).toMatchObject({
      complete: false,
      notes: [expect.stringMatching(/returned no row, and 1 messages/)],
    });
  });

  it("counts confirmations of messages that were not there, and does not tell them", async () => {
    const outbox = createOutbox({ database: shop.database });
    await outbox.confirm([
      { type: "order.paid", key: "first" },
      { type: "order.paid", key: "ghost" },
      { type: "another", key: "ghost" },
    ]);
    const to = new Date(Date.now() + 60_000);
    const { found, report } = await shop.reconcile({ to });
    expect(found).toEqual([]);
    expect(report).toMatchObject({
      complete: true,
      notes: [expect.stringMatching(/^1 confirmations were of messages/)],
    });
    expect((await shop.reconcile()).report.notes).toEqual([]);
  });

  it("runs one statement, whatever the query says", async () => {
    const { database } = shop;
    const words = { mysql, postgres, sqlite }[database.dialect];
    const key = "SELECT '1' AS message_type, '2' AS message_key";
    const text = `${key}) AS q; COMMIT; BEGIN READ WRITE; DELETE FROM orders; COMMIT; SELECT * FROM (${key}`;
    const session = await database.connect({ purpose: "tool", snapshot: true });
    for (const statement of [userRows, repeatedRows]) {
      const query = spelled(words, statement({ text, typed: true, limit: 1 }));
      await session.transaction((tx) => tx.run(query)).catch(() => undefined);
    }
    await session.close();
    expect((await shop.reconcile()).report.looked.businessRows).toBe(1);
  });

  it("compares several types, and a query without times", async () => {
    await shop.message({ key: "first", type: "order.closed", ago: 100 });
    await shop.message({ key: "lone", type: "order.closed", ago: 100 });
    const businessQuery =
      "SELECT order_no AS message_key, 'order.paid' AS message_type FROM orders UNION ALL SELECT order_no, 'order.closed' FROM orders;";
    const { found } = await shop.reconcile({ types: ["order.paid", "order.closed"], businessQuery });
    expect(found).toEqual(["no-business-row lone"]);
  });

  it("finds what was consumed twice, and handled without being written", async () => {
    for (const key of ["first", "a", "a", "b", "B", "b", "b"]) await shop.query(`INSERT INTO points VALUES ('${key}')`);
    await shop.handled("first");
    await shop.handled("ghost");
    await shop.handled("stranger", { type: "their.own" });
    await shop.handled("old", { ago: 198 });
    await shop.handled("now", { ago: 1 });
    await shop.handled("elsewhere", { consumer: "stock" });
    const options = {
      businessQuery: undefined,
      inbox: { consumer: "points" },
      effects: { query: "SELECT order_no AS message_key FROM points" },
    };
    const { all, found, report } = await shop.reconcile(options);
    expect([...found].sort()).toEqual(["consumed-twice a", "consumed-twice b", "unknown-to-producer ghost"]);
    expect(all.find(({ key }) => key === "b")?.problem).toContain("3 times");
    expect(all.find(({ key }) => key === "ghost")).toMatchObject({
      consumer: "points",
      problem: /b-ghost of points, on host-1/,
    });
    expect(report.looked.handlings).toBe(4);
    expect(report.notes).toEqual([expect.stringMatching(/^1 handled messages are not there/)]);
    const all2 = await shop.reconcile({ ...options, effects: undefined, types: undefined, inbox: {} });
    expect(all2.found).toEqual(["unknown-to-producer ghost", "unknown-to-producer elsewhere"]);
    expect(all2.report.notes.at(-1)).toMatch(/1 handled messages of type their.own were passed over/);
  });

  it("waits for who is told, who may use the same database", async () => {
    for (const key of ["a", "b", "c"]) await shop.order(key);
    const written: string[] = [];
    await reconcile({
      database: shop.database,
      types: ["order.paid"],
      businessQuery: PAID,
      async onFinding({ key }) {
        await shop.database.transaction((tx) => tx.query(`DELETE FROM orders WHERE order_no = '${key}'`));
        written.push(key);
      },
    });
    expect(written.sort()).toEqual(["a", "b", "c"]);
    expect((await shop.reconcile()).found).toEqual([]);
  });

  it("reads pages of the inbox, also where many were handled at once", async () => {
    const instant = shop.database.dialect === "sqlite" ? "substr" : "SUBSTRING";
    const digits =
      "(SELECT 0 AS d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
    await shop.query(`INSERT INTO message_inbox (consumer, message_type, message_key, handled_by, handled_at)
      SELECT 'points', 'order.paid', CONCAT(${instant}('abc', 1 + a.d % 3, 1), a.d, b.d, c.d, d.d), 'test', ${shop.ago(30)}
      FROM ${digits} AS a, ${digits} AS b, ${digits} AS c, (SELECT 0 AS d UNION SELECT 1 UNION SELECT 2) AS d`);
    const { found, report } = await shop.reconcile({ businessQuery: undefined, inbox: {} });
    expect(report.looked.handlings).toBe(3_000);
    expect(new Set(found).size).toBe(3_000);
  });

  it("refuses what it could not do, and a query that is none", async () => {
    const refused = async (options: object): Promise<void> => {
      await expect(shop.reconcile(options)).rejects.toThrow(ConfigurationError);
    };
    await refused({ businessQuery: "DELETE FROM orders" });
    await refused({ businessQuery: "SELECT order_no FROM orders" });
    await refused({ businessQuery: "SELECT order_no AS message_key FROM orders WHERE paid_at > :from" });
    await refused({ businessQuery: "SELECT order_no AS message_key FROM orders WHERE 1 < $1" });
    await refused({ types: undefined });
    await refused({ types: ["a", "b"] });
    await refused({ from: new Date() });
    await refused({ timeZone: "Mars/Olympus" });
    await refused({ slackMs: -1 });
    await refused({ busynessQuery: PAID });
    expect(await shop.query("SELECT order_no FROM orders")).toHaveLength(1);
  });

  it("compares wall clocks of another zone", async () => {
    const kind = { mysql: "DATETIME(3)", postgres: "timestamp", sqlite: "TEXT" }[shop.database.dialect];
    await shop.query(`CREATE TABLE deliveries (delivery_no VARCHAR(64), left_at ${kind})`);
    await shop.query(`INSERT INTO deliveries VALUES ('d1', ${shop.ago(30 - 480)}), ('d2', ${shop.ago(30)})`);
    const businessQuery = "SELECT delivery_no AS message_key FROM deliveries WHERE left_at >= :from AND left_at < :to";
    const options = { types: ["delivery.left"], businessQuery };
    expect((await shop.reconcile({ ...options, timeZone: "Asia/Shanghai" })).found).toEqual(["no-message d1"]);
    expect((await shop.reconcile(options)).found).toEqual(["no-message d2"]);
  });

  it("works on the tables of the seeds, and says what they cannot tell", async () => {
    const isMysql = shop.database.dialect === "mysql";
    for (const layout of [tLocalMessageLayout, messageTableLayout]) {
      if (layout === messageTableLayout && !isMysql) continue;
      const { createdBy, gmtCreate, gmtModified, messageKey, messageType, state, updatedBy } = layout.columns;
      const people = [createdBy, updatedBy].filter((column) => column !== undefined);
      await migrate(shop.database, { layout });
      const sent = layout.states.sent;
      const written = async (key: string, minutes: number): Promise<void> => {
        await shop.query(`INSERT INTO ${layout.table} (${messageType}, ${messageKey}, topic, message_body, ${[state, gmtCreate, gmtModified, ...people].join(", ")})
          VALUES ('order.paid', '${key}', 'orders', '{}', ${typeof sent === "string" ? `'${sent}'` : sent}, ${[shop.ago(minutes), shop.ago(minutes), ...people.map(() => "'x'")].join(", ")})`);
      };
      await written("first", 200);
      await written("lone", 30);
      await shop.query("DELETE FROM orders WHERE order_no = 'gone'");
      await shop.order("gone");
      const { found, report } = await shop.reconcile({ layout });
      const receipts = layout.columns.messageId === undefined ? [] : ["no-receipt first", "no-receipt lone"];
      expect([...found].sort()).toEqual(["no-business-row lone", "no-message gone", ...receipts]);
      expect(report.notes).toEqual(
        receipts.length > 0 ? [] : ["this table has no column for receipts: they were not looked at"],
      );
    }
  });
});
