/**
 * Rows that were being sent when their relay lost the shard, or that are in nobody's window (rules:
 * takeover-fence, watched-sending, listed-in-flight).
 */
import assert from "node:assert/strict";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { StoreContractCase } from "../case.ts";
import { freshOwner } from "../context.ts";
import { CLAIMED } from "../outcome.ts";
import { endsUnderLock } from "../under-lock.ts";

const HOUR_MS = 3_600_000;

export const recoverCases: readonly StoreContractCase[] = [
  {
    name: "recover: a takeover brings back what was being sent, counts the rows, and leaves their counts",
    async run(context) {
      const row = await context.put({ ...CLAIMED, retryCount: 2, failReason: "earlier", nextRetryInMs: -5_000 });
      const columns = ["state", "nextRetryAt", "lockVersion"] as const;
      const { recovered } = await context.assertChanges(row, columns, () => context.acquire());
      assert.equal(recovered, 1);
      const { state, nextRetryInMs, lockVersion } = await context.row(row);
      assert.deepEqual([state, nextRetryInMs], ["pending", null]);
      if (context.layout.columns.lockVersion !== undefined) assert.equal(lockVersion, 2);
    },
  },
  {
    name: "recover: rows in other states stay",
    async run(context) {
      const others = MESSAGE_STATES.filter((state) => state !== "sending");
      const rows = await context.putAll(others.map((state) => ({ ...CLAIMED, state })));
      const { recovered } = await context.assertUnchanged(rows, () => context.acquire());
      assert.equal(recovered, 0);
    },
  },
  {
    name: "recover: rows of shards that were not taken stay",
    needs: ["shards"],
    async run(context) {
      const [mine, other] = await context.putAll([
        { ...CLAIMED, shard: 3 },
        { ...CLAIMED, shard: 4 },
      ]);
      assert.ok(mine && other);
      const { recovered } = await context.assertUnchanged([other], () => context.acquire({ shards: [3] }));
      assert.equal(recovered, 1);
      assert.equal((await context.row(mine)).state, "pending");
    },
  },
  {
    name: "recover: a keyed row belongs to the shard of its ordering key",
    needs: ["shards", "orderingKey"],
    async run(context) {
      const [row] = await context.putAll([{ ...CLAIMED, key: context.freshKey(4), orderingKey: context.freshKey(3) }]);
      assert.ok(row);
      assert.equal((await context.assertUnchanged([row], () => context.acquire({ shards: [4] }))).recovered, 0);
      assert.equal((await context.acquire({ shards: [3] })).recovered, 1);
    },
  },
  {
    name: "recover: a message whose own time is ahead waits for it (rule: delay-is-not-retry)",
    needs: ["deliverAt"],
    async run(context) {
      const rows = await context.putAll([
        { ...CLAIMED, deliverInMs: HOUR_MS },
        { ...CLAIMED, deliverInMs: -HOUR_MS },
      ]);
      await context.acquire();
      const [ahead, past] = await Promise.all(rows.map((row) => context.row(row)));
      context.assertInMs(ahead?.nextRetryInMs ?? null, HOUR_MS, "next_retry_at");
      assert.equal(past?.nextRetryInMs, null);
    },
  },
  {
    name: "recover: who takes nothing recovers nothing",
    async run(context) {
      const seen = await context.leases();
      await context.acquire();
      const row = await context.put(CLAIMED);
      const late = await context.assertUnchanged([row], () =>
        context.other.store.leases.acquire({ owner: freshOwner(), leaseMs: 60_000, observed: seen }),
      );
      assert.deepEqual(late, { acquired: [], recovered: 0 });
    },
  },
  {
    name: "recover: a claim that commits while the takeover waits for it is seen (rule: takeover-fence)",
    needs: ["rowLocks"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([{}, {}, {}]);
      const tokens = await context.tokens(rows);
      const observed = await context.leases();
      const owner = freshOwner();
      const store = await context.openStore();
      // The claim waits for its first row and holds the lease; the takeover waits for the lease.
      const [claimed, { recovered }] = await context.whileLocked(rows.slice(0, 1), {
        waiters: 2,
        async start() {
          const claiming = store.claim({ fence, rows: tokens });
          claiming.catch(() => undefined);
          await context.waiting(1);
          const taking = context.other.store.leases.acquire({ owner, leaseMs: 60_000, observed });
          return await Promise.all([claiming, taking]);
        },
      });
      assert.equal(claimed, 3);
      assert.equal(recovered, 3, "rows that the claim has marked");
      for (const row of rows) assert.equal((await context.row(row)).state, "pending");
    },
  },
  {
    name: "recover: what was listed as in flight counts a delivery, once (rule: listed-in-flight)",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const shard = 0;
      const rows = await context.putAll([
        { shard, deliveryCount: 1, lockVersion: 4 },
        { shard },
        { shard, state: "sent" },
      ]);
      const [listed, unlisted, settled] = rows;
      assert.ok(listed && unlisted && settled);
      const idsByShard = [{ shard, ids: [listed.id, settled.id] }];
      assert.deepEqual(await context.store.listInFlight({ fence, idsByShard }), [shard]);
      const { recovered } = await context.assertUnchanged([unlisted, settled], () => context.acquire());
      assert.equal(recovered, 1);
      const { state, deliveryCount, lockVersion } = await context.row(listed);
      assert.equal(state, "pending");
      if (context.layout.columns.deliveryCount !== undefined) assert.equal(deliveryCount, 2);
      if (context.layout.columns.lockVersion !== undefined) assert.equal(lockVersion, 5);
      await context.assertUnchanged(rows, () => context.acquire());
    },
  },
  {
    name: "recover: lists of shards that were not taken are kept",
    needs: ["claimToken", "shards"],
    async run(context) {
      const { fence } = await context.acquire();
      const [mine, other] = await context.putAll([{ shard: 3 }, { shard: 4 }]);
      assert.ok(mine && other);
      const idsByShard = [mine, other].map(({ id, shard }) => ({ shard, ids: [id] }));
      assert.deepEqual(new Set(await context.store.listInFlight({ fence, idsByShard })), new Set([3, 4]));
      const three = await context.assertUnchanged([other], () => context.acquire({ shards: [3] }));
      assert.equal(three.recovered, 1);
      assert.equal((await context.acquire({ shards: [4] })).recovered, 1);
    },
  },
  {
    name: "recover: a released shard's list is forgotten",
    needs: ["claimToken"],
    async run(context) {
      const { fence, held, owner } = await context.acquire();
      const row = await context.put();
      await context.store.listInFlight({ fence, idsByShard: [{ shard: row.shard, ids: [row.id] }] });
      await context.store.leases.release({ owner, shards: held });
      const { recovered } = await context.assertUnchanged([row], () => context.acquire());
      assert.equal(recovered, 0);
    },
  },
  {
    name: "recover: the sweep returns rows of the claim that it saw, and no others (rule: watched-sending)",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([CLAIMED, CLAIMED]);
      const [stray, claimedAgain] = rows;
      assert.ok(stray && claimedAgain);
      const tokens = await context.tokens(rows);
      await context.table.edit(claimedAgain.id, { lockVersion: 3, deliveryCount: 2 });
      const columns = ["state", "lockVersion"] as const;
      const recovered = await context.assertUnchanged([claimedAgain], () =>
        context.assertChanges(stray, columns, () => context.store.housekeeping.recover({ fence, rows: tokens })),
      );
      assert.equal(recovered, 1);
      assert.equal((await context.row(stray)).state, "pending");
    },
  },
  {
    name: "recover: the sweep returns only rows that are being sent, and never before their own time",
    async run(context) {
      const { fence } = await context.acquire();
      const others = MESSAGE_STATES.filter((state) => state !== "sending");
      const rows = await context.putAll(others.map((state) => ({ ...CLAIMED, state })));
      const delayed = await context.put({ ...CLAIMED, deliverInMs: HOUR_MS });
      const tokens = await context.tokens([...rows, delayed]);
      const recovered = await context.assertUnchanged(rows, () =>
        context.store.housekeeping.recover({ fence, rows: tokens }),
      );
      assert.equal(recovered, 1);
      const { state, nextRetryInMs } = await context.row(delayed);
      assert.equal(state, "pending");
      if (context.layout.columns.deliverAt === undefined) assert.equal(nextRetryInMs, null);
      else context.assertInMs(nextRetryInMs, HOUR_MS, "next_retry_at");
    },
  },
  {
    name: "recover: a row that a user holds keeps no shard from being taken over",
    needs: ["rowLocks"],
    async run(context) {
      await context.acquire();
      const [held, free] = await context.putAll([CLAIMED, CLAIMED]);
      assert.ok(held && free);
      const taking = await endsUnderLock(context, held, () => context.acquire());
      assert.equal(taking.recovered, 1);
      assert.deepEqual([(await context.row(held)).state, (await context.row(free)).state], ["sending", "pending"]);
      // What was left is a stray row of the new owner (rule: watched-sending).
      const recovery = { fence: taking.fence, rows: [await context.token(held)] };
      assert.equal(await context.store.housekeeping.recover(recovery), 1);
    },
  },
  {
    name: "recover: a listed row that a user holds keeps no shard from being taken over (rule: listed-in-flight)",
    needs: ["rowLocks", "claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const shard = 0;
      const [held, free] = await context.putAll([{ shard }, { shard }]);
      assert.ok(held && free);
      await context.store.listInFlight({ fence, idsByShard: [{ shard, ids: [held.id, free.id] }] });
      const { recovered } = await endsUnderLock(context, held, () =>
        context.assertUnchanged([held], () => context.acquire()),
      );
      assert.equal(recovered, 1, "the other row is counted");
    },
  },
  {
    name: "recover: the sweep passes over a row that a user holds, and returns it later",
    needs: ["rowLocks"],
    async run(context) {
      const { fence } = await context.acquire();
      const [held, free] = await context.putAll([CLAIMED, CLAIMED]);
      assert.ok(held && free);
      const rows = await context.tokens([held, free]);
      const { housekeeping } = context.store;
      assert.equal(await endsUnderLock(context, held, () => housekeeping.recover({ fence, rows })), 1);
      assert.equal((await context.row(free)).state, "pending");
      assert.equal(await housekeeping.recover({ fence, rows: rows.slice(0, 1) }), 1);
    },
  },
];
