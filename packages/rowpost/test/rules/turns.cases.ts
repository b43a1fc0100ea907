/**
 * Every topic and every key has its turn, whatever else waits: topics behind a backlog, more topics
 * than one scan takes, probes behind messages that cannot go, heads that are gone among many that
 * stand.
 */
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import type { RelayTestService } from "../relay/bench-database.ts";
import { failure, keysOf, type RuleBench, STATE, type StoreChange, useRuleBench } from "./rule-bench.ts";

const RESTS = { scope: "destination", code: "THROTTLED", retryAfterMs: 3_600_000 } as const;
/** As `delayed` by a program that writes plain SQL. */
const DELAYED = "2900-01-01 00:00:00.000";

/** Defines the tests for one server. */
export function defineTurnCases(service: RelayTestService): void {
  const bench = useRuleBench(service);
  describe("topics", () => topicCases(bench));
  describe("followers", () => followerCases(bench));
  describe("unable", () => unableCases(bench));
  describe("bodies", () => bodyCases(bench));
}

function rowsOf(topic: string, count: number, orderingKey?: string) {
  return Array.from({ length: count }, (_, index) => ({
    key: `${topic}-${index}`,
    topic,
    ...(orderingKey === undefined ? {} : { orderingKey }),
  }));
}

/** Two messages of a topic that rests, beside so many topics with a delayed one each. */
async function insertBesideDelayed(database: RuleBench["database"], topics: number): Promise<void> {
  await database.insert(Array.from({ length: topics }, (_, index) => ({ key: `d${index}`, topic: `delayed${index}` })));
  await database.sql(`UPDATE local_message SET next_retry_at = '${DELAYED}'`);
  await database.insert([
    { key: "1", topic: "resting" },
    { key: "2", topic: "resting" },
  ]);
}

function topicCases(bench: RuleBench): void {
  it("a topic that had its messages sent a moment ago is not forgotten behind a backlog", async () => {
    const { database, clock } = bench;
    await database.insert(rowsOf("bulk", 2_000));
    const { relay, broker } = bench.relay({ relay: { batchSize: 10 } });
    const waited: number[] = [];
    for (let message = 0; message < 4; message += 1) {
      await database.insert([{ key: `m${message}`, topic: "quiet" }]);
      let ticks = 0;
      while (broker.published("quiet").length <= message && ticks < 100) {
        await relay.tick();
        await clock.advance(100);
        ticks += 1;
      }
      waited.push(ticks);
      // Looked for once more, and not there.
      for (let tick = 0; tick < 6; tick += 1) {
        await relay.tick();
        await clock.advance(100);
      }
    }
    expect(Math.max(...waited), waited.join()).toBeLessThanOrEqual(8);
  });

  it("of many topics behind a backlog each has its turn", async () => {
    const { database, clock } = bench;
    const topics = Array.from({ length: 40 }, (_, index) => `t${String(index).padStart(2, "0")}`);
    await database.insert([...rowsOf("bulk", 3_000), ...topics.flatMap((topic) => rowsOf(topic, 40))]);
    const { relay, broker } = bench.relay({ relay: { batchSize: 10 } });
    for (let tick = 0; tick < 20; tick += 1) {
      await relay.tick();
      await clock.advance(100);
    }
    expect(topics.filter((topic) => broker.published(topic).length === 0)).toEqual([]);
  });

  it("a topic is found among a thousand whose messages are delayed, while one rests", async () => {
    const { database, clock } = bench;
    await insertBesideDelayed(database, 1_200);
    const { relay, broker } = bench.relay({
      broker: { outcome: ({ topic }) => (topic === "resting" ? failure(RESTS) : undefined) },
    });
    await relay.tick();
    await relay.tick();
    await database.insert([{ key: "well", topic: "well" }]);
    let ticks = 0;
    while (broker.published("well").length === 0 && ticks < 100) {
      await relay.tick();
      await clock.advance(250);
      ticks += 1;
    }
    expect(ticks).toBeLessThan(60);
  });

  it("an idle relay asks little although more topics than one scan takes have delayed messages, while one rests", async () => {
    const { database } = bench;
    await insertBesideDelayed(database, 40);
    let scans = 0;
    const { relay } = bench.relay({
      broker: { outcome: ({ topic }) => (topic === "resting" ? failure(RESTS) : undefined) },
      store: (store) => ({
        ...store,
        scan(request) {
          scans += 1;
          return store.scan(request);
        },
      }),
      relay: { clock: systemClock },
    });
    await relay.start();
    await systemClock.sleep(3_000);
    scans = 0;
    await systemClock.sleep(2_000);
    expect(scans).toBeLessThanOrEqual(40);
  });

  it("a probe finds a message that can go behind many that cannot", async () => {
    const { database, clock } = bench;
    await database.insert([
      { key: "head", topic: "resting", orderingKey: "k" },
      { key: "head2", topic: "resting" },
    ]);
    let isIll = true;
    const { relay, broker } = bench.relay({
      broker: {
        outcome: ({ topic }) =>
          topic === "resting" ? failure(RESTS) : isIll ? failure({ ...RESTS, retryAfterMs: 1_000 }) : undefined,
      },
      relay: { batchSize: 50 },
    });
    await relay.tick();
    await database.sql("UPDATE local_message SET next_retry_at = NULL");
    await database.insert([{ key: "first", topic: "probed" }]);
    await relay.tick();
    await relay.tick();
    await database.insert([...rowsOf("probed", 400, "k"), { key: "last", topic: "probed" }]);
    isIll = false;
    await database.sql("DELETE FROM local_message WHERE message_key = 'first'");
    for (let tick = 0; tick < 600 && broker.published("probed").length === 0; tick += 1) {
      await relay.tick();
      await clock.advance(10);
    }
    expect(keysOf(broker.published("probed"))).toContain("last");
  });
}

function followerCases(bench: RuleBench): void {
  /** As a relay leaves it that dies right after its head was settled. */
  async function strand(key: string, headId: string, count: number): Promise<void> {
    const { database } = bench;
    await database.insert(rowsOf(key, count, key));
    const instant = new Date(Date.parse("3000-01-01T00:00:00Z") + Number(headId)).toISOString();
    await database.sql(
      `UPDATE local_message SET next_retry_at = '${instant.replace("T", " ").replace("Z", "")}' WHERE topic = '${key}'`,
    );
  }

  it("a drain brings back what stands behind a head that is gone", async () => {
    const { database } = bench;
    await database.insert([{ key: "first" }]);
    await strand("k", "900", 3);
    const { relay, broker } = bench.relay({ relay: { clock: systemClock } });
    const { complete } = await relay.drain({ timeoutMs: 10_000 });
    expect([complete, broker.published("k").length]).toEqual([true, 3]);
  });

  it("a resend goes although an earlier message of its key stands in front of others", async () => {
    const keys = ["head", "again", "behind"];
    await bench.database.insert(keys.map((key) => ({ key, orderingKey: "k" })));
    const set = (key: string, what: string) =>
      bench.database.sql(`UPDATE local_message SET ${what} WHERE message_key = '${key}'`);
    await set("head", `state = ${STATE.suspended}`);
    await set("again", `state = ${STATE.sent}, message_id = 'r', sent_at = gmt_create`);
    const { relay, broker } = bench.relay();
    await relay.tick();
    await set("again", `state = ${STATE.pending}`);
    await relay.tick();
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["again"]);
  });

  it("a head that is gone is found among many that stand", async () => {
    const { database, clock } = bench;
    await database.insert(rowsOf("heads", 400).map((row) => ({ ...row, orderingKey: row.key })));
    const { relay, broker } = bench.relay({
      broker: { outcome: ({ topic }) => (topic === "heads" ? failure({}) : undefined) },
      relay: { retry: { baseMs: 3_600_000, maxMs: 3_600_000 } },
    });
    for (let tick = 0; tick < 10; tick += 1) {
      await relay.tick();
      await clock.advance(1_000);
    }
    await database.insert(
      rowsOf("heads", 400).map((row) => ({ key: `f-${row.key}`, topic: "heads", orderingKey: row.key })),
    );
    for (let tick = 0; tick < 4; tick += 1) {
      await relay.tick();
      await clock.advance(1_000);
    }
    const [last] = await database.sql("SELECT MAX(id) AS id FROM local_message");
    await strand("gone", String(Number(last?.["id"]) + 1_000), 1);
    let seconds = 0;
    while (broker.published("gone").length === 0 && seconds < 60) {
      await relay.tick();
      await clock.advance(1_000);
      seconds += 1;
    }
    expect(seconds).toBeLessThanOrEqual(7);
  });
}

function unableCases(bench: RuleBench): void {
  const unable: StoreChange = (store) => ({
    ...store,
    open: async (options) => ({ ...(await store.open(options)), setsBehind: false }),
  });

  it("due messages behind a failed head hide no others where nothing can be set behind", async () => {
    const { database } = bench;
    await database.insert([{ key: "head", orderingKey: "k" }, ...rowsOf("orders", 300, "k"), { key: "well" }]);
    await database.sql("UPDATE local_message SET next_retry_at = '2001-01-01 00:00:00.000'");
    await database.sql("UPDATE local_message SET next_retry_at = '2001-01-02 00:00:00.000' WHERE message_key = 'well'");
    await database.sql(
      `UPDATE local_message SET state = ${STATE.suspended}, next_retry_at = NULL WHERE message_key = 'head'`,
    );
    const { relay, broker } = bench.relay({ relay: { batchSize: 50, clock: systemClock }, store: unable });
    const { complete } = await relay.drain({ timeoutMs: 4_000 });
    expect([complete, keysOf(broker.published())]).toEqual([true, ["well"]]);
  });

  it("a suspect holds up nobody for long beside a topic that gives no answer", async () => {
    const { database } = bench;
    await database.insert([{ key: "hangs", topic: "hung" }]);
    let answer: (() => void) | undefined;
    const { relay, broker } = bench.relay({
      broker: {
        outcome: async ({ topic }) => {
          if (topic === "hung")
            await new Promise<void>((go) => {
              answer = go;
            });
          return undefined;
        },
      },
      relay: { clock: systemClock },
    });
    await relay.start();
    while (answer === undefined) await systemClock.sleep(10);
    // In one statement: a relay that scanned it before it is a suspect would simply send it.
    await database.sql(
      "INSERT INTO local_message (message_type, message_key, topic, message_body, delivery_count) VALUES ('t', 'suspect', 'a', '{}', 4)",
    );
    await database.insert([{ key: "well", topic: "b" }]);
    await expect.poll(() => broker.published("b").length, { timeout: 8_000 }).toBe(1);
    answer();
  });
}

function bodyCases(bench: RuleBench): void {
  it("a body larger than its topic's share is not overtaken by a backlog of small ones", async () => {
    const { database } = bench;
    await database.insert([
      ...Array.from({ length: 300 }, (_, index) => ({ key: `first${index}`, body: JSON.stringify("y".repeat(100)) })),
      { key: "large", body: JSON.stringify("x".repeat(400_000)) },
      ...Array.from({ length: 3_000 }, (_, index) => ({ key: `s${index}`, body: JSON.stringify("y".repeat(100)) })),
    ]);
    const { relay, broker } = bench.relay({
      broker: {
        outcome: async () => {
          await systemClock.sleep(20);
          return undefined;
        },
      },
      relay: { clock: systemClock, batchSize: 100, windowSize: 400, windowBytes: 100_000 },
    });
    await relay.drain({ timeoutMs: 20_000 });
    expect(keysOf(broker.published()).indexOf("large")).toBeLessThan(1_000);
  });
}
