/** What is written down of changes by hand, and what relays say of themselves. */
import assert from "node:assert/strict";
import { ruleReason } from "../../../../src/message/suspension-reason.ts";
import type { RelayReport } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import { freshOwner, type StoreCaseContext } from "../context.ts";

const ACTION = { author: "ann", reason: "ticket 7: O'Brien \\ 消息 🚀" };
const RULE = { scope: "topic", value: "orders" };

const REPORT: RelayReport = {
  version: "1.2.3",
  shards: [0],
  inFlight: 7,
  windowSize: 2_000,
  onFailed: "skip",
  brokers: [{ name: "kafka", awayForMs: 60_000, reason: "ECONNREFUSED: 'nobody' \\ there 消息", topics: undefined }],
  restingTopics: [{ topic: "orders", restsForMs: 3_600_000, reason: "HTTP_503" }],
  moreResting: 0,
  lastError: { what: "database: gone", agoMs: 5_000 },
};

/** What was done to a message, the newest first. */
async function done(context: StoreCaseContext, id: string): Promise<string[]> {
  return (await context.other.admin.changes(id)).map(({ action, author, reason }) => `${action} ${author} ${reason}`);
}

export const byHandCases: readonly StoreContractCase[] = [
  {
    name: "by hand: who did what to a message and why is found by the message, and by no other one",
    async run(context) {
      const rows = await context.putAll(Array(12).fill({ state: "failed", failReason: "HTTP_503" }));
      const ids = rows.map(({ id }) => id);
      const [first, second, ...others] = ids;
      assert.ok(first && second);
      // The second lies between the ids of this change, and is not one of them.
      await context.admin.retry({ filter: { ids: [first, ...others] }, action: ACTION, limit: 100 });
      await context.admin.suspend({ filter: { ids: [first] }, action: { author: "bob", reason: "stop" }, limit: 1 });
      assert.deepEqual(await done(context, first), ["suspend bob stop", `retry ann ${ACTION.reason}`]);
      assert.deepEqual(await done(context, second), []);
      for (const id of others) assert.deepEqual(await done(context, id), [`retry ann ${ACTION.reason}`], id);
      const [change] = await context.admin.changes(first);
      assert.match(change?.at ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const removed = { filter: { ids: [second] }, mode: "delete", action: ACTION, limit: 1 } as const;
      await context.admin.remove(removed);
      assert.deepEqual(await done(context, second), [`delete ann ${ACTION.reason}`], "it is known of one that is gone");
    },
  },
  {
    name: "by hand: what changed nothing is not written down",
    async run(context) {
      const row = await context.put({ state: "sent" });
      const { conflicts } = await context.admin.retry({ filter: { ids: [row.id] }, action: ACTION, limit: 1 });
      assert.equal(conflicts.length, 1);
      assert.deepEqual(await done(context, row.id), []);
    },
  },
  {
    name: "by hand: the audit has the messages as they were before, and how the change came in",
    async run(context) {
      const row = await context.put({ state: "failed", failReason: `HTTP_503 消息 ${"x".repeat(300)}` });
      const target = { filter: { ids: [row.id] }, limit: 1 };
      await context.admin.retry({ ...target, action: { ...ACTION, via: "console" } });
      const store = context.database.operations({ layout: context.layout });
      try {
        await store.record({ ...ACTION, via: "api", action: "retry", result: "denied", details: { route: "/x" } });
        const found = await store.audit({ filter: { author: "ann" }, limit: 2 });
        const [denied, done] = found;
        const unchanged = { changed: 0, ids: [], before: [] };
        assert.deepEqual(
          { ...denied, id: "", at: "" },
          {
            id: "",
            at: "",
            author: "ann",
            via: "api",
            action: "retry",
            reason: ACTION.reason,
            result: "denied",
            details: { route: "/x" },
            ...unchanged,
          },
        );
        assert.deepEqual([done?.via, done?.result, done?.ids, done?.changed], ["console", "done", [row.id], 1]);
        const [image] = done?.before ?? [];
        assert.deepEqual([image?.id, image?.state], [row.id, "failed"]);
        assert.match(image?.failReason ?? "", /^HTTP_503 消息 x{188}$/);
        const wanted = { filter: { result: "done", action: "retry" } as const, limit: 1, beforeId: denied?.id };
        assert.deepEqual(
          (await store.audit(wanted)).map(({ id }) => id),
          [done?.id],
        );
        assert.deepEqual(await store.audit({ filter: { author: "nobody" }, limit: 9 }), []);
      } finally {
        await store.close();
      }
    },
  },
  {
    name: "by hand: a rule that is replaced or lifted stands in the audit as it was before",
    async run(context) {
      const rule = { scope: "topic", value: "orders" } as const;
      await context.admin.suspendScope({ ...rule, ...ACTION, endsInMs: null });
      await context.admin.suspendScope({ ...rule, author: "bob", reason: "longer", endsInMs: 3_600_000 });
      await context.admin.resumeScope({ ...rule, action: { author: "cleo", reason: "over" } });
      const store = context.database.operations({ layout: context.layout });
      try {
        const [lifted, replaced, made] = await store.audit({ filter: {}, limit: 3 });
        assert.deepEqual(made?.details, { rule, before: null });
        assert.deepEqual(replaced?.details, { rule, before: { ...ACTION, endsInMs: null } });
        assert.ok(lifted !== undefined);
        const { before } = lifted.details as { readonly before: { readonly endsInMs: number } };
        assert.deepEqual({ ...before, endsInMs: 0 }, { author: "bob", reason: "longer", endsInMs: 0 });
        assert.ok(before.endsInMs > 3_000_000 && before.endsInMs <= 3_600_000, String(before.endsInMs));
      } finally {
        await store.close();
      }
    },
  },
  {
    name: "by hand: a reset of the backoff is written down with what it brought forward",
    async run(context) {
      await context.putAll(Array(3).fill({ topic: "orders", retryCount: 1, nextRetryInMs: 3_600_000 }));
      assert.equal(await context.admin.resetBackoff({ topic: "orders", action: ACTION }), 3);
      assert.equal(await context.admin.resetBackoff({ topic: "orders", action: ACTION }), 0);
      const store = context.database.operations({ layout: context.layout });
      try {
        const entries = await store.audit({ filter: { action: "reset backoff" }, limit: 10 });
        assert.deepEqual(
          entries.map(({ changed, details }) => ({ changed, details })),
          [{ changed: 3, details: { topic: "orders" } }],
        );
      } finally {
        await store.close();
      }
    },
  },
  {
    name: "by hand: a message that is held until the year 9998 says so with its zone",
    async run(context) {
      const { id } = await context.put({ state: "pending" });
      const untilMs = Date.parse("9998-12-30T00:00:00Z") - Date.now();
      await context.admin.suspend({ filter: { ids: [id] }, action: ACTION, limit: 1, untilMs });
      const [message] = (await context.admin.list({ filter: { ids: [id] }, limit: 1 })).messages;
      assert.match(message?.nextRetryAt ?? "", /^9998-12-(29|30)T[\d:.]{12}Z$/);
    },
  },
  {
    name: "by hand: a session is known until it ends, is idle for too long, or is told to end",
    async run(context) {
      const store = context.database.operations({ layout: context.layout });
      const session = (digit: string, lifeMs: number) => ({
        hash: digit.repeat(64),
        holder: `{"n":"${digit}王"}`,
        lifeMs,
      });
      try {
        await store.openSession(session("a", 60_000));
        await store.openSession(session("b", 0));
        assert.deepEqual(JSON.parse((await store.readSession("a".repeat(64), 60_000)) ?? ""), { n: "a王" });
        assert.equal(await store.readSession("b".repeat(64), 60_000), undefined, "its life is over");
        assert.equal(await store.readSession("c".repeat(64), 60_000), undefined, "there is none");
        assert.equal(await store.readSession("a".repeat(64), 0), undefined, "it was idle");
        await store.endSession("a".repeat(64));
        assert.equal(await store.readSession("a".repeat(64), 60_000), undefined, "it was ended");
        const { clock, messages } = await store.estimate();
        assert.match(clock, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        assert.ok(messages === undefined || messages >= 0);
      } finally {
        await store.close();
      }
    },
  },
  {
    name: "by hand: a sent message is confirmed by a person, and no other one",
    async run(context) {
      const [sent, failed] = await context.putAll([{ state: "sent" }, { state: "failed" }]);
      assert.ok(sent && failed);
      const filter = { ids: [sent.id, failed.id] };
      const report = await context.admin.confirm({ filter, action: ACTION, limit: 10 });
      assert.deepEqual([report.changed, report.conflicts.map(({ id }) => id)], [1, [failed.id]]);
      assert.equal((await context.row(sent)).state, "consumed");
      assert.deepEqual(await done(context, sent.id), [`confirm ann ${ACTION.reason}`]);
    },
  },
  {
    name: "by hand: the words of a rule do not stay when its row is resumed or suspended by hand",
    async run(context) {
      const failReason = `${ruleReason(RULE)}stock count (ops)`;
      const rows = await context.putAll([
        { state: "suspended", failReason },
        { state: "pending", failReason },
      ]);
      const [held, waits] = rows;
      assert.ok(held && waits);
      await context.admin.resume({ filter: { ids: [held.id] }, action: ACTION, limit: 1 });
      await context.admin.suspend({ filter: { ids: [waits.id] }, action: ACTION, limit: 1 });
      for (const row of rows) assert.equal((await context.row(row)).failReason, null);
      // Else the rule, when it is lifted, would resume what a person has suspended.
      await context.admin.resumeScope({ scope: "topic", value: "orders", action: ACTION });
      assert.equal((await context.row(waits)).state, "suspended");
    },
  },
  {
    name: "by hand: what a relay says of itself is read elsewhere, its times counted on",
    async run(context) {
      const owner = freshOwner();
      const { leases } = context.store;
      // Before its first heartbeat there is no row: nothing is written, and nothing fails.
      await leases.report({ owner, report: JSON.stringify(REPORT) });
      assert.deepEqual((await context.other.admin.status()).instances, []);
      await leases.heartbeat({ owner, label: "host:1", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] });
      await leases.report({ owner, report: JSON.stringify(REPORT) });
      // A heartbeat leaves the report as it is.
      await leases.heartbeat({ owner, label: "host:1", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] });
      const { dialect, own } = context;
      await context.sql(
        `UPDATE ${own.relay} SET seen_at = ${dialect.ownAt(-20_000)}, reported_at = ${dialect.ownAt(-30_000)} WHERE ${own.ours}`,
      );
      const [instance] = (await context.other.admin.status()).instances;
      assert.ok(instance?.report);
      const { brokers, lastError, restingTopics, ...rest } = instance.report;
      assert.deepEqual(rest, {
        version: "1.2.3",
        shards: [0],
        inFlight: 7,
        windowSize: 2_000,
        onFailed: "skip",
        moreResting: 0,
      });
      assert.equal(brokers[0]?.reason, REPORT.brokers[0]?.reason);
      context.assertInMs(-instance.silentMs, -20_000, "silence");
      context.assertInMs(-(instance.reportAgeMs ?? 0), -30_000, "age of the report");
      context.assertInMs(-(brokers[0]?.awayForMs ?? 0), -90_000, "away");
      context.assertInMs(restingTopics[0]?.restsForMs ?? null, 3_570_000, "rest");
      context.assertInMs(-(lastError?.agoMs ?? 0), -35_000, "last error");
      assert.equal(instance.alive, true);
      await context.sql(
        `UPDATE ${own.relay} SET seen_at = ${dialect.ownAt(-90_000)}, report = 'not ours' WHERE ${own.ours}`,
      );
      const [silent] = (await context.other.admin.status()).instances;
      assert.deepEqual([silent?.alive, silent?.report], [false, undefined]);
    },
  },
];
