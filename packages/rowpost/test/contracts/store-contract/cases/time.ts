/**
 * Every instant is the database's: neither the application's clock nor a connection's time zone
 * moves one.
 */
import assert from "node:assert/strict";
import type { EncodedMessage } from "../../../../src/outbox/message-writer.ts";
import type { StoreContractCase } from "../case.ts";
import type { StoreCaseContext } from "../context.ts";
import { failed, retried } from "../outcome.ts";

const HOUR_MS = 3_600_000;

/** The database's clock as epoch milliseconds, from what it wrote into a row just now. */
async function databaseNow(context: StoreCaseContext): Promise<number> {
  await context.enqueue([context.message({ key: "clock" })]);
  const shown = await context.admin.show({ type: "contract.checked", key: "clock" });
  await context.sql(`DELETE FROM ${context.own.messages}`);
  return Date.parse(shown?.gmtCreate ?? "");
}

/** The only row of the table, after one message was enqueued. */
async function enqueued(context: StoreCaseContext, changes: Partial<EncodedMessage>): Promise<string> {
  await context.enqueue([context.message(changes)]);
  const [row] = (await context.admin.list({ filter: {}, limit: 1 })).messages;
  return row?.id ?? assert.fail("no row");
}

export const timeCases: readonly StoreContractCase[] = [
  {
    name: "time: a delayed message waits for its time, by the database's clock",
    async run(context) {
      const id = await enqueued(context, { delayMs: HOUR_MS });
      const { deliverInMs, nextRetryInMs, state } = await context.row(id);
      assert.equal(state, "pending");
      context.assertInMs(nextRetryInMs, HOUR_MS, "next_retry_at");
      if (context.layout.columns.deliverAt !== undefined) context.assertInMs(deliverInMs, HOUR_MS, "deliver_at");
      assert.deepEqual(await context.scan(), []);
      await context.table.edit(id, { nextRetryInMs: -1_000, deliverInMs: -1_000 });
      assert.deepEqual(
        (await context.scan()).map(({ due }) => due),
        [true],
      );
    },
  },
  {
    name: "time: a message for an instant waits for exactly that instant",
    async run(context) {
      const deliverAtMs = (await databaseNow(context)) + HOUR_MS + 123;
      const id = await enqueued(context, { deliverAtMs });
      const shown = await context.admin.show({ id });
      const expected = context.layout.fractionDigits === 3 ? deliverAtMs : Math.ceil(deliverAtMs / 1_000) * 1_000;
      // An engine may keep milliseconds where the layout's own DDL has whole seconds.
      const written = Date.parse(shown?.nextRetryAt ?? "");
      assert.ok(written === expected || written === deliverAtMs, `${shown?.nextRetryAt} for ${deliverAtMs}`);
      if (context.layout.columns.deliverAt !== undefined) assert.equal(shown?.deliverAt, shown?.nextRetryAt);
    },
  },
  {
    name: "time: an instant that is past is due at once",
    async run(context) {
      const deliverAtMs = (await databaseNow(context)) - HOUR_MS;
      await enqueued(context, { deliverAtMs });
      assert.equal((await context.scan()).length, 1);
    },
  },
  {
    name: "time: one call may hold messages with a delay, with an instant and with neither",
    async run(context) {
      const deliverAtMs = (await databaseNow(context)) + 2 * HOUR_MS;
      const keys = ["a", "b", "c", "d"];
      const times = [{}, { delayMs: HOUR_MS }, { deliverAtMs }, {}];
      await context.enqueue(keys.map((key, index) => context.message({ key, ...times[index] })));
      const rows = (await context.admin.list({ filter: {}, limit: 10 })).messages;
      const inMs = new Map<string, number | null>();
      for (const { id, key } of rows) inMs.set(key, (await context.row(id)).nextRetryInMs);
      assert.deepEqual([inMs.get("a"), inMs.get("d")], [null, null]);
      context.assertInMs(inMs.get("b") ?? null, HOUR_MS, "a delay");
      context.assertInMs(inMs.get("c") ?? null, 2 * HOUR_MS, "an instant");
    },
  },
  {
    name: "time: milliseconds are kept",
    needs: ["milliseconds"],
    async run(context) {
      const id = await enqueued(context, { delayMs: 1_537 });
      const shown = await context.admin.show({ id });
      const delay = Date.parse(shown?.deliverAt ?? "") - Date.parse(shown?.gmtCreate ?? "");
      assert.ok(Math.abs(delay - 1_537) <= 50, `${delay} ms after it was created`);
    },
  },
  {
    name: "time: a table with whole seconds is never early",
    async run(context) {
      const { fence } = await context.acquire();
      for (const delayMs of [1_100, 1_300, 1_500, 1_700, 1_900]) {
        const from = performance.now();
        const id = await enqueued(context, { delayMs });
        const row = await context.put({ state: "sending", deliveryCount: 1, lockVersion: 1 });
        const outcomes = [retried(await context.token(row), { nextRetryInMs: delayMs })];
        await context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" });
        const { nextRetryInMs: enqueuedInMs } = await context.row(id);
        const { nextRetryInMs: retriedInMs } = await context.row(row);
        // What has gone by since, and the fraction of a millisecond that each reading cuts off.
        const leastMs = delayMs - (performance.now() - from) - 2;
        assert.ok((enqueuedInMs ?? 0) >= leastMs, `enqueued for ${enqueuedInMs} ms, at least ${leastMs}`);
        assert.ok((retriedInMs ?? 0) >= leastMs, `retried in ${retriedInMs} ms, at least ${leastMs}`);
        await context.sql(`DELETE FROM ${context.own.messages}`);
      }
    },
  },
  {
    name: "time: an application clock that is wrong moves nothing",
    async run(context) {
      await withClockOff(3 * HOUR_MS, async () => {
        const { fence } = await context.acquire({ leaseMs: HOUR_MS });
        const id = await enqueued(context, { delayMs: HOUR_MS });
        const [sending, broken] = await context.putAll([
          { state: "sending", deliveryCount: 1, lockVersion: 1 },
          { state: "sending", deliveryCount: 1, lockVersion: 1 },
        ]);
        assert.ok(sending && broken);
        const [one, two] = await context.tokens([sending, broken]);
        assert.ok(one && two);
        const outcomes = [retried(one, { nextRetryInMs: HOUR_MS }), failed(two, { nextRetryInMs: HOUR_MS })];
        await context.store.settle({ fence, outcomes, elapsedMs: 60_000, from: "sending" });
        for (const row of [id, sending.id, broken.id]) {
          context.assertInMs((await context.row(row)).nextRetryInMs, HOUR_MS, `next_retry_at of ${row}`);
        }
        const { createdInMs } = await context.row(id);
        context.assertInMs(createdInMs, 0, "gmt_create");
        const { lastRetryInMs } = await context.row(sending);
        if (context.layout.columns.lastRetryAt !== undefined) {
          context.assertInMs(lastRetryInMs, -60_000, "last_retry_at");
        }
        const { dialect, own } = context;
        const until = `SELECT ${dialect.ownMsUntil("lease_until")} AS in_ms FROM ${own.shard} WHERE ${own.ours}`;
        for (const lease of (await context.sql(until)).rows) {
          context.assertInMs(Number(lease["in_ms"]), HOUR_MS, "lease_until");
        }
      });
    },
  },
  {
    name: "time: a user's transaction in another time zone writes the same instants",
    async run(context) {
      const zone = context.dialect.otherZone;
      if (zone === undefined) return;
      const deliverAtMs = (await databaseNow(context)) + HOUR_MS;
      const messages = [{}, { delayMs: HOUR_MS }, { deliverAtMs }].map((changes) => context.message(changes));
      await context.database.transaction(async (tx) => {
        await tx.query(zone.enter);
        await context.writer.insert(tx, messages, { duplicates: "throw" });
        await tx.query(zone.leave);
      });
      const rows = (await context.admin.list({ filter: {}, limit: 10 })).messages;
      assert.equal(rows.length, 3);
      for (const { id } of rows) {
        const { createdInMs, modifiedInMs, nextRetryInMs } = await context.row(id);
        context.assertInMs(createdInMs, 0, "gmt_create");
        context.assertInMs(modifiedInMs, 0, "gmt_modified");
        if (nextRetryInMs !== null) context.assertInMs(nextRetryInMs, HOUR_MS, "next_retry_at");
      }
      assert.equal((await context.scan()).length, 1);
    },
  },
];

/** Runs the work while this process believes that it is later than it is. */
async function withClockOff(offMs: number, work: () => Promise<void>): Promise<void> {
  const RealDate = globalThis.Date;
  // Without arguments it is now; every other use, such as a driver's parsing, stays as it is.
  class ShiftedDate extends RealDate {
    constructor(...args: readonly unknown[]) {
      const given: unknown[] = args.length === 0 ? [RealDate.now() + offMs] : [...args];
      super(...(given as [number]));
    }
    static override now(): number {
      return RealDate.now() + offMs;
    }
  }
  globalThis.Date = ShiftedDate as DateConstructor;
  try {
    await work();
  } finally {
    globalThis.Date = RealDate;
  }
}
