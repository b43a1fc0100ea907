/** Changes of messages as somebody saw them, and what the status tells of them. */
import assert from "node:assert/strict";
import type { StoreContractCase } from "../case.ts";
import type { PutValues } from "../context.ts";

const HOUR_MS = 3_600_000;
const ACTION = { author: "ann", reason: "ticket 7" };
const COUNTED: PutValues = { retryCount: 3, deliveryCount: 4, lockVersion: 6, nextRetryInMs: -5_000 };

export const seenCases: readonly StoreContractCase[] = [
  {
    name: "admin: a message that has changed since it was seen is a conflict, and stays as it is",
    needs: ["claimToken"],
    async run(context) {
      const rows = await context.putAll(Array(2).fill({ ...COUNTED, state: "failed" }));
      const [same, changed] = rows;
      assert.ok(same && changed);
      const seen = rows.map(({ id }) => ({ id, lockVersion: "6" }));
      await context.sql(`UPDATE ${context.own.messages} SET lock_version = 7 WHERE id = ${changed.id}`);
      const report = await context.assertUnchanged([changed], () =>
        context.admin.retry({ filter: {}, seen, action: ACTION, limit: 10 }),
      );
      assert.deepEqual(report, {
        changed: 1,
        conflicts: [{ id: changed.id, state: "failed", lockVersion: "7" }],
        nextAfterId: undefined,
      });
      assert.equal((await context.row(same)).state, "pending");
    },
  },
  {
    name: "admin: changes go in the order of ids, and say where to go on",
    async run(context) {
      const rows = await context.putAll(Array(5).fill({ ...COUNTED, state: "failed", topic: "mine" }));
      const request = { filter: { topic: "mine" }, action: ACTION, limit: 2 };
      const first = await context.admin.retry(request);
      assert.deepEqual([first.changed, first.nextAfterId], [2, rows[1]?.id]);
      const second = await context.admin.retry({ ...request, afterId: rows[2]?.id });
      assert.deepEqual([second.changed, second.nextAfterId], [2, rows[4]?.id]);
      const states = await Promise.all(rows.map(async (row) => (await context.row(row)).state));
      assert.deepEqual(states, ["pending", "pending", "failed", "pending", "pending"]);
    },
  },
  {
    name: "admin: the status tells of the message that has been due for longest, and of no later one",
    async run(context) {
      assert.equal((await context.admin.status()).oldestDue, undefined);
      const [waits] = await context.putAll([
        { createdInMs: -60_000 },
        { createdInMs: -90_000, nextRetryInMs: HOUR_MS },
        { createdInMs: -90_000, state: "failed", nextRetryInMs: -80_000 },
      ]);
      assert.equal((await context.admin.status()).oldestDue?.id, waits?.id);
      const retried = await context.put({ createdInMs: -HOUR_MS, nextRetryInMs: -120_000, retryCount: 1 });
      const { counts, exact, oldestDue } = await context.admin.status();
      assert.equal(oldestDue?.id, retried.id);
      context.assertInMs(-(oldestDue?.waitingMs ?? 0), -120_000, "waiting time");
      assert.deepEqual(
        [exact, ...counts.map(({ atLeast, count, state }) => `${state} ${count} ${atLeast}`).sort()],
        [false, "failed 1 false", "pending 3 false"],
      );
    },
  },
];
