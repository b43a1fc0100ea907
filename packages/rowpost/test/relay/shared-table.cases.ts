/** Relays that share a table, each with topics of its own. */
import { describe, expect, it } from "vitest";
import { judgeWork } from "../../src/admin/doctor/work.ts";
import { type MemoryBroker, memory } from "../../src/brokers/memory.ts";
import { routes } from "../../src/brokers/routes.ts";
import type { RelayOptions } from "../../src/relay/options.ts";
import type { Relay } from "../../src/relay/relay.ts";
import { createMetricsRegistry } from "../../src/runtime/metrics-registry.ts";
import { failure, keysOf, type RuleBench, STATE, type StoreChange, useRuleBench } from "../rules/rule-bench.ts";
import type { RelayTestService } from "./bench-database.ts";

/** Defines the cases. */
export function defineSharedTableCases(service: RelayTestService): void {
  const bench = useRuleBench(service);

  /** A relay of these topics alone. */
  function relayOf(
    topics: readonly string[],
    options: Partial<RelayOptions> = {},
    broker = memory(),
    store?: StoreChange,
  ) {
    const split = routes(topics.map((topic) => [topic, broker] as const));
    return { ...bench.relay({ relay: { broker: split, ...options }, ...(store && { store }) }), broker };
  }

  const sent = async (): Promise<string[]> => {
    const rows = await bench.database.sql(
      `SELECT message_key AS message_key FROM local_message WHERE state = ${STATE.sent} ORDER BY id`,
    );
    return rows.map((row) => String(row["message_key"]));
  };

  async function turns(relays: readonly Relay[], count = 6): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) {
      await bench.clock.advance(1_000);
      for (const relay of relays) await relay.tick();
    }
  }

  // SQLite refuses a relay without the mark.
  const marks = service === "sqlite" ? (["on"] as const) : (["on", "off"] as const);
  describe.each(marks)("sendingMark %s", (sendingMark) => {
    it("each sends its own topics, in order, however many of the others' stand before them", async () => {
      const of = (topic: string, count: number) =>
        Array.from({ length: count }, (_, index) => ({ key: `${topic}-${index}`, topic, orderingKey: topic }));
      await bench.database.insert([...of("stock", 1_200), ...of("orders.new", 7), ...of("Orders.new", 2)]);
      const orders = relayOf(["orders.*"], { sendingMark });
      await turns([orders.relay], 2);
      expect(keysOf(orders.broker.published())).toEqual(keysOf(of("orders.new", 7)));
      const stock = relayOf(["stock", "Orders.*"], { sendingMark });
      await turns([orders.relay, stock.relay], 12);
      const published = keysOf(stock.broker.published());
      expect(published.filter((key) => key.startsWith("stock"))).toEqual(keysOf(of("stock", 1_200)));
      expect(published.filter((key) => key.startsWith("Orders"))).toEqual(keysOf(of("Orders.new", 2)));
      expect(orders.broker.published()).toHaveLength(7);
      expect(await bench.database.states()).toEqual({ [STATE.sent]: 1_209 });
    });

    it("two of one list share its work, and one goes on for the other", async () => {
      const options = { sendingMark, leaseMs: 4_000, publishTimeoutMs: 100, heartbeatMs: 1_000 };
      const [one, two] = [relayOf(["b", "a"], options), relayOf(["a", "b"], options)];
      await turns([one.relay, two.relay]);
      const halves = (await statusOf(bench)).leases.map(({ owner }) => owner);
      expect(new Set(halves).size).toBe(service === "sqlite" ? 1 : 2);
      await one.relay.stop();
      await bench.database.insert(Array.from({ length: 40 }, (_, index) => ({ key: `${index}`, topic: "a" })));
      await turns([two.relay]);
      expect(two.broker.published()).toHaveLength(40);
    });
  });

  it("brings back what a dead relay of its own list had in hand, and nothing of another's", async () => {
    // Only the second is the relay's: SQL's wildcards are none in a pattern, and case counts.
    const topics = ["orders", "st_ck.new", "stock.new", "ST_CK.new"];
    await bench.database.insert(topics.map((topic, index) => ({ key: `${index}`, topic })));
    await bench.database.sql(`UPDATE local_message SET state = ${STATE.sending}`);
    const stock = relayOf(["st_ck.*"], { publishTimeoutMs: 1_000 });
    await turns([stock.relay], 10);
    expect(await bench.database.states()).toEqual({ [STATE.sending]: 3, [STATE.sent]: 1 });
    expect(keysOf(stock.broker.published())).toEqual(["1"]);
    await turns([relayOf(["orders"]).relay], 1);
    expect(await sent()).toEqual(["0", "1"]);
  });

  it("leaves the timers of other topics to their relays", async () => {
    await bench.database.insert([
      { key: "1", topic: "orders" },
      { key: "2", topic: "stock" },
    ]);
    const retry = { maxAttempts: 1, slowRetryEveryMs: 60_000 };
    let isRefused = true;
    const refusing = (): MemoryBroker => memory({ outcome: () => (isRefused ? failure({}) : undefined) });
    const orders = relayOf(["orders"], { retry }, refusing());
    const stock = relayOf(["stock"], { retry }, refusing());
    await turns([orders.relay, stock.relay], 1);
    await orders.relay.stop();
    isRefused = false;
    await bench.database.sql("UPDATE local_message SET next_retry_at = gmt_create");
    await turns([stock.relay]);
    expect([await sent(), await bench.database.states()]).toEqual([["2"], { [STATE.failed]: 1, [STATE.sent]: 1 }]);
  });

  it("keeps what waits behind a failed head out of its scans, and others go", async () => {
    await bench.database.insert([
      { key: "head", topic: "stock", orderingKey: "a" },
      ...Array.from({ length: 40 }, (_, index) => ({ key: `${index}`, topic: "stock", orderingKey: "a" })),
      { key: "free", topic: "stock", orderingKey: "b" },
    ]);
    await bench.database.sql(`UPDATE local_message SET state = ${STATE.failed} WHERE message_key = 'head'`);
    await bench.database.sql(`UPDATE local_message SET next_retry_at = gmt_create WHERE state = ${STATE.pending}`);
    const stock = relayOf(["stock"], { batchSize: 8, onFailed: "block" });
    await turns([stock.relay], 20);
    expect(keysOf(stock.broker.published())).toEqual(["free"]);
  });

  it("leaves followers, strays and early retries of other topics as their relays have set them", async () => {
    const { database } = bench;
    await database.insert([
      { key: "head", topic: "stock", orderingKey: "a" },
      { key: "follower", topic: "stock", orderingKey: "a" },
      { key: "odd", topic: "stock" },
      { key: "late", topic: "stock" },
    ]);
    await database.sql(`UPDATE local_message SET state = ${STATE.failed} WHERE message_key = 'head'`);
    const stock = relayOf(["stock"], { onFailed: "block" });
    await turns([stock.relay], 1);
    await stock.relay.stop();
    await database.sql("UPDATE local_message SET state = 9 WHERE message_key = 'odd'");
    const far = `next_retry_at = '2100-01-01 00:00:00', retry_count = 3, state = ${STATE.pending}`;
    await database.sql(`UPDATE local_message SET ${far} WHERE message_key = 'late'`);
    const rows = () => database.sql("SELECT message_key, state, next_retry_at FROM local_message ORDER BY id");
    const before = await rows();
    // Each turn is a second for the relay and none for the database, as if its clock went back.
    await turns([relayOf(["orders"], { onFailed: "skip" }).relay], 30);
    expect(await rows()).toEqual(before);
    await turns([relayOf(["stock"], { onFailed: "skip" }).relay], 30);
    expect(await sent()).toEqual(["follower", "late"]);
    expect(await database.states()).toEqual({ [STATE.failed]: 2, [STATE.sent]: 2 });
  });

  it("counts the messages of its own topics", async () => {
    await bench.database.insert([
      { key: "1", topic: "orders" },
      { key: "2", topic: "stock" },
    ]);
    const metrics = createMetricsRegistry();
    const away = memory({ outcome: () => failure({ scope: "connection" }) });
    await turns([relayOf(["stock"], { metrics }, away).relay], 20);
    const shown = ["orders", "stock"].map((topic) => metrics.value("rowpost_pending", { topic }));
    expect(shown).toEqual([0, 1]);
  });

  it("removes what it has sent, and leaves what another relay keeps", async () => {
    await bench.database.insert([
      { key: "1", topic: "orders" },
      { key: "2", topic: "stock" },
    ]);
    const orders = relayOf(["orders"], { retention: { onSent: "archive", keepMs: 0 } });
    const stock = relayOf(["stock"]);
    await turns([stock.relay, orders.relay], 10);
    expect([await sent(), await archived()]).toEqual([["2"], ["1"]]);
  });

  async function archived(): Promise<string[]> {
    const rows = await bench.database.sql("SELECT message_key AS message_key FROM local_message_archive");
    return rows.map((row) => String(row["message_key"]));
  }

  it("finds its own in a table that cannot be scanned by topic, and drains it", async () => {
    const others = Array.from({ length: 60 }, (_, index) => ({ key: `${index}`, topic: "orders" }));
    await bench.database.insert([...others, { key: "new", topic: "stock" }, { key: "again", topic: "stock" }]);
    await bench.database.sql(
      "UPDATE local_message SET next_retry_at = gmt_create WHERE topic = 'orders' OR message_key = 'again'",
    );
    const withoutIndex: StoreChange = (store) => ({
      ...store,
      open: async (options) => ({ ...(await store.open(options)), scansByTopic: false }),
    });
    const stock = relayOf(["stock"], { batchSize: 8, clock: undefined }, memory(), withoutIndex);
    expect(await stock.relay.drain()).toMatchObject({ sent: 2, complete: true });
  });

  it("drains until nothing of its own is left", async () => {
    const { database } = bench;
    await database.insert([
      { key: "1", topic: "orders" },
      { key: "2", topic: "stock.new" },
      { key: "3", topic: "stock.new" },
    ]);
    const result = await relayOf(["stock.*"], { clock: undefined }).relay.drain({ untilEmpty: true });
    expect(result).toMatchObject({ sent: 2, complete: true, left: { due: 0 } });
    expect(await relayOf(["nothing.*"], { clock: undefined }).relay.drain({ untilEmpty: true })).toMatchObject({
      sent: 0,
      complete: true,
    });
    expect(await sent()).toEqual(["2", "3"]);
  });

  it("tells what waits for no relay, and shows the shards of each", async () => {
    await bench.database.insert([{ key: "1", topic: "orders" }]);
    await turns([relayOf(["stock"]).relay], 1);
    expect(await explained("orders")).toMatchObject({
      heldBy: "no relay",
      text: expect.stringMatching(/takes its topic "orders"; their topics are .*: stock/) as string,
    });
    const own = service === "sqlite" ? 1 : 16;
    expect((await statusOf(bench)).leases).toHaveLength(own);
    await turns([relayOf(["orders"], {}, memory({ outcome: () => failure({ scope: "connection" }) })).relay], 1);
    const { instances, leases } = await statusOf(bench);
    expect(leases).toHaveLength(2 * own);
    expect(leases.filter(({ owner }) => owner === undefined)).toEqual([]);
    expect(new Set(instances.map(({ report }) => report?.topics?.join()))).toEqual(new Set(["orders", "stock"]));
    expect(await explained("orders")).toMatchObject({ heldBy: "broker away" });
  });

  it("tells who has it by the relays that run, and forgets the shards of a list that nobody has", async () => {
    const { database } = bench;
    await database.insert([{ key: "1", topic: "orders" }]);
    // Three lists with the topic whose relays are dead, one of them forgotten.
    for (const pattern of ["order*", "ord*", "o*"]) await turns([relayOf([pattern, "x"]).relay], 1);
    await database.sql(`UPDATE local_message SET state = ${STATE.pending}`);
    const { dialect } = database.connect();
    await database.sql(`UPDATE local_message_relay SET seen_at = ${HOUR_BEFORE_SEEN[dialect]}`);
    const [gone] = await database.sql("SELECT MIN(owner) AS owner FROM local_message_relay");
    await database.sql(`DELETE FROM local_message_relay WHERE owner = '${String(gone?.["owner"])}'`);
    await turns([relayOf(["orders"], {}, memory({ outcome: () => failure({ scope: "connection" }) })).relay], 1);
    expect(await explained("orders")).toMatchObject({ heldBy: "broker away" });
    const { instances, leases } = await statusOf(bench);
    const registered = instances.map(({ owner }) => owner);
    expect(leases.filter(({ owner }) => owner === undefined || !registered.includes(owner))).toEqual([]);
  });

  async function explained(topic: string) {
    const database = bench.database.connect();
    const admin = database.messageAdmin({ layout: database.defaultLayout });
    const [row] = await bench.database.sql(`SELECT id AS id FROM local_message WHERE topic = '${topic}'`);
    const message = await admin.show({ id: String(row?.["id"]) });
    if (message === undefined) throw new Error("the message stands there");
    const explanation = await admin.explain(message);
    await admin.close();
    return explanation;
  }

  it.each([
    ["a list and a relay of every topic", ["orders.*"], undefined, true],
    ["lists with a topic in common", ["orders.*"], ["*.eu"], true],
    ["lists with none", ["orders.*"], ["stock", "order"], false],
    ["one list in two orders", ["a", "b"], ["b", "a"], false],
  ])("doctor warns of %s: %j %j", async (_what, left, right, isTold) => {
    await turns([relayOf(left).relay, right === undefined ? bench.relay().relay : relayOf(right).relay], 1);
    const told = judgeWork(await statusOf(bench)).filter(({ id }) => id === "D409");
    expect(told).toHaveLength(isTold ? 1 : 0);
  });
}

const HOUR_BEFORE_SEEN = {
  mysql: "seen_at - INTERVAL 1 HOUR",
  postgres: "seen_at - interval '1 hour'",
  sqlite: "strftime('%Y-%m-%d %H:%M:%f', seen_at, '-1 hour')",
};

async function statusOf({ database }: RuleBench) {
  const own = database.connect();
  const admin = own.messageAdmin({ layout: own.defaultLayout });
  const status = await admin.status();
  await admin.close();
  return status;
}
