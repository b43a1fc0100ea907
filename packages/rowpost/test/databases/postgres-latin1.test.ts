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
import { createQueue } from "../../src/queue/index.ts";
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

  const action = { author: "张伟", reason: "夜里处理", via: "cli" };
  const plain = { author: "\\u5F20\\u4F1F", reason: "\\u591C\\u91CC\\u5904\\u7406" };
  const topic = "orders";

  test("an operator is not refused for a letter of a name or a reason: messages", async () => {
    const outbox = createOutbox({ database });
    await outbox.transaction((tx) => outbox.enqueue(tx, { type: "held", key: "1", topic: "held", body: "" }));
    const messageAdmin = database.messageAdmin({ layout: defaultLayout });
    const message = await messageAdmin.show({ type: "held", key: "1" });
    if (message === undefined) throw new Error("no message");
    expect(await messageAdmin.suspend({ filter: { topic: "held" }, limit: 10, action })).toMatchObject({ changed: 1 });
    expect(await messageAdmin.show({ type: "held", key: "1" })).toMatchObject({ updatedBy: plain.author });
    expect(await messageAdmin.changes(message.id)).toMatchObject([{ action: "suspend", ...plain }]);
    await messageAdmin.suspendScope({
      scope: "topic",
      value: topic,
      author: action.author,
      reason: action.reason,
      endsInMs: null,
    });
    expect((await messageAdmin.status()).suspensions).toMatchObject([{ value: topic, ...plain }]);
    const resumed = await messageAdmin.changeMany({ kind: "resume", filter: { topic: "held" }, action });
    expect(resumed).toMatchObject({ state: "done", changed: 1 });
    await messageAdmin.close();

    const operations = database.operations({ layout: defaultLayout });
    await operations.record({ ...action, action: "console.login", result: "done" });
    const found = await operations.audit({ filter: { author: action.author, action: "console.login" }, limit: 10 });
    expect(found).toMatchObject([plain]);
    const holder = JSON.stringify({ name: action.author });
    await operations.openSession({ hash: "a".repeat(64), holder, lifeMs: 60_000 });
    expect(JSON.parse((await operations.readSession("a".repeat(64), 60_000)) ?? "")).toEqual({ name: action.author });
    await operations.close();

    const alerts = database.alerts({ layout: defaultLayout });
    await alerts.silence({ rule: "failed", subject: undefined, forMs: 60_000, action });
    expect(await alerts.silences()).toMatchObject([plain]);
    await alerts.close();
  });

  test("nor of a group of the queue", async () => {
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic, partitions: 1 });
    const [id = ""] = await queue.append([{ topic, key: "1", body: {} }]);
    const by = { topic, group: "stock", author: action.author, reason: action.reason.repeat(20) };
    const consumer = await queue.consume({ topic, group: by.group, handler: () => undefined, from: "end" });
    await consumer.stop();
    expect(await queue.pause(by)).toBe(true);
    expect(await queue.resume(by)).toBe(true);
    await queue.rewind({ ...by, to: "start" });
    expect(await queue.rewinds(topic, by.group)).toMatchObject([{ author: plain.author }]);
    await queue.skip({ ...by, id });
    await queue.close();
  });

  test.each([
    ["key", { key: "订单" }],
    ["topic", { topic: "订单" }],
    ["body", { body: { note: "订单" } }],
  ])("what would be another message is refused, with the letter: %s", async (field, given) => {
    const outbox = createOutbox({ database });
    const refused = outbox.transaction((tx) =>
      outbox.enqueue(tx, [
        { type: "order", key: "fits", topic, body: "é" },
        { type: "order", key: "2", topic, body: {}, ...given },
      ]),
    );
    await expect(refused).rejects.toMatchObject({
      code: "INVALID_MESSAGE",
      message: expect.stringContaining(`the ${field} has the letter 订`),
    });
  });

  test.each([
    ["key", { key: "订单" }],
    ["body", { body: { note: "订单" } }],
    ["headers", { headers: { note: "订单" } }],
  ])("so is what is appended to the queue: %s", async (field, given) => {
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: `of_${field}`, partitions: 1 });
    const append = queue.append([
      { topic: `of_${field}`, body: {} },
      { topic: `of_${field}`, body: {}, ...given },
    ]);
    await expect(append).rejects.toMatchObject({
      code: "INVALID_MESSAGE",
      message: expect.stringContaining(`the ${field} has the letter 订`),
    });
    await expect(queue.search({ topic: `of_${field}`, key: "订单" })).rejects.toMatchObject({
      message: expect.stringContaining("the key has the letter 订"),
    });
    await queue.close();
  });

  test("a rule, a filter or a confirmation with such a letter is refused; a consumer's error report is written in ASCII", async () => {
    const outbox = createOutbox({ database });
    const refused = (field: string) => ({
      code: "INVALID_MESSAGE",
      message: expect.stringContaining(`the ${field} has the letter 订`),
    });
    const messageAdmin = database.messageAdmin({ layout: defaultLayout });
    const rule = { scope: "topic", value: "订单", ...action, endsInMs: null } as const;
    await expect(messageAdmin.suspendScope(rule)).rejects.toMatchObject(refused("value"));
    await expect(messageAdmin.list({ filter: { key: "订单" }, limit: 1 })).rejects.toMatchObject(refused("key"));
    await expect(messageAdmin.show({ type: "订单", key: "1" })).rejects.toMatchObject(refused("type"));
    const confirm = (given: { key: string; error?: string }) =>
      outbox.transaction((tx) => outbox.confirm([{ type: "reported", ...given }], { tx }));
    await expect(confirm({ key: "订单" })).rejects.toMatchObject(refused("key"));
    const relay = createRelay({ database, broker: memory(), logger: "silent" });
    await outbox.transaction((tx) => outbox.enqueue(tx, { type: "reported", key: "1", topic: "reports", body: "" }));
    await relay.drain();
    await relay.stop();
    expect(await confirm({ key: "1", error: "缺货" })).toMatchObject([{ status: "reported" }]);
    expect(await confirm({ key: "none", error: "缺货" })).toMatchObject([{ status: "unknown" }]);
    await messageAdmin.close();
  });
});
