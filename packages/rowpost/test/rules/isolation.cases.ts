/**
 * The trouble of one message, topic or user stays where it is: interleavings that once stopped
 * others, broke an order, or lost a person's will.
 */
import { describe, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { routes } from "../../src/brokers/routes.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createMetricsRegistry } from "../../src/runtime/metrics-registry.ts";
import type { RelayTestService } from "../relay/bench-database.ts";
import { failure, keysOf, type RuleBench, STATE, useRuleBench } from "./rule-bench.ts";

const LONG = { baseMs: 3_600_000, maxMs: 3_600_000 };

/** Defines the tests for one server. */
export function defineIsolationCases(service: RelayTestService): void {
  const bench = useRuleBench(service);
  describe("keys", () => keyCases(bench));
  describe("topics", () => topicCases(bench));
  describe("backoff", () => backoffCases(bench));
  describe("people", () => peopleCases(bench, service));
  describe("housekeeping", () => housekeepingCases(bench, service));
}

function keyCases(bench: RuleBench): void {
  it("keeps the order of a key whose messages go to several topics", async () => {
    const { database } = bench;
    await database.insert([
      { key: "m1", topic: "orders", orderingKey: "a" },
      { key: "m2", topic: "payments", orderingKey: "a" },
    ]);
    const { relay, broker } = bench.relay({
      broker: { outcome: ({ key }) => (key === "m1" ? failure({}) : undefined) },
      relay: { retry: LONG },
    });
    await relay.tick();
    await relay.tick();
    expect(keysOf(broker.published())).toEqual([]);
  });

  it("messages that came due before the head of their key do not hide it, however many they are", async () => {
    const { database } = bench;
    const keys = ["head", ...Array.from({ length: 20 }, (_, index) => `behind${index}`)];
    await database.insert(keys.map((key) => ({ key, orderingKey: "a" })));
    await database.sql("UPDATE local_message SET next_retry_at = '2000-01-01 00:00:00.000'");
    await database.sql("UPDATE local_message SET next_retry_at = '2001-01-01 00:00:00.000' WHERE message_key = 'head'");
    const { relay, broker } = bench.relay({ relay: { batchSize: 4 } });
    for (let tick = 0; tick < 40; tick += 1) await relay.tick();
    expect(keysOf(broker.published())).toEqual(keys);
  });

  it("a suspect that waits behind its key holds up nobody else", async () => {
    const { database } = bench;
    await database.insert([
      { key: "head", orderingKey: "a" },
      { key: "suspect", orderingKey: "a" },
      { key: "other" },
      { key: "suspect2" },
      { key: "first", orderingKey: "b" },
      { key: "suspect3", orderingKey: "b" },
    ]);
    await database.sql(`UPDATE local_message SET state = ${STATE.failed} WHERE message_key = 'head'`);
    await database.sql("UPDATE local_message SET delivery_count = 4 WHERE message_key LIKE 'suspect%'");
    const { relay, broker } = bench.relay();
    for (let tick = 0; tick < 4; tick += 1) await relay.tick();
    expect(keysOf(broker.published())).toEqual(["suspect2", "other", "first", "suspect3"]);
  });
}

function topicCases(bench: RuleBench): void {
  it("does not call a table drained while a due message's topic rests", async () => {
    const { database } = bench;
    await database.insert([{ key: "1", topic: "away" }]);
    const { relay } = bench.relay({
      broker: { outcome: () => failure({ scope: "destination", code: "THROTTLED", retryAfterMs: 3_600_000 }) },
    });
    await relay.tick();
    await database.insert([{ key: "2", topic: "away" }]);
    for (let tick = 0; tick < 3; tick += 1) expect((await relay.tick()).exhausted).toBe(false);
  });

  it("a resting topic is probed with a message that can go, not with one that waits behind its key", async () => {
    const { database, clock } = bench;
    let throttled = true;
    await database.insert([
      { key: "head", orderingKey: "a" },
      { key: "behind", orderingKey: "a" },
    ]);
    const { relay, broker } = bench.relay({
      broker: { outcome: () => (throttled ? failure({ scope: "destination", code: "BUSY" }) : undefined) },
    });
    await relay.tick();
    throttled = false;
    // The scan brings the one behind first: it has been due for longer. After an outage many a
    // message looks like that.
    await database.sql("UPDATE local_message SET next_retry_at = '2001-01-01 00:00:00.000' WHERE message_key = 'head'");
    await database.sql(
      "UPDATE local_message SET next_retry_at = '2000-01-01 00:00:00.000' WHERE message_key = 'behind'",
    );
    for (let tick = 0; tick < 4; tick += 1) {
      await clock.advance(10_000);
      await relay.tick();
    }
    expect(keysOf(broker.published())).toEqual(["head", "behind"]);
  });

  it("a throttled message is given back although the real clock counts fractions of milliseconds", async () => {
    const { database } = bench;
    await database.insert([{ key: "1" }]);
    const { relay } = bench.relay({
      broker: { outcome: () => failure({ scope: "destination", code: "BUSY" }) },
      relay: { clock: systemClock, publishTimeoutMs: 500, leaseMs: 1_000 },
    });
    expect(await relay.tick()).toMatchObject({ claimed: 1, returned: 1, outcomesLost: 0 });
  });

  it("a throttled topic's messages carry the reason, are parked, and all go once it works again", async () => {
    const { database, clock } = bench;
    let throttled = true;
    await database.insert(Array.from({ length: 400 }, (_, index) => ({ key: String(index) })));
    const { relay, broker } = bench.relay({
      broker: { outcome: () => (throttled ? failure({ scope: "destination", code: "BUSY" }) : undefined) },
    });
    for (let tick = 0; tick < 12; tick += 1) {
      await relay.tick();
      await clock.advance(333);
    }
    expect((await relay.tick()).fenced).toBe(0);
    const rows = await database.sql("SELECT fail_reason AS reason FROM local_message WHERE fail_reason IS NOT NULL");
    expect(rows[0]?.["reason"]).toBe("BUSY: refused");
    throttled = false;
    // Parked by the server's clock, which the test does not turn.
    for (let tick = 0; tick < 10; tick += 1) {
      await clock.advance(10_000);
      await database.sql("UPDATE local_message SET next_retry_at = NULL");
      await relay.tick();
    }
    expect(broker.published().length).toBe(400);
  });
}

function backoffCases(bench: RuleBench): void {
  it("a good message of a topic does not cut the backoff of a bad one short", async () => {
    const { database, clock } = bench;
    const { relay, broker } = bench.relay({
      broker: { outcome: ({ key }) => (key === "bad" ? failure({}) : undefined) },
      relay: { retry: { baseMs: 7_200_000, maxMs: 7_200_000 } },
    });
    await database.insert([{ key: "bad" }]);
    for (let round = 0; round < 4; round += 1) {
      await relay.tick();
      await clock.advance(1_000);
      await database.insert([{ key: `good${round}` }]);
      await relay.tick();
    }
    expect(broker.published()).toHaveLength(4);
    const [bad] = await database.sql("SELECT retry_count AS n FROM local_message WHERE message_key = 'bad'");
    expect(Number(bad?.["n"])).toBe(1);
  });

  it("resetBackoff brings every message of the topic forward, once", async () => {
    const { database } = bench;
    const { relay } = bench.relay();
    await relay.tick();
    await database.insert(Array.from({ length: 1_200 }, (_, index) => ({ key: String(index) })));
    await database.sql("UPDATE local_message SET retry_count = 1, next_retry_at = '2037-01-01 00:00:00.000'");
    expect(await relay.resetBackoff("orders")).toBe(1_200);
    const [far] = await database.sql(
      "SELECT COUNT(*) AS n FROM local_message WHERE next_retry_at > '2036-01-01 00:00:00.000'",
    );
    expect(Number(far?.["n"])).toBe(0);
  });
}

function peopleCases(bench: RuleBench, service: RelayTestService): void {
  it("a rule that was lifted suspends nothing any more, also while a relay still remembers it", async () => {
    const { database, clock } = bench;
    const admin = database.connect();
    const messages = admin.messageAdmin({ layout: admin.defaultLayout });
    await messages.suspendScope({ scope: "topic", value: "stock", reason: "count", author: "li", endsInMs: null });
    await database.insert([{ key: "1", topic: "stock" }]);
    const { relay, broker } = bench.relay();
    await relay.tick();
    expect(await database.states()).toEqual({ [STATE.suspended]: 1 });
    await messages.resumeScope({ scope: "topic", value: "stock", action: { author: "li", reason: "done" } });
    await relay.tick();
    await clock.advance(2_000);
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["1"]);
    await messages.close();
  });

  it("a row inserted with deliver_at alone waits until then", async () => {
    const { database } = bench;
    await database.insert([{ key: "later" }, { key: "now" }]);
    await database.sql("UPDATE local_message SET deliver_at = '2037-01-01 00:00:00.000' WHERE message_key = 'later'");
    const { relay, broker } = bench.relay();
    await relay.tick();
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["now"]);
  });

  // SQLite locks no rows.
  if (service === "sqlite") return;
  it("a broken row that a user holds locked holds up no other message", async () => {
    const { database } = bench;
    await database.insert([{ key: "broken", body: "{" }]);
    const session = await database.connect().connect({ purpose: "tool" });
    let free = (): void => undefined;
    const freed = new Promise<void>((resolve) => {
      free = resolve;
    });
    let waits = 0;
    const { relay, broker } = bench.relay({
      relay: { clock: systemClock, drainTimeoutMs: 100 },
      // As if its lock were waited for until the user is done: a real wait ends, and the test would
      // have to measure.
      store: (store) => ({
        ...store,
        housekeeping: {
          ...store.housekeeping,
          async failPending(request) {
            waits += 1;
            await freed;
            return await store.housekeeping.failPending(request);
          },
        },
      }),
    });
    await session.transaction(async (tx) => {
      await tx.run({ name: "test", text: "SELECT id FROM local_message FOR UPDATE", params: [] });
      await relay.start();
      await expect.poll(() => waits, { timeout: 30_000 }).toBe(1);
      for (const key of ["1", "2", "3"]) {
        await database.insert([{ key }]);
        await broker.waitFor(Number(key), { withinMs: 15_000 });
      }
    });
    free();
    await expect.poll(() => relay.counts.failed, { timeout: 30_000 }).toBe(1);
    await relay.stop();
    await session.close();
  });

  it("a row that a user holds locked while its outcome is to be written holds up no other message, and gets it afterwards", async () => {
    const { database } = bench;
    const session = await database.connect().connect({ purpose: "tool" });
    const settled: string[] = [];
    let held: Promise<void> | undefined;
    let release = (): void => undefined;
    // A consumer's own transaction confirms before the outcome is written, and goes on for a while.
    const holdOne = (): Promise<void> =>
      new Promise((isLocked) => {
        held ??= session.transaction(async (tx) => {
          const text = "SELECT id FROM local_message WHERE message_type = 't' AND message_key = 'held' FOR UPDATE";
          await tx.run({ name: "test", text, params: [] });
          isLocked();
          await new Promise<void>((end) => {
            release = end;
          });
        });
      });
    const onFaultPoint = (point: string): Promise<void> | undefined =>
      point === "published" && held === undefined ? holdOne() : undefined;
    const { relay, broker } = bench.relay({
      relay: { clock: systemClock, batchSize: 10, windowSize: 20, onFaultPoint },
    });
    relay.on("sent", ({ message }) => void settled.push(message.key));
    await database.insert([{ key: "held" }, ...Array.from({ length: 100 }, (_, index) => ({ key: `free${index}` }))]);
    await relay.start();
    await expect.poll(() => settled.length, { timeout: 30_000 }).toBe(100);
    expect(settled).not.toContain("held");
    release();
    await held;
    await expect.poll(() => settled.length, { timeout: 30_000 }).toBe(101);
    await relay.stop();
    await session.close();
    expect(broker.published()).toHaveLength(101);
    expect(await database.states()).toEqual({ 2: 101 });
  });

  it("a row that a user holds locked holds up no other message", async () => {
    const { database } = bench;
    await database.insert([{ key: "held" }, { key: "free1" }, { key: "broken", topic: "b" }, { key: "free2" }]);
    const user = database.connect();
    const session = await user.connect({ purpose: "tool" });
    const { relay, broker } = bench.relay();
    await relay.tick();
    await database.insert([{ key: "held2" }, { key: "free3" }]);
    await session.transaction(async (tx) => {
      await tx.run({
        name: "t",
        params: [],
        text: "SELECT id FROM local_message WHERE message_type = 't' AND message_key = 'held2' FOR UPDATE",
      });
      await relay.tick();
      expect(keysOf(broker.published())).toContain("free3");
      expect(keysOf(broker.published())).not.toContain("held2");
    });
    await session.close();
    await relay.tick();
    expect(keysOf(broker.published())).toContain("held2");
  });
}

function housekeepingCases(bench: RuleBench, service: RelayTestService): void {
  it("a job that fails every time keeps no other from its turn", async () => {
    const { database } = bench;
    await database.insert([{ key: "1" }]);
    await database.sql(`UPDATE local_message SET state = ${STATE.failed}, next_retry_at = '2000-01-01 00:00:00.000'`);
    const asked: string[] = [];
    const { relay } = bench.relay({
      store: (store) => ({
        ...store,
        housekeeping: {
          ...store.housekeeping,
          applyTimed: () => Promise.reject(new Error("a row is locked")),
          failUnknownStates: () => Promise.resolve(asked.push("unknown states")).then(() => []),
          gauges: () => Promise.resolve(asked.push("gauges")).then(() => []),
        },
      }),
    });
    await expect(relay.tick()).rejects.toThrow("a row is locked");
    await expect(relay.tick()).rejects.toThrow("a row is locked");
    expect(asked).toEqual(["unknown states", "gauges"]);
  });

  it.each([
    ["all topics", undefined],
    ["topics of its own, which the part does not show", ["a"]],
  ])("a gauge of a topic that a part of its state does not show keeps its number: a relay of %s", async (_, topics) => {
    const { clock } = bench;
    const one = (topic: string, count: number, atLeast: boolean) =>
      ({ topic, state: "failed", count, atLeast, oldestAgeMs: 0 }) as const;
    const looks = [[one("a", 5, false)], [one("b", 10_000, true)], [one("b", 3, false)]];
    const metrics = createMetricsRegistry();
    const { relay } = bench.relay({
      relay: { metrics, ...(topics && { broker: routes(topics.map((topic) => [topic, memory()] as const)) }) },
      store: (store) => ({
        ...store,
        housekeeping: { ...store.housekeeping, gauges: () => Promise.resolve(looks.shift() ?? []) },
      }),
    });
    const seen: unknown[] = [];
    for (let look = 0; look < 3; look += 1) {
      await relay.tick();
      seen.push(metrics.value("rowpost_messages", { topic: "a", state: "failed" }));
      await clock.advance(15_000);
    }
    expect(seen).toEqual([5, 5, 0]);
  });

  it("a look that could not bring rows back keeps what it has seen first", async () => {
    const { database, clock } = bench;
    await database.insert([{ key: "1" }]);
    let failures = 0;
    const { relay, broker } = bench.relay({
      relay: { publishTimeoutMs: 1_000, heartbeatMs: 100 },
      store: (store) => ({
        ...store,
        housekeeping: {
          ...store.housekeeping,
          async recover(request) {
            failures += 1;
            if (failures === 1) throw new Error("a row is locked");
            return await store.housekeeping.recover(request);
          },
        },
      }),
    });
    await relay.tick();
    await database.sql(`UPDATE local_message SET state = ${STATE.sending}`);
    broker.clear();
    // Seen first, seen again and not brought back, brought back at the very next look.
    await clock.advance(2_500);
    await relay.tick();
    await clock.advance(2_500);
    await expect(relay.tick()).rejects.toThrow("a row is locked");
    await clock.advance(2_500);
    await relay.tick();
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["1"]);
  });

  // SQLite locks no rows.
  if (service === "sqlite") return;
  it("due rows go although a user holds more of them locked than a batch has, and each is told once", async () => {
    const { database } = bench;
    const session = await database.connect().connect({ purpose: "tool" });
    await database.insert(Array.from({ length: 600 }, (_, index) => ({ key: String(index) })));
    await database.sql(`UPDATE local_message SET state = ${STATE.sent}, next_retry_at = '2001-01-01 00:00:00.000'`);
    // By their ids, so that no range lock holds the row behind as well.
    const ids = (await database.sql("SELECT id AS id FROM local_message ORDER BY id")).map((row) => String(row["id"]));
    const held = `id IN (${ids.slice(0, 510).join(", ")})`;
    await database.sql(`UPDATE local_message SET next_retry_at = '2000-01-01 00:00:00.000' WHERE ${held}`);
    const { relay } = bench.relay();
    const told: string[] = [];
    relay.on("confirmTimeout", ({ message }) => void told.push(message.id));
    const left = async (): Promise<number> => {
      const due = "SELECT COUNT(*) AS n FROM local_message WHERE next_retry_at < '2002-01-01 00:00:00.000'";
      return Number((await database.sql(due))[0]?.["n"]);
    };
    await session.transaction(async (tx) => {
      const hold = service === "postgres" ? "" : "FORCE INDEX (PRIMARY)";
      await tx.run({ name: "t", text: `SELECT id FROM local_message ${hold} WHERE ${held} FOR UPDATE`, params: [] });
      await relay.tick();
      expect(await left()).toBe(510);
      await relay.tick();
      expect(await left()).toBe(510);
    });
    await session.close();
    await relay.tick();
    expect(await left()).toBe(0);
    expect(told.length).toBe(600);
    expect(new Set(told).size).toBe(600);
  });
}
