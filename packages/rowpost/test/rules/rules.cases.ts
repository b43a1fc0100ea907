/**
 * The rules that keep the relay correct (DESIGN 13), each by the interleaving that breaks without
 * it, and each once more with its guard taken out: then the damage must show, else the test proves
 * nothing. What needs one statement only is in the store contract.
 */
import { describe, expect, it } from "vitest";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { messageType } from "../../src/message/message-type.ts";
import type { RelayStore } from "../../src/relay/store.ts";
import type { RelayTestService } from "../relay/bench-database.ts";
import { failure, keysOf, type RuleBench, STATE, type StoreChange, useRuleBench } from "./rule-bench.ts";

/** Defines the tests for one server. */
export function defineRuleCases(service: RelayTestService): void {
  const bench = useRuleBench(service);
  describe("rule: key-order, order per key lives in the table", () => orderCases(bench));
  describe("rule: watched-sending, no sending row without a watcher", () => watcherCases(bench));
  // SQLite refuses it.
  if (service !== "sqlite") {
    describe("rule: listed-in-flight, sendingMark off", () => unmarkedCases(bench, service));
  }
  describe("rule: delay-is-not-retry, delay is not retry", () => delayCases(bench));
  describe("rule: hand-over, hand-over", () => handOverCases(bench));
  describe("rule: bounded-scan, scans pass over what may not be sent", () => passOverCases(bench, service));
  describe("rule: crash-counting, crash counting", () => crashCountCases(bench));
}

function orderCases(bench: RuleBench): void {
  /**
   * m1 fails and waits for its retry; m2 of the same key is due at once; the relay restarts in
   * between.
   */
  async function overtaking(store?: StoreChange): Promise<string[]> {
    const { database } = bench;
    await database.insert([
      { key: "m1", orderingKey: "a" },
      { key: "m2", orderingKey: "a" },
    ]);
    const retry = { baseMs: 3_600_000, maxMs: 3_600_000 };
    const first = bench.relay({
      broker: { outcome: ({ key }) => (key === "m1" ? failure({}) : undefined) },
      relay: { retry },
    });
    await first.relay.tick();
    await first.relay.stop();
    const second = bench.relay({ relay: { retry }, ...(store === undefined ? {} : { store }) });
    await second.relay.tick();
    return keysOf(second.broker.published());
  }

  it("keeps m2 behind m1 over a restart", async () => {
    expect(await overtaking()).toEqual([]);
  });

  it("guard removed: a relay that asks nobody lets m2 overtake", async () => {
    const everythingIsFirst: StoreChange = (store) => ({
      ...store,
      keyQueues: async (request) => {
        const rows = await store.keyQueues(request);
        return rows.filter((row) => row.due);
      },
    });
    expect(await overtaking(everythingIsFirst)).toEqual(["m2"]);
  });

  it.each([
    ["suspended", `state = ${STATE.suspended}`],
    ["failed", `state = ${STATE.failed}`],
  ])(
    "keeps the key behind a %s head under onFailed block; skip lets it pass a failed one only",
    async (state, change) => {
      const { database } = bench;
      await database.insert([
        { key: "m1", orderingKey: "a" },
        { key: "m2", orderingKey: "a" },
      ]);
      await database.sql(`UPDATE local_message SET ${change} WHERE message_key = 'm1'`);
      const block = bench.relay();
      await block.relay.tick();
      expect(block.broker.published()).toEqual([]);
      await block.relay.stop();
      const skip = bench.relay({ relay: { onFailed: "skip" } });
      // The one before has set m2 behind its head; housekeeping brings it back.
      await skip.relay.tick();
      await skip.relay.tick();
      expect(keysOf(skip.broker.published())).toEqual(state === "failed" ? ["m2"] : []);
    },
  );
}

function watcherCases(bench: RuleBench): void {
  /** The claim commits, and neither its reply nor the reading back of it arrives. */
  const claimWithoutAnswer =
    (lose: { once: boolean }): StoreChange =>
    (store) => ({
      ...store,
      async claim(request) {
        const changed = await store.claim(request);
        if (lose.once) throw new Error("the reply was lost");
        return changed;
      },
      async verifyClaim(request) {
        if (!lose.once) return await store.verifyClaim(request);
        lose.once = false;
        throw new Error("the reply was lost");
      },
    });
  const nobodySweeps: StoreChange = (store) => ({
    ...store,
    housekeeping: { ...store.housekeeping, listSending: () => Promise.resolve([]) },
  });

  async function abandonedClaim(change: (store: RelayStore) => RelayStore): Promise<Readonly<Record<number, number>>> {
    const { database, clock } = bench;
    await database.insert([{ key: "1" }, { key: "2" }]);
    const { relay } = bench.relay({ relay: { publishTimeoutMs: 1_000, heartbeatMs: 100 }, store: change });
    await expect(relay.tick()).rejects.toThrow("lost");
    expect(await database.states()).toEqual({ [STATE.sending]: 2 });
    for (let look = 0; look < 5; look += 1) {
      await clock.advance(2_500);
      await relay.tick();
    }
    return await database.states();
  }

  it("a claim whose reply was lost is found and sent by its living owner", async () => {
    expect(await abandonedClaim(claimWithoutAnswer({ once: true }))).toEqual({ [STATE.sent]: 2 });
  });

  it("guard removed: without the sweep the rows stay in sending", async () => {
    const lose = claimWithoutAnswer({ once: true });
    expect(await abandonedClaim((store) => nobodySweeps(lose(store)))).toEqual({ [STATE.sending]: 2 });
  });

  it("a reply that was lost is read back before anything is published", async () => {
    const { database } = bench;
    await database.insert([{ key: "1" }]);
    const { relay, broker } = bench.relay({
      store: (store) => ({
        ...store,
        async claim(request) {
          await store.claim(request);
          throw new Error("the reply was lost");
        },
      }),
    });
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["1"]);
    expect(await database.states()).toEqual({ [STATE.sent]: 1 });
  });

  it("a row set to sending by hand is sent as well", async () => {
    const { database, clock } = bench;
    await database.insert([{ key: "1" }]);
    await database.sql(`UPDATE local_message SET state = ${STATE.sending}`);
    const { relay, broker } = bench.relay({ relay: { publishTimeoutMs: 1_000, heartbeatMs: 100 } });
    // The first acquisition recovers what it finds; a row that is set afterwards has to be found by
    // the sweep.
    await relay.tick();
    await database.sql(`UPDATE local_message SET state = ${STATE.sending}`);
    broker.clear();
    for (let look = 0; look < 4; look += 1) {
      await clock.advance(2_500);
      await relay.tick();
    }
    expect(keysOf(broker.published())).toEqual(["1"]);
  });
}

function unmarkedCases(bench: RuleBench, service: RelayTestService): void {
  // A JSON text on MySQL, an array on PostgreSQL.
  const brackets = service === "postgres" ? "{}" : "[]";

  it("publishes only ids whose shards still were ours when they were written into the lease rows", async () => {
    const { database } = bench;
    await database.insert([{ key: "1" }, { key: "2" }]);
    const { relay, broker } = bench.relay({
      relay: { sendingMark: "off" },
      store: (store) => ({
        ...store,
        async listInFlight(request) {
          // Between the scan and this statement somebody else takes every shard.
          await database.sql("UPDATE local_message_shard SET owner = 'another', epoch = epoch + 1");
          return await store.listInFlight(request);
        },
      }),
    });
    await relay.tick();
    expect(broker.published()).toEqual([]);
    expect(await database.states()).toEqual({ [STATE.pending]: 2 });
  });

  it("counts a claim for what a dead relay had in flight, and only for that", async () => {
    const { database } = bench;
    await database.insert([{ key: "1" }, { key: "2" }]);
    const ids = await database.sql("SELECT id AS id, message_key AS message_key FROM local_message ORDER BY id");
    const { relay } = bench.relay({ relay: { sendingMark: "off" } });
    await relay.tick();
    await relay.stop();
    // Back to what a crash right after the list was written leaves: waiting rows, an owned lease,
    // the id in it.
    await database.sql(
      `UPDATE local_message SET state = ${STATE.pending}, delivery_count = 0, sent_at = NULL, message_id = NULL`,
    );
    const id = String(ids[0]?.["id"]);
    await database.sql(`UPDATE local_message_shard SET owner = NULL, in_flight = '${brackets[0]}${id}${brackets[1]}'`);
    const heir = bench.relay({
      relay: { sendingMark: "off" },
      broker: { outcome: () => failure({ scope: "connection" }) },
    });
    await heir.relay.tick();
    const counts = await database.sql("SELECT delivery_count AS n FROM local_message ORDER BY id");
    expect(counts.map((row) => Number(row["n"]))).toEqual([1, 0]);
  });
}

function delayCases(bench: RuleBench): void {
  it("a message delayed until tomorrow that is suspended and resumed still waits until tomorrow", async () => {
    const { database } = bench;
    await database.insert([{ key: "1" }, { key: "2" }]);
    const admin = database.connect();
    const messages = admin.messageAdmin({ layout: admin.defaultLayout });
    const [row] = await database.sql("SELECT MIN(id) AS id FROM local_message");
    const id = String(row?.["id"]);
    const tomorrow = {
      mysql: "UTC_TIMESTAMP(3) + INTERVAL 1 DAY",
      postgres: "now() + interval '1 day'",
      sqlite: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day')",
    };
    await database.sql(
      `UPDATE local_message SET deliver_at = ${tomorrow[admin.dialect]}, next_retry_at = ${tomorrow[admin.dialect]} WHERE id = ${id}`,
    );
    const action = { author: "li", reason: "stock count" };
    expect((await messages.suspend({ filter: { ids: [id] }, action, limit: 10 })).changed).toBe(1);
    expect((await messages.resume({ filter: { ids: [id] }, action, limit: 10 })).changed).toBe(1);
    const { relay, broker } = bench.relay();
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["2"]);
    await relay.resetBackoff("orders");
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["2"]);
    await messages.close();
  });
}

function handOverCases(bench: RuleBench): void {
  it("a stop keeps the lease of a shard whose publish has no answer yet, and releases the others", async () => {
    const { database } = bench;
    await database.insert([{ key: "slow" }]);
    let reached = (): void => {};
    const publishing = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const { relay } = bench.relay({
      broker: {
        outcome: () => {
          reached();
          return new Promise<PublishResult>(() => {});
        },
      },
    });
    // The stop ends it, in whatever way.
    relay.tick().catch(() => undefined);
    await publishing;
    const [held] = await database.sql(`SELECT COUNT(*) AS n FROM local_message WHERE state = ${STATE.sending}`);
    expect(Number(held?.["n"])).toBe(1);
    expect(await relay.stop()).toMatchObject({ drained: false, unsettled: 1 });
    const owned = await database.sql("SELECT shard AS shard FROM local_message_shard WHERE owner IS NOT NULL");
    expect(owned).toHaveLength(1);
  });
}

function passOverCases(bench: RuleBench, service: RelayTestService): void {
  const ROWS = 1_200;

  /**
   * A thousand messages of a topic that is away lie before one of a topic that is well. How many
   * ticks until that one is sent?
   */
  async function ticksUntilSent(store?: StoreChange): Promise<number> {
    const { database, clock } = bench;
    await database.insert(Array.from({ length: ROWS }, (_, index) => ({ key: `b${index}`, topic: "broken" })));
    await database.insert([{ key: "well", topic: "well" }]);
    const { relay, broker } = bench.relay({
      broker: {
        outcome: ({ topic }) =>
          topic === "broken"
            ? failure({ scope: "destination", code: "THROTTLED", retryAfterMs: 3_600_000 })
            : undefined,
      },
      relay: { batchSize: 100 },
      ...(store === undefined ? {} : { store }),
    });
    for (let tick = 1; tick <= 30; tick += 1) {
      await relay.tick();
      if (broker.published("well").length > 0) return tick;
      await clock.advance(5);
    }
    return Number.POSITIVE_INFINITY;
  }

  const withoutTopicIndex: StoreChange = (store) => ({
    ...store,
    open: async (options) => ({ ...(await store.open(options)), scansByTopic: false }),
  });

  it("reaches a healthy topic behind the backlog of a broken one", async () => {
    expect(await ticksUntilSent()).toBeLessThanOrEqual(20);
  });

  it("reaches it by walking on where the table cannot be scanned by topic", async () => {
    expect(await ticksUntilSent(withoutTopicIndex)).toBeLessThanOrEqual(20);
  });

  it("guard removed: with no cursor and no scan by topic the broken topic fills every batch", async () => {
    const alwaysFromTheStart: StoreChange = (store) => ({
      ...withoutTopicIndex(store),
      scan: (request) => store.scan({ ...request, afterId: "0" }),
    });
    expect(await ticksUntilSent(alwaysFromTheStart)).toBe(Number.POSITIVE_INFINITY);
  });

  // SQLite has one writer: ids become visible in their order.
  if (service === "sqlite") return;
  it("finds a row that became visible behind the place that the sweep has reached", async () => {
    const { database } = bench;
    const late = await openTransaction(bench);
    await late.insert("late");
    await database.insert(Array.from({ length: 100 }, (_, index) => ({ key: `n${index}` })));
    const { relay, broker } = bench.relay({ relay: { batchSize: 50 } });
    await relay.tick();
    await relay.tick();
    await late.commit();
    for (let tick = 0; tick < 4; tick += 1) await relay.tick();
    expect(keysOf(broker.published())).toContain("late");
    expect(broker.published()).toHaveLength(101);
  });
}

/**
 * An INSERT that stays uncommitted until the test says so: its id is smaller than those that become
 * visible before it.
 */
async function openTransaction(
  bench: RuleBench,
): Promise<{ insert(key: string): Promise<void>; commit(): Promise<void> }> {
  const session = await bench.database.connect().connect({ purpose: "tool" });
  let commit = (): void => {};
  const released = new Promise<void>((resolve) => {
    commit = resolve;
  });
  let inserted = (): void => {};
  const done = new Promise<void>((resolve) => {
    inserted = resolve;
  });
  let work: Promise<void> = Promise.resolve();
  return {
    async insert(key) {
      const text = `INSERT INTO local_message (message_type, message_key, topic, message_body) VALUES ('t', '${key}', 'orders', '{}')`;
      work = session.transaction(async (tx) => {
        await tx.run({ name: "test", text, params: [] });
        inserted();
        await released;
      });
      await done;
    },
    async commit() {
      commit();
      await work;
      await session.close();
    },
  };
}

function crashCountCases(bench: RuleBench): void {
  it("a broker outage, however long, fails no healthy message", async () => {
    const { database, clock } = bench;
    await database.insert([{ key: "1" }]);
    const { relay } = bench.relay({
      broker: { outcome: () => failure({ scope: "connection", code: "ECONNREFUSED" }) },
    });
    for (let probe = 0; probe < 30; probe += 1) {
      await relay.tick();
      await clock.advance(1_000);
    }
    const [row] = await database.sql(
      "SELECT state AS state, delivery_count AS deliveries, retry_count AS retries FROM local_message",
    );
    expect([Number(row?.["state"]), Number(row?.["deliveries"]), Number(row?.["retries"])]).toEqual([
      STATE.pending,
      0,
      0,
    ]);
  });

  it("a message that was recovered again and again is sent alone, and fails at the limit", async () => {
    const { database } = bench;
    await database.insert([{ key: "ok1" }, { key: "suspect" }, { key: "ok2" }, { key: "poison" }]);
    await database.sql("UPDATE local_message SET delivery_count = 4, retry_count = 1 WHERE message_key = 'suspect'");
    await database.sql("UPDATE local_message SET delivery_count = 10 WHERE message_key = 'poison'");
    const together: string[][] = [];
    const { relay, broker } = bench.relay();
    for (let tick = 0; tick < 3; tick += 1) {
      const before = broker.published().length;
      await relay.tick();
      together.push(keysOf(broker.published().slice(before)));
    }
    expect(together.slice(0, 2)).toEqual([["suspect"], ["ok1", "ok2"]]);
    const [poison] = await database.sql(
      "SELECT state AS state, fail_reason AS reason FROM local_message WHERE message_key = 'poison'",
    );
    expect(Number(poison?.["state"])).toBe(STATE.failed);
    expect(String(poison?.["reason"])).toContain("CRASH_LOOP");
  });

  it("a counted failure forgets the recoveries before it, an uncounted one does not", async () => {
    const { database } = bench;
    const crash = (times: number) =>
      database.sql(`UPDATE local_message SET delivery_count = delivery_count + ${times}`);
    const counts = async () => {
      const [row] = await database.sql(
        "SELECT state AS state, delivery_count AS deliveries, retry_count AS retries FROM local_message",
      );
      return [row?.["state"], row?.["deliveries"], row?.["retries"]].map(Number);
    };
    const answers = ["message", "connection", "message", undefined] as const;
    let asked = 0;
    const { relay, broker } = bench.relay({
      broker: {
        outcome() {
          const scope = answers[asked++];
          return scope === undefined ? undefined : failure({ scope });
        },
      },
    });
    await database.insert([{ key: "1" }]);
    const seen: number[][] = [];
    for (const crashes of [9, 4, 5, 9]) {
      await crash(crashes);
      await database.sql("UPDATE local_message SET next_retry_at = NULL");
      // The gate of a broker that was away opens with the time.
      await bench.clock.advance(60_000);
      await relay.tick();
      seen.push(await counts());
    }
    expect(seen).toEqual([
      [STATE.pending, 1, 1],
      [STATE.pending, 5, 1],
      [STATE.pending, 2, 2],
      [STATE.sent, 12, 2],
    ]);
    expect(broker.published()).toHaveLength(1);
  });

  it("a message that nobody confirms is retried slowly for ever, and is no crash", async () => {
    const { database } = bench;
    const types = [messageType("order", { topic: "orders", confirm: { withinMs: 60_000, onTimeout: "fail" } })];
    const { relay, broker } = bench.relay({ relay: { types } });
    await database.insert([{ key: "1", type: "order" }]);
    // At most three turns each time: its deadline comes, then its slow retry, then it is sent.
    for (let turn = 0; turn < 36; turn += 1) {
      await relay.tick();
      await database.sql(
        `UPDATE local_message SET next_retry_at = gmt_create WHERE state IN (${STATE.sent}, ${STATE.failed})`,
      );
    }
    expect(broker.published().length).toBeGreaterThanOrEqual(12);
    const [row] = await database.sql("SELECT fail_reason AS reason FROM local_message");
    expect(String(row?.["reason"])).not.toContain("CRASH_LOOP");
  });
}
