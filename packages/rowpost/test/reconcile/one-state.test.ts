/** Business rows and messages are read in one state of the database, which cannot be written. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { createOutbox, messageType, type Transaction } from "../../src/index.ts";
import { describeOnEach, type QueuePlace } from "../queue/places.ts";
import { openShop, type Shop } from "./shop.ts";

/** A lock that the business query waits for: taken, let go, and whether somebody waits for it. */
const GATE = {
  mysql: {
    hold: "SELECT GET_LOCK(DATABASE(), 10)",
    open: "SELECT RELEASE_LOCK(DATABASE())",
    pass: "GET_LOCK(REPLACE(order_no, 'gate', DATABASE()), 30) = 1",
    waiting: "SELECT 1 AS one FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND STATE LIKE 'User lock'",
  },
  postgres: {
    hold: "SELECT pg_advisory_lock(hashtext(current_database()))",
    open: "SELECT pg_advisory_unlock(hashtext(current_database()))",
    pass: "pg_advisory_lock(hashtext(current_database())) IS NOT NULL",
    waiting:
      "SELECT 1 AS one FROM pg_locks JOIN pg_database d ON d.oid = database WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted",
  },
};

describeOnEach("reconcile in one state", (make, { isServer }) => {
  let place: QueuePlace;
  let shop: Shop;
  beforeEach(async () => {
    place = await make();
    shop = await openShop(place);
  });
  afterEach(() => place.drop());

  if (isServer) {
    it("does not see half of a transaction that commits while it reads", async () => {
      const { database } = shop;
      const { dialect } = database;
      const gate = GATE[dialect === "postgres" ? "postgres" : "mysql"];
      const type = messageType("order.paid", { topic: "orders" });
      const outbox = createOutbox({ database, types: [type] });
      await shop.order("gate");
      await shop.message({ key: "gate" });
      const from = new Date(Date.now() - 60 * 60_000);
      const to = new Date(Date.now() + 60 * 60_000);
      const holder = await database.connect({ purpose: "tool" });
      await holder.run({ name: "hold", text: gate.hold, params: [] });
      // The row of the gate is read by the statement that then waits: its state of the table is
      // from before.
      const reading = shop.reconcile({
        from,
        to,
        keptForMs: 86_400_000,
        businessQuery: `SELECT order_no AS message_key FROM orders WHERE paid_at >= :from AND paid_at < :to
          AND (order_no <> 'gate' OR ${gate.pass})`,
      });
      await expect.poll(async () => (await shop.query(gate.waiting)).length, { timeout: 20_000 }).toBe(1);
      await outbox.transaction(async (tx: Transaction) => {
        await tx.query(`INSERT INTO orders VALUES ('a-late', ${shop.ago(1)})`);
        await outbox.enqueue(tx, type.message({ key: "a-late", body: {} }));
      });
      await holder.run({ name: "open", text: gate.open, params: [] });
      const { found, report } = await reading;
      await holder.close();
      expect(found).toEqual([]);
      expect(report.looked).toEqual({ businessRows: 1, messages: 1, handlings: 0 });
      const later = await shop.reconcile({ from, to });
      expect(later.found).toEqual([]);
      expect(later.report.looked).toMatchObject({ businessRows: 2, messages: 2 });
    });
  }

  it("cannot write, and does not keep others from writing", async () => {
    const { database } = shop;
    const session = await database.connect({ purpose: "tool", snapshot: true });
    const insert = { name: "insert", text: "INSERT INTO points VALUES ('x')", params: [] };
    await expect(session.transaction((tx) => tx.run(insert))).rejects.toThrow(/read.?only|readonly/i);
    const other = place.open();
    const reader = await other.connect({ purpose: "tool", snapshot: true });
    const count = { name: "count", text: "SELECT COUNT(*) AS n FROM points", params: [] };
    await reader.transaction(async (tx) => {
      expect(Number((await tx.run(count)).rows[0]?.["n"])).toBe(0);
      await shop.query("INSERT INTO points VALUES ('y')");
      expect(Number((await tx.run(count)).rows[0]?.["n"])).toBe(0);
    });
    expect(await shop.query("SELECT order_no FROM points")).toHaveLength(1);
    await session.close();
    await reader.close();
  });
});
