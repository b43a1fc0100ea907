/** Changes of many messages by hand: what they mean, and that nothing is lost or done twice. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { AuditRecord } from "../../../../src/admin/operations.ts";
import type { StoreContractCase } from "../case.ts";
import type { StoreCaseContext } from "../context.ts";

const ACTION = { author: "ann", reason: "the broker is back", via: "console" };
const RETRY = { kind: "retry", filter: { topic: "orders" }, action: ACTION } as const;

async function failed(context: StoreCaseContext, count: number): Promise<string[]> {
  const first = randomUUID();
  const rows = await context.putAll(
    Array.from({ length: count }, (_, index) => ({
      key: `${first}-${index}`,
      state: "failed",
      failReason: "HTTP_503",
      topic: "orders",
    })),
  );
  return rows.map(({ id }) => id);
}

/** All entries, the oldest first. */
async function audit(context: StoreCaseContext): Promise<readonly AuditRecord[]> {
  const store = context.database.operations({ layout: context.layout });
  try {
    return (await store.audit({ filter: { author: "ann" }, limit: 100 })).reverse();
  } finally {
    await store.close();
  }
}

/** Of the entries, with the common id of one change taken out of each. */
function told(entries: readonly AuditRecord[], operation: string): unknown[] {
  return entries.map(({ action, changed, details, result }) => {
    const { operation: id, ...about } = details as Readonly<Record<string, unknown>>;
    assert.equal(id, operation);
    return [action, result, changed, about["changed"]];
  });
}

export const manyCases: readonly StoreContractCase[] = [
  {
    name: "many: a preview counts and changes nothing; what comes behind it is not changed",
    async run(context) {
      const ids = await failed(context, 3);
      await context.put({ state: "sent", topic: "orders" });
      const { complete, found, samples, upToId } = await context.admin.preview(RETRY);
      assert.deepEqual([found, complete], [3, true]);
      assert.deepEqual(
        samples.map(({ id, state }) => [id, state]),
        ids.map((id) => [id, "failed"]),
      );
      assert.deepEqual(await audit(context), []);
      const later = await failed(context, 2);
      const report = await context.admin.changeMany({ ...RETRY, upToId });
      assert.deepEqual(report, { state: "done", changed: 3, left: 0, vanished: 0, conflicts: [] });
      const { messages } = await context.admin.list({ filter: { ids: [...ids, ...later] }, limit: 10 });
      assert.deepEqual(
        messages.map(({ state }) => state),
        ["failed", "failed", "pending", "pending", "pending"],
      );
      const [change] = await context.admin.changes(ids[0] ?? "");
      assert.deepEqual([change?.action, change?.author, change?.reason], ["retry", "ann", ACTION.reason]);
    },
  },
  {
    name: "many: of those that were seen, what somebody changed or removed since is left and told",
    needs: ["claimToken"],
    async run(context) {
      const ids = await failed(context, 5);
      const { messages } = await context.admin.list({ filter: { ids }, limit: 5 });
      const seen = messages.map(({ id, lockVersion = "0" }) => ({ id, lockVersion }));
      const [first = "", second = "", third = ""] = ids;
      const one = (id: string) => ({ filter: { ids: [id] }, action: ACTION, limit: 1 });
      await context.admin.suspend(one(first));
      await context.admin.remove({ ...one(second), mode: "delete" });
      // Failed again since then: the state alone would not tell.
      await context.sql(`UPDATE ${context.own.messages} SET lock_version = lock_version + 1 WHERE id = ${third}`);
      const { conflicts, ...report } = await context.admin.changeMany({ ...RETRY, filter: {}, seen });
      assert.deepEqual(report, { state: "done", changed: 2, left: 2, vanished: 1 });
      assert.deepEqual(
        conflicts.map(({ id, state }) => [id, state]),
        [
          [first, "suspended"],
          [third, "failed"],
        ],
      );
    },
  },
  {
    name: "many: one that a relay sends between the look and the lock is left, and stays sent",
    needs: ["rowLocks"],
    async run(context) {
      const rows = await context.putAll(Array(3).fill({ state: "pending", topic: "orders" }));
      const [first, sent, last] = rows;
      assert.ok(first && sent && last);
      const report = await context.whileLocked([sent], {
        start: () => context.admin.changeMany({ ...RETRY, kind: "suspend" }),
        // What a claim and a settle would have done meanwhile.
        meanwhile: (edit) => edit(sent, { state: "sent", lockVersion: 2 }),
      });
      assert.deepEqual([report.changed, report.left], [2, 1]);
      assert.deepEqual(
        report.conflicts.map(({ id, state }) => [id, state]),
        [[sent.id, "sent"]],
      );
      const states = await Promise.all(rows.map(async (row) => (await context.row(row)).state));
      assert.deepEqual(states, ["suspended", "sent", "suspended"]);
    },
  },
  {
    name: "many: cancelled behind a batch the rest is as it was; started again each message is changed once",
    async run(context) {
      // Three batches of 500.
      const ids = await failed(context, 1_001);
      const cancelling = new AbortController();
      const [first, second] = [randomUUID(), randomUUID()];
      const cancelled = await context.admin.changeMany({
        ...RETRY,
        operation: first,
        signal: cancelling.signal,
        onProgress: () => cancelling.abort(),
      });
      assert.deepEqual([cancelled.state, cancelled.changed], ["cancelled", 500]);
      const seen: number[] = [];
      const again = await context.admin.changeMany({
        ...RETRY,
        operation: second,
        onProgress: ({ changed }) => seen.push(changed),
      });
      assert.deepEqual([again.state, again.changed, seen], ["done", 501, [500, 501]]);
      const entries = await audit(context);
      const of = (id: string) => entries.filter(({ details }) => JSON.stringify(details).includes(id));
      assert.deepEqual(told(of(first), first), [
        ["many retry", "begun", 0, undefined],
        ["retry", "done", 500, undefined],
        ["many retry", "cancelled", 0, 500],
      ]);
      assert.deepEqual(told(of(second), second), [
        ["many retry", "begun", 0, undefined],
        ["retry", "done", 500, undefined],
        ["retry", "done", 1, undefined],
        ["many retry", "done", 0, 501],
      ]);
      assert.deepEqual(
        entries.flatMap((entry) => entry.ids),
        ids,
        "each of them once",
      );
      const aborted = await context.admin.changeMany({ ...RETRY, signal: AbortSignal.abort() });
      assert.deepEqual([aborted.state, aborted.changed], ["cancelled", 0]);
    },
  },
  {
    name: "many: what fails in the middle is written down with what it has changed, and thrown",
    async run(context) {
      await failed(context, 501);
      const broken = new Error("no more");
      const failing = context.admin.changeMany({
        ...RETRY,
        onProgress: () => {
          throw broken;
        },
      });
      await assert.rejects(failing, broken);
      const last = (await audit(context)).at(-1);
      assert.ok(last);
      assert.deepEqual([last.action, last.result], ["many retry", "failed"]);
      const { changed, error } = last.details as { readonly changed: number; readonly error: string };
      // The batch is committed when it is told.
      assert.deepEqual([changed, error], [500, "no more"]);
      assert.equal((await context.admin.preview(RETRY)).found, 1);
    },
  },
  {
    name: "many: everything at once and states that forbid it are refused, and nothing is written",
    async run(context) {
      await failed(context, 1);
      for (const filter of [{}, { states: ["sent"] as const }, { ids: ["x"] }]) {
        await assert.rejects(context.admin.preview({ ...RETRY, filter }), { code: "CONFIGURATION" });
        await assert.rejects(context.admin.changeMany({ ...RETRY, filter }), { code: "CONFIGURATION" });
      }
      const nobody = { ...RETRY, action: { author: "ann", reason: " " } };
      await assert.rejects(context.admin.changeMany(nobody), { code: "CONFIGURATION" });
      assert.equal((await context.admin.preview(RETRY)).found, 1);
      assert.deepEqual(await audit(context), []);
    },
  },
  {
    name: "many: at most as many as the limit, those that were named whatever their state is",
    async run(context) {
      const ids = await failed(context, 3);
      const sent = await context.put({ state: "sent", topic: "orders" });
      assert.equal((await context.admin.changeMany({ ...RETRY, limit: 2 })).changed, 2);
      const named = await context.admin.changeMany({ ...RETRY, filter: { ids: [...ids, sent.id] } });
      assert.deepEqual([named.changed, named.left], [1, 3]);
      assert.deepEqual(
        named.conflicts.map(({ id, state }) => [id, state]),
        [...ids.slice(0, 2).map((id) => [id, "pending"]), [sent.id, "sent"]],
      );
    },
  },
  {
    name: "many: sent again go on behind an id; failed ones are archived only where they are named",
    async run(context) {
      const rows = await context.putAll(Array(3).fill({ state: "sent", topic: "orders" }));
      await failed(context, 1);
      const sent = { states: ["sent"] as const, topic: "orders" };
      const resent = await context.admin.changeMany({
        kind: "resend",
        filter: sent,
        action: ACTION,
        afterId: rows[0]?.id,
      });
      assert.equal(resent.changed, 2);
      const archive = { ...RETRY, kind: "archive" } as const;
      assert.equal((await context.admin.preview(archive)).found, 1);
      assert.equal((await context.admin.changeMany(archive)).changed, 1);
      const filter = { topic: "orders", states: ["failed"] as const };
      assert.equal((await context.admin.changeMany({ ...archive, kind: "delete", filter })).changed, 1);
    },
  },
  {
    name: "many: one that is due already is left, and not told as gone",
    async run(context) {
      await context.put({ state: "pending", topic: "orders" });
      await failed(context, 1);
      const { changed, left, vanished } = await context.admin.changeMany({ ...RETRY, now: true });
      assert.deepEqual([changed, left, vanished], [1, 1, 0]);
    },
  },
  {
    name: "many: suspended until a time, and resumed",
    async run(context) {
      const { id } = await context.put({ state: "pending" });
      const hold = { kind: "suspend", filter: { ids: [id] }, action: ACTION, untilMs: 3_600_000 } as const;
      assert.equal((await context.admin.changeMany(hold)).changed, 1);
      const [held] = (await context.admin.list({ filter: { ids: [id] }, limit: 1 })).messages;
      assert.equal(held?.state, "suspended");
      assert.notEqual(held?.nextRetryAt, null);
      const resume = { kind: "resume", filter: { states: ["suspended"] as const }, action: ACTION } as const;
      assert.equal((await context.admin.changeMany(resume)).changed, 1);
    },
  },
];
