/** What a relay must do on every database; bound by relay.*.test.ts. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PublishFailed, PublishResult } from "../../src/brokers/broker.ts";
import { type MemoryBrokerOptions, memory } from "../../src/brokers/memory.ts";
import type { RelayOptions } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const PENDING = 0;
const SENDING = 1;
const SENT = 2;
const FAILED = 3;
const SUSPENDED = 5;

function failure(change: Partial<PublishFailed>): PublishResult {
  return { status: "failed", scope: "message", retriable: true, code: "NO", reason: "refused", ...change };
}

/** Defines the cases. */
export function defineRelayCases(service: RelayTestService): void {
  let database: RelayTestDatabase;
  const relays: Relay[] = [];

  beforeEach(async () => {
    database = await createRelayDatabase(service);
  });

  afterEach(async () => {
    for (const relay of relays.splice(0)) await relay.stop();
    await database.drop();
  });

  function setUp(brokerOptions: MemoryBrokerOptions = {}, options: Partial<RelayOptions> = {}) {
    const broker = memory(brokerOptions);
    const relay = createRelay({ database: database.connect(), broker, logger: "silent", ...options });
    relays.push(relay);
    return { broker, relay };
  }

  async function columns(key: string): Promise<Readonly<Record<string, unknown>>> {
    const rows = await database.sql(
      `SELECT state, retry_count, delivery_count, fail_reason, message_id, next_retry_at IS NULL AS never FROM local_message WHERE message_key = '${key}'`,
    );
    return rows[0] ?? {};
  }

  describe("sending", () => {
    it("publishes what waits, records the receipt, and leaves nothing behind", async () => {
      const { broker, relay } = setUp();
      await database.insert([
        { key: "1", body: '{"a":1}' },
        { key: "2", type: "other", topic: "stock" },
      ]);
      const report = await relay.tick();
      expect(report).toMatchObject({ claimed: 2, sent: 2 });
      const [first] = broker.published("orders");
      expect(first).toMatchObject({
        type: "t",
        key: "1",
        topic: "orders",
        body: '{"a":1}',
        contentType: "application/json",
        attempt: 1,
        headers: { "rowpost-id": "t:1", "rowpost-type": "t", "rowpost-key": "1", "rowpost-attempt": "1" },
      });
      expect(await columns("1")).toMatchObject({ message_id: first?.messageId, fail_reason: null });
      expect(await database.states()).toEqual({ [SENT]: 2 });
      expect((await relay.tick()).exhausted).toBe(true);
    });

    it("drains a backlog in few statements' worth of batches, in id order for each ordering key", async () => {
      const { broker, relay } = setUp({}, { batchSize: 100 });
      const messages = Array.from({ length: 1_000 }, (_, index) => ({
        key: String(index),
        orderingKey: `k${index % 7}`,
      }));
      await database.insert(messages);
      expect(await relay.drain()).toMatchObject({ sent: 1_000, complete: true, drained: true });
      for (let key = 0; key < 7; key += 1) {
        const order = broker.published().filter((message) => message.orderingKey === `k${key}`);
        expect(order.map((message) => Number(message.key))).toEqual(
          messages.map(({ key: number }) => Number(number)).filter((number) => number % 7 === key),
        );
      }
    });

    it("does not call a table drained while a relay that may be dead has shards of it", async () => {
      const { relay: first } = setUp();
      await first.tick();
      await first.stop();
      await database.insert(Array.from({ length: 64 }, (_, index) => ({ key: String(index) })));
      await database.sql("UPDATE local_message SET state = 1");
      // As an old relay that holds no lock left it: nobody can tell before the lease ends.
      await database.sql(
        "UPDATE local_message_shard SET owner = 'gone', epoch = epoch + 1, lease_ms = 3600000 WHERE shard < 8",
      );
      const { relay } = setUp();
      const { sent, complete } = await relay.drain({ timeoutMs: 1_000 });
      const { [SENDING]: left = 0 } = await database.states();
      expect({ complete, all: sent + left, isLeft: left > 0 }).toEqual({ complete: false, all: 64, isLeft: true });
    });

    it("does not call a table drained before it has looked for messages behind heads that are gone", async () => {
      await database.insert(["head", "behind1", "behind2"].map((key) => ({ key, orderingKey: "a" })));
      // The relay that sent the head was killed before it brought them back.
      await database.sql(`UPDATE local_message SET state = ${SENT} WHERE message_key = 'head'`);
      await database.sql(
        "UPDATE local_message SET next_retry_at = '3000-01-01 00:00:00.001' WHERE message_key <> 'head'",
      );
      const { relay } = setUp();
      expect(await relay.drain()).toMatchObject({ sent: 2, complete: true });
    });

    // SQLite locks no rows.
    if (service !== "sqlite") {
      it("does not call a table drained while somebody holds messages behind a head that is gone", async () => {
        const rows = ["head1", "behind1", "head2", "behind2"].map((key) => ({ key, orderingKey: key.slice(-1) }));
        await database.insert(rows);
        await database.sql(`UPDATE local_message SET state = ${SENT} WHERE message_key LIKE 'head%'`);
        for (const id of [1, 3]) {
          const behind = `UPDATE local_message SET next_retry_at = '3000-01-01 00:00:00.00${id}' WHERE id = ${id + 1}`;
          await database.sql(behind);
        }
        const session = await database.connect().connect({ purpose: "tool" });
        await session.transaction(async (tx) => {
          await tx.run({ name: "hold", text: "SELECT id FROM local_message WHERE id = 2 FOR UPDATE", params: [] });
          const { relay } = setUp();
          expect(await relay.drain({ timeoutMs: 2_000 })).toMatchObject({ sent: 1, complete: false });
        });
        await session.close();
        const { relay } = setUp();
        expect(await relay.drain()).toMatchObject({ sent: 1, complete: true });
      });
    }

    it("wakes for a message of another program while it runs", async () => {
      const { broker, relay } = setUp();
      await relay.start();
      await database.insert([{ key: "1" }]);
      await broker.waitFor(1, { withinMs: 15_000 });
      expect(await relay.stop()).toEqual({ drained: true, unsettled: 0 });
      expect(await database.states()).toEqual({ [SENT]: 1 });
    });
  });

  describe("failing", () => {
    it("tries again after a backoff, and fails after the attempts with the broker's reason", async () => {
      const clock = createManualClock();
      const retry = { maxAttempts: 2, baseMs: 0, maxMs: 0 };
      const { relay } = setUp({ outcome: () => failure({}) }, { retry, clock });
      await database.insert([{ key: "1" }]);
      await relay.tick();
      const first = await columns("1");
      expect([Number(first["state"]), Number(first["retry_count"])]).toEqual([PENDING, 1]);
      // The topic rests for a moment after a publish in which nothing was sent.
      await clock.advance(1_000);
      await relay.tick();
      const row = await columns("1");
      expect(row).toMatchObject({ fail_reason: "NO: refused" });
      expect([Number(row["state"]), Number(row["retry_count"])]).toEqual([FAILED, 2]);
    });

    it("fails an unsendable message at once and sends its neighbours", async () => {
      const { relay } = setUp({
        outcome: ({ key }) =>
          key === "2" ? failure({ retriable: false, code: "BODY_TOO_LARGE", reason: "5 MB" }) : undefined,
      });
      await database.insert([{ key: "1" }, { key: "2" }, { key: "3" }]);
      await relay.tick();
      expect(await database.states()).toEqual({ [SENT]: 2, [FAILED]: 1 });
      expect(await columns("2")).toMatchObject({ fail_reason: "BODY_TOO_LARGE: 5 MB" });
    });

    it("counts nothing while the broker is away, and is back at once", async () => {
      let away = true;
      const { relay } = setUp({
        outcome: () => (away ? failure({ scope: "connection", code: "ECONNREFUSED" }) : undefined),
      });
      await database.insert([{ key: "1" }, { key: "2" }]);
      await relay.start();
      await new Promise<void>((resolve) => relay.on("brokerAway", () => resolve()));
      away = false;
      await new Promise<void>((resolve) => relay.on("brokerBack", () => resolve()));
      await relay.stop();
      await relayUntilSent();
      for (const key of ["1", "2"]) {
        const { retry_count: retries, delivery_count: deliveries } = await columns(key);
        expect([Number(retries), Number(deliveries)]).toEqual([0, 1]);
      }
    });

    async function relayUntilSent(): Promise<void> {
      const { relay } = setUp();
      await relay.drain();
      expect(await database.states()).toEqual({ [SENT]: 2 });
    }

    it("makes a row with a broken body, broken headers or an unknown state failed, with a reason, and blocks nobody", async () => {
      const { relay } = setUp();
      await database.insert([{ key: "1", body: "{broken" }, { key: "2" }, { key: "3" }, { key: "4" }]);
      await database.sql("UPDATE local_message SET headers = '[1]' WHERE message_key = '2'");
      await database.sql("UPDATE local_message SET state = 9 WHERE message_key = '3'");
      await relay.tick();
      expect(await database.states()).toEqual({ [SENT]: 1, [FAILED]: 3 });
      expect(String((await columns("1"))["fail_reason"])).toContain("BROKEN_BODY");
      expect(String((await columns("2"))["fail_reason"])).toContain("BROKEN_HEADERS");
      expect(String((await columns("3"))["fail_reason"])).toContain("9");
    });

    it("keeps a key's later messages behind one that waits for its retry, and sends other keys (rule: key-order)", async () => {
      const { broker, relay } = setUp(
        { outcome: ({ key }) => (key === "1" ? failure({}) : undefined) },
        { retry: { baseMs: 60_000, maxMs: 60_000 } },
      );
      await database.insert([
        { key: "1", orderingKey: "a" },
        { key: "2", orderingKey: "a" },
        { key: "3", orderingKey: "b" },
      ]);
      await relay.tick();
      await relay.tick();
      expect(broker.published().map(({ key }) => key)).toEqual(["3"]);
      // A restart forgets everything in memory; the order stands in the table.
      const second = setUp();
      await relay.stop();
      await second.relay.tick();
      expect(second.broker.published()).toEqual([]);
      expect(await database.states()).toEqual({ [PENDING]: 2, [SENT]: 1 });
    });
  });

  describe("several relays", () => {
    it("share the table and send every message once", async () => {
      const published: string[] = [];
      const outcome = ({ key }: { readonly key: string }): undefined => void published.push(key);
      const options = { heartbeatMs: 50, batchSize: 50 };
      const first = setUp({ outcome }, options);
      const second = setUp({ outcome }, options);
      await first.relay.start();
      await second.relay.start();
      for (let batch = 0; batch < 10; batch += 1) {
        await database.insert(
          Array.from({ length: 100 }, (_, index) => ({ key: `${batch}-${index}`, orderingKey: `k${index % 20}` })),
        );
      }
      while (first.relay.counts.sent + second.relay.counts.sent < 1_000)
        await new Promise((resolve) => setImmediate(resolve));
      expect(new Set(published).size).toBe(1_000);
      expect(published).toHaveLength(1_000);
      expect(await database.states()).toEqual({ [SENT]: 1_000 });
    });
  });

  describe("suspension", () => {
    it("suspends what a rule names and resumes it when the rule is lifted", async () => {
      const admin = database.connect();
      const { broker, relay } = setUp();
      const messages = admin.messageAdmin({ layout: admin.defaultLayout });
      await messages.suspendScope({ scope: "topic", value: "stock", reason: "count", author: "li", endsInMs: null });
      await database.insert([{ key: "1", topic: "stock" }, { key: "2" }]);
      await relay.tick();
      expect(await database.states()).toEqual({ [SUSPENDED]: 1, [SENT]: 1 });
      expect(
        await messages.resumeScope({ scope: "topic", value: "stock", action: { author: "li", reason: "done" } }),
      ).toBe(1);
      await relay.stop();
      const next = setUp();
      await next.relay.tick();
      expect(next.broker.published().map(({ key }) => key)).toEqual(["1"]);
      expect(broker.published()).toHaveLength(1);
      await messages.close();
    });
  });
}
