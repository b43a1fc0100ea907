/**
 * The slow work beside the relay: sweeps, timers, parking, suspension by rule, and the numbers for
 * gauges.
 */
import assert from "node:assert/strict";
import { MESSAGE_STATES, type MessageState } from "../../../../src/message/states.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues, StoreCaseContext } from "../context.ts";
import { RULE } from "../fenced.ts";
import { CLAIMED } from "../outcome.ts";
import { endsUnderLock } from "../under-lock.ts";
import { unknownState } from "./claim.ts";
import { clockCases } from "./clock.ts";
import { timedCases } from "./timed.ts";

const HOUR_MS = 3_600_000;

export const housekeepingCases: readonly StoreContractCase[] = [
  {
    name: "listSending: names the rows that are being sent, with their tokens, and no others",
    async run(context) {
      const rows = await context.putAll(MESSAGE_STATES.map((state) => ({ ...CLAIMED, state, topic: `of-${state}` })));
      const sending = rows[MESSAGE_STATES.indexOf("sending")];
      assert.ok(sending);
      const found = await context.store.housekeeping.listSending({ shards: undefined, limit: 100 });
      assert.deepEqual(found, [{ ...(await context.token(sending)), topic: "of-sending" }]);
    },
  },
  {
    name: "listSending: keeps to its limit, and to its shards",
    needs: ["shards"],
    async run(context) {
      const rows = await context.putAll([2, 2, 7, 9].map((shard) => ({ ...CLAIMED, shard })));
      const { housekeeping } = context.store;
      assert.equal((await housekeeping.listSending({ shards: undefined, limit: 3 })).length, 3);
      const some = await housekeeping.listSending({ shards: [2, 9], limit: 100 });
      const expected = rows.filter(({ shard }) => shard !== 7).map(({ id }) => id);
      assert.deepEqual(some.map(({ id }) => id).sort(), expected.sort());
      assert.deepEqual(await housekeeping.listSending({ shards: [], limit: 100 }), []);
    },
  },
  ...timedCases,
  {
    name: "failUnknownStates: rows in no known state become failed, with what stood there; others stay",
    needs: ["takesUnknownStates"],
    async run(context) {
      const known = await context.putAll(MESSAGE_STATES.map((state) => ({ state, nextRetryInMs: -5_000 })));
      const rawState = unknownState(context.layout.states.pending);
      const row = await context.put({ rawState, nextRetryInMs: -5_000, retryCount: 2, body: "not json" });
      const columns = ["state", "failReason", "nextRetryAt", "lockVersion"] as const;
      const failed = await context.assertUnchanged(known, () =>
        context.assertChanges(row, columns, () => context.store.housekeeping.failUnknownStates({ limit: 10 })),
      );
      assert.deepEqual(
        failed.map(({ id, key, reason }) => [id, key, reason.startsWith("UNKNOWN_STATE: ")]),
        [[row.id, row.key, true]],
      );
      const { failReason, nextRetryInMs, state } = await context.row(row);
      assert.deepEqual([state, nextRetryInMs], ["failed", null]);
      assert.match(failReason ?? "", new RegExp(String(rawState)));
    },
  },
  {
    name: "failUnknownStates: takes no more rows than its limit",
    needs: ["takesUnknownStates"],
    async run(context) {
      const rawState = unknownState(context.layout.states.pending);
      await context.putAll([{ rawState }, { rawState }, { rawState }]);
      const { housekeeping } = context.store;
      assert.equal((await housekeeping.failUnknownStates({ limit: 2 })).length, 2);
      assert.equal((await housekeeping.failUnknownStates({ limit: 2 })).length, 1);
      assert.deepEqual(await housekeeping.failUnknownStates({ limit: 2 }), []);
    },
  },
  {
    name: "failPending: each row fails with its own reason, and is not counted as an attempt",
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([{}, { nextRetryInMs: -5_000 }]);
      const [one, two] = rows;
      assert.ok(one && two);
      const broken = (await context.tokens(rows)).map((token, index) => ({
        ...token,
        failReason: `broken '${index}' \\`,
      }));
      const columns = ["state", "failReason", "nextRetryAt", "lockVersion"] as const;
      const request = { fence, rows: broken, nextRetryInMs: 6 * HOUR_MS };
      assert.equal(await context.assertChanges(one, columns, () => context.store.housekeeping.failPending(request)), 2);
      for (const [index, row] of rows.entries()) {
        const { failReason, nextRetryInMs, retryCount, state } = await context.row(row);
        assert.deepEqual([state, failReason, retryCount], ["failed", `broken '${index}' \\`, 0]);
        context.assertInMs(nextRetryInMs, 6 * HOUR_MS, "slow retry");
      }
    },
  },
  {
    name: "failPending: without a slow retry the row is left for a person",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ nextRetryInMs: -5_000 });
      const rows = [{ ...(await context.token(row)), failReason: "broken" }];
      await context.store.housekeeping.failPending({ fence, rows, nextRetryInMs: null });
      assert.equal((await context.row(row)).nextRetryInMs, null);
    },
  },
  {
    name: "suspendPending: rows under a rule rest with its reason until it ends",
    async run(context) {
      const { fence } = await context.acquire();
      await context.admin.suspendScope(RULE);
      const row = await context.put({ retryCount: 1, nextRetryInMs: -5_000 });
      const rows = [await context.token(row)];
      const columns = ["state", "failReason", "nextRetryAt", "lockVersion"] as const;
      const request = { rule: RULE, fence, rows, failReason: "rule 'a' \\ %", endsInMs: HOUR_MS };
      assert.equal(
        await context.assertChanges(row, columns, () => context.store.housekeeping.suspendPending(request)),
        1,
      );
      const { failReason, nextRetryInMs, state } = await context.row(row);
      assert.deepEqual([state, failReason], ["suspended", "rule 'a' \\ %"]);
      context.assertInMs(nextRetryInMs, HOUR_MS, "end of the rule");
      const open = await context.put();
      const forEver = { rule: RULE, fence, rows: [await context.token(open)], failReason: "rule", endsInMs: null };
      await context.store.housekeeping.suspendPending(forEver);
      assert.equal((await context.row(open)).nextRetryInMs, null);
    },
  },
  {
    name: "suspendPending: where the only time is a delay, a delayed row keeps it (rule: delay-is-not-retry)",
    needs: ["noDeliverAt"],
    async run(context) {
      const { fence } = await context.acquire();
      const delayed = await context.put({ nextRetryInMs: HOUR_MS });
      const backedOff = await context.put({ nextRetryInMs: HOUR_MS, retryCount: 1 });
      await context.admin.suspendScope(RULE);
      const request = { rule: RULE, fence, failReason: "rule", endsInMs: null };
      const rows = await context.tokens([delayed, backedOff]);
      await context.assertUnchanged([delayed], () => context.store.housekeeping.suspendPending({ ...request, rows }));
      assert.equal((await context.row(backedOff)).state, "suspended");
    },
  },
  {
    name: "park: a row stays pending and comes back later, never before its own time",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ retryCount: 1, failReason: "earlier" });
      const rows = [await context.token(row)];
      const parked = await context.assertChanges(row, ["nextRetryAt", "lockVersion"], () =>
        context.store.housekeeping.park({ fence, rows, parkMs: 90_000 }),
      );
      assert.equal(parked, 1);
      context.assertInMs((await context.row(row)).nextRetryInMs, 90_000, "next_retry_at");
      if (context.layout.columns.deliverAt === undefined) return;
      const delayed = await context.put({ deliverInMs: HOUR_MS, nextRetryInMs: HOUR_MS });
      await context.store.housekeeping.park({ fence, rows: [await context.token(delayed)], parkMs: 1_000 });
      context.assertInMs((await context.row(delayed)).nextRetryInMs, HOUR_MS, "next_retry_at of a delayed row");
    },
  },
  ...onlyPending(),
  {
    name: "resetBackoff: brings the rows of a topic forward in their order, one step apart",
    async run(context) {
      const waiting: PutValues = { topic: "broken", nextRetryInMs: 10 * HOUR_MS, retryCount: 3, failReason: "earlier" };
      const rows = await context.putAll([waiting, waiting, waiting]);
      const stepMs = 60_000;
      const [first] = rows;
      assert.ok(first);
      const changed = await context.assertChanges(first, ["nextRetryAt", "lockVersion"], () =>
        context.store.housekeeping.resetBackoff({ topic: "broken", limit: 10, stepMs }),
      );
      assert.equal(changed, 3);
      for (const [index, row] of rows.entries()) {
        context.assertInMs((await context.row(row)).nextRetryInMs, index * stepMs, `row ${index}`);
      }
    },
  },
  {
    name: "resetBackoff: takes the first rows up to its limit, and goes on where it ended",
    async run(context) {
      const waiting: PutValues = { topic: "broken", nextRetryInMs: 10 * HOUR_MS, retryCount: 1 };
      const rows = await context.putAll([waiting, waiting, waiting]);
      const { housekeeping } = context.store;
      const isWaiting = async (): Promise<boolean[]> =>
        await Promise.all(rows.map(async (row) => ((await context.row(row)).nextRetryInMs ?? 0) > HOUR_MS));
      assert.equal(await housekeeping.resetBackoff({ topic: "broken", limit: 2, stepMs: 0 }), 2);
      assert.deepEqual(await isWaiting(), [false, false, true]);
      await housekeeping.resetBackoff({ topic: "broken", limit: 2, stepMs: 0 });
      assert.deepEqual(await isWaiting(), [false, false, false]);
    },
  },
  {
    name: "resetBackoff: other topics, other states, due rows and rows without a time stay",
    async run(context) {
      const topic = "broken";
      const others = MESSAGE_STATES.filter((state) => state !== "pending" && state !== "failed");
      const rows = await context.putAll([
        { topic, state: "failed", retryCount: 1 },
        { topic: "healthy", nextRetryInMs: 10 * HOUR_MS, retryCount: 1 },
        { topic: "Broken", nextRetryInMs: 10 * HOUR_MS, retryCount: 1 },
        { topic, retryCount: 1 },
        { topic, nextRetryInMs: -5_000, retryCount: 1 },
        ...others.map((state) => ({ topic, state, nextRetryInMs: 10 * HOUR_MS, retryCount: 1 })),
      ]);
      // A folding table takes Broken for broken, and wakes too many: harmless.
      const compared = context.harness.features.comparesBytes ? rows : rows.filter((_row, index) => index !== 2);
      await context.assertUnchanged(compared, () =>
        context.store.housekeeping.resetBackoff({ topic, limit: 100, stepMs: 0 }),
      );
    },
  },
  {
    name: "resetBackoff: the slow retry of a failed message comes forward",
    async run(context) {
      const row = await context.put({ topic: "broken", state: "failed", nextRetryInMs: 6 * HOUR_MS, retryCount: 10 });
      const reset = { topic: "broken", limit: 100, stepMs: 0 };
      assert.equal(await context.store.housekeeping.resetBackoff(reset), 1);
      assert.equal(await context.store.housekeeping.resetBackoff(reset), 0);
      const { nextRetryInMs, state } = await context.row(row);
      assert.equal(state, "failed");
      context.assertInMs(nextRetryInMs, 0, "next_retry_at");
    },
  },
  {
    name: "resetBackoff: a delayed message keeps its time (rule: delay-is-not-retry)",
    async run(context) {
      const own: PutValues = context.layout.columns.deliverAt === undefined ? {} : { deliverInMs: HOUR_MS };
      const row = await context.put({ topic: "broken", ...own, nextRetryInMs: HOUR_MS });
      await context.store.housekeeping.resetBackoff({ topic: "broken", limit: 100, stepMs: 0 });
      context.assertInMs((await context.row(row)).nextRetryInMs, HOUR_MS, "next_retry_at");
    },
  },
  ...clockCases,
  {
    name: "gauges: count what is unfinished by topic and state, with the age of the oldest; finished rows do not count",
    async run(context) {
      await context.putAll([
        { topic: "a", createdInMs: -90_000 },
        { topic: "a", createdInMs: -20_000 },
        { topic: "a", nextRetryInMs: HOUR_MS, createdInMs: -30_000 },
        { topic: "b" },
        ...MESSAGE_STATES.filter((state) => state !== "pending").map((state) => ({ topic: "a", state })),
      ]);
      const gauges = await context.store.housekeeping.gauges();
      const counts = gauges.map(({ count, state, topic }) => `${topic} ${state} ${count}`).sort();
      assert.deepEqual(counts, ["a failed 1", "a pending 3", "a sending 1", "a suspended 1", "b pending 1"]);
      const oldest = gauges.find(({ state, topic }) => topic === "a" && state === "pending")?.oldestAgeMs ?? 0;
      assert.ok(oldest >= 85_000 && oldest < 120_000, `oldest for ${oldest} ms`);
    },
  },
];

type Pending = "failPending" | "suspendPending" | "park";

/**
 * What the relay does to pending rows that it cannot send leaves rows alone that are not pending
 * any more, or not the same any more.
 */
function onlyPending(): StoreContractCase[] {
  const run = async (context: StoreCaseContext, operation: Pending, rows: readonly PutRow[]): Promise<number> => {
    const { fence } = await context.acquire({ shards: rows.map(({ shard }) => shard) });
    const tokens = await context.tokens(rows);
    const { housekeeping } = context.store;
    if (operation === "park") return await housekeeping.park({ fence, rows: tokens, parkMs: 60_000 });
    const failReason = "must not be";
    if (operation === "suspendPending") {
      await context.admin.suspendScope(RULE);
      return await housekeeping.suspendPending({ rule: RULE, fence, rows: tokens, failReason, endsInMs: null });
    }
    const broken = tokens.map((token) => ({ ...token, failReason }));
    return await housekeeping.failPending({ fence, rows: broken, nextRetryInMs: null });
  };
  return (["failPending", "suspendPending", "park"] as const).flatMap((operation): StoreContractCase[] => [
    {
      name: `${operation}: rows that are not pending stay`,
      async run(context) {
        // A takeover would recover `sending`, so its shard is taken before it is put there.
        const others: MessageState[] = MESSAGE_STATES.filter((state) => state !== "pending" && state !== "sending");
        const rows = await context.putAll(others.map((state) => ({ state })));
        assert.equal(await context.assertUnchanged(rows, () => run(context, operation, rows)), 0);
      },
    },
    {
      name: `${operation}: a row that a user holds keeps no other waiting, and is met again`,
      needs: ["rowLocks"],
      async run(context) {
        const rows = await context.putAll(Array.from({ length: 5 }, () => ({})));
        const [held] = rows;
        assert.ok(held);
        assert.equal(await endsUnderLock(context, held, () => run(context, operation, rows)), 4);
        assert.equal(await run(context, operation, [held]), 1);
      },
    },
    {
      name: `${operation}: a row that changed since it was scanned stays`,
      needs: ["claimToken"],
      async run(context) {
        const { fence } = await context.acquire();
        const row = await context.put();
        const stale = await context.token(row);
        await context.table.edit(row.id, { lockVersion: 5, deliveryCount: 1 });
        const { housekeeping } = context.store;
        const rows = [{ ...stale, failReason: "must not be" }];
        await context.admin.suspendScope(RULE);
        const changed = await context.assertUnchanged([row], () => {
          if (operation === "park") return housekeeping.park({ fence, rows, parkMs: 60_000 });
          if (operation === "failPending") return housekeeping.failPending({ fence, rows, nextRetryInMs: null });
          return housekeeping.suspendPending({ rule: RULE, fence, rows, failReason: "must not be", endsInMs: null });
        });
        assert.equal(changed, 0);
      },
    },
  ]);
}
