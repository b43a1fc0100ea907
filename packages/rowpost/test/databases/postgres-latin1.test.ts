/**
 * A database whose encoding lacks the letters of what we write beside messages: a report that is
 * refused hides which topic rests, and why.
 */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createOutbox, createRelay, defaultLayout, memory, migrate } from "../../src/index.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { describeWithService } from "../services.ts";

describeWithService("postgres", "LATIN1", ({ address }) => {
  const name = `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  const admin = new pg.Client({ connectionString: address });
  let database: Database;
  beforeAll(async () => {
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`);
    const url = new URL(address);
    url.pathname = `/${name}`;
    database = postgres({ url: url.href });
    await migrate(database, { layout: defaultLayout });
  });
  afterAll(async () => {
    await database?.close();
    await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await admin.end();
  });

  test("a relay's report in Chinese is there, letter for letter", async () => {
    const reason = "连不上消息中间件";
    const refused = { status: "failed", scope: "connection", retriable: true, code: "ECONNREFUSED", reason } as const;
    const clock = createManualClock();
    const relay = createRelay({ database, broker: memory({ outcome: () => refused }), clock, logger: "silent" });
    const outbox = createOutbox({ database });
    await outbox.transaction((tx) => outbox.enqueue(tx, { type: "order", key: "1", topic: "orders", body: "" }));
    await relay.tick();
    await clock.advance(10_000);
    await relay.tick();
    const messageAdmin = database.messageAdmin({ layout: defaultLayout });
    const { instances } = await messageAdmin.status();
    await messageAdmin.close();
    await relay.stop();
    expect(instances.map(({ report }) => report?.brokers[0]?.reason)).toEqual([`ECONNREFUSED: ${reason}`]);
  });

  test("so is its label, with which it keeps its lease", async () => {
    const label = "é漢字";
    const relay = createRelay({ database, broker: memory(), label, logger: "silent" });
    const messageAdmin = database.messageAdmin({ layout: defaultLayout });
    await relay.tick();
    const { instances } = await messageAdmin.status();
    expect(instances.map((each) => each.label)).toContain(label);
    await messageAdmin.close();
    await relay.stop();
  });

  test("so is what alerts remember", async () => {
    const alerts = database.alerts({ layout: defaultLayout });
    const state = JSON.stringify({ told: "订单 topic" });
    await alerts.take({ owner: "one", leaseMs: 10_000 });
    expect(await alerts.save({ owner: "one", leaseMs: 10_000, state })).toBe(true);
    expect(JSON.parse((await alerts.read()).state ?? "")).toEqual({ told: "订单 topic" });
    await alerts.close();
  });
});
