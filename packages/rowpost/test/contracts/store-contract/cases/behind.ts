/** Followers of a blocked or busy ordering key: out of the scan, and back. */
import assert from "node:assert/strict";
import type { RowToken } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import type { Ownership, PutRow, PutValues, StoreCaseContext } from "../context.ts";
import { CLAIMED, sent } from "../outcome.ts";
import { endsUnderLock } from "../under-lock.ts";

const HOUR_MS = 3_600_000;
const KEYED = ["orderingKey"] as const;

/** A head and its followers, all of one key, and all shards. */
interface Queue extends Pick<Ownership, "fence"> {
  readonly head: PutRow;
  readonly followers: readonly PutRow[];
  readonly first: PutRow;
}

async function queue(
  context: StoreCaseContext,
  head: PutValues = CLAIMED,
  followers: readonly PutValues[] = [{}, {}],
  held?: Pick<Ownership, "fence">,
): Promise<Queue> {
  const { fence } = held ?? (await context.acquire());
  const orderingKey = context.freshKey();
  const rows = await context.putAll([head, ...followers].map((values) => ({ orderingKey, ...values })));
  const [front, ...behind] = rows;
  const [first] = behind;
  assert.ok(front && first);
  return { fence, head: front, followers: behind, first };
}

async function setBehind(
  { store, ...context }: StoreCaseContext,
  { fence }: Pick<Queue, "fence">,
  rows: readonly PutRow[],
  headId: string,
): Promise<number> {
  const tokens = await context.tokens(rows);
  return await store.housekeeping.setBehind({ fence, rows: tokens.map((token) => ({ ...token, headId })) });
}

async function behindOf(context: StoreCaseContext, rows: readonly PutRow[]): Promise<(string | undefined)[]> {
  return await Promise.all(rows.map(async ({ id }) => (await context.admin.show({ id }))?.behindId));
}

export const behindCases: readonly StoreContractCase[] = [
  {
    name: "setBehind: a follower stays pending, is in no scan, tells whom it waits for, and comes back",
    needs: KEYED,
    async run(context) {
      const made = await queue(context, CLAIMED, [{ retryCount: 2, failReason: "earlier" }, { nextRetryInMs: -5_000 }]);
      const { head, followers, first } = made;
      const { housekeeping } = context.store;
      const columns = ["nextRetryAt", "lockVersion"] as const;
      const changed = await context.assertChanges(first, columns, () => setBehind(context, made, followers, head.id));
      assert.equal(changed, 2);
      assert.deepEqual(await behindOf(context, [head, ...followers]), [undefined, head.id, head.id]);
      assert.deepEqual(await context.scan(), []);
      const back = await context.assertChanges(first, columns, () =>
        housekeeping.bringBack({ headIds: [head.id], limit: 10 }),
      );
      assert.equal(back, 2);
      assert.deepEqual(await behindOf(context, followers), [undefined, undefined]);
      assert.deepEqual(
        (await context.scan()).map(({ id, due }) => [id, due]),
        followers.map(({ id }) => [id, false]),
      );
      assert.equal(await housekeeping.bringBack({ headIds: [head.id], limit: 10 }), 0);
    },
  },
  {
    name: "setBehind: only behind an unfinished message of the same key that stands in front",
    needs: KEYED,
    async run(context) {
      const held = await context.acquire();
      for (const state of ["pending", "suspended", "failed", "sent", "consumed"] as const) {
        const made = await queue(context, { state }, undefined, held);
        const expected = state === "sent" || state === "consumed" ? 0 : 2;
        assert.equal(await setBehind(context, made, made.followers, made.head.id), expected, `behind a ${state} one`);
      }
      const one = await queue(context, CLAIMED, undefined, held);
      const other = await queue(context, CLAIMED, undefined, held);
      const last = one.followers[1];
      assert.ok(last);
      await context.assertUnchanged([...one.followers, ...other.followers], async () => {
        assert.equal(await setBehind(context, other, other.followers, one.head.id), 0, "behind another key's");
        assert.equal(await setBehind(context, one, [one.first], last.id), 0, "behind a later one");
        assert.equal(await setBehind(context, one, [one.first], one.first.id), 0, "behind itself");
        assert.equal(await setBehind(context, one, one.followers, "999999999"), 0, "behind nobody");
        assert.equal(
          await setBehind(context, one, one.followers, "200000000000001"),
          0,
          "behind an id that is too large",
        );
      });
    },
  },
  {
    name: "setBehind: rows that are not pending, not due, or changed since they were scanned stay",
    needs: KEYED,
    async run(context) {
      const made = await queue(context, CLAIMED, [
        { state: "suspended" },
        { nextRetryInMs: HOUR_MS, retryCount: 1 },
        {},
      ]);
      const [, , edited] = made.followers;
      assert.ok(edited);
      const tokens: RowToken[] = await context.tokens(made.followers);
      await context.table.edit(edited.id, { lockVersion: 7 });
      const rows = tokens.map((token) => ({ ...token, headId: made.head.id }));
      const changed = await context.assertUnchanged(made.followers, () =>
        context.store.housekeeping.setBehind({ fence: made.fence, rows }),
      );
      assert.equal(changed, 0);
      assert.equal(await context.store.housekeeping.setBehind({ fence: made.fence, rows: [] }), 0);
    },
  },
  {
    name: "setBehind: who lost the shard sets nothing behind (rule: takeover-fence)",
    needs: KEYED,
    async run(context) {
      const made = await queue(context);
      await context.acquire();
      const changed = await context.assertUnchanged(made.followers, () =>
        setBehind(context, made, made.followers, made.head.id),
      );
      assert.equal(changed, 0);
    },
  },
  {
    name: "setBehind: passes over a head that is being settled, and over followers that somebody holds",
    needs: ["rowLocks", ...KEYED],
    async run(context) {
      const made = await queue(context);
      const { head, first, followers } = made;
      const behindHeld = await endsUnderLock(context, head, () => setBehind(context, made, followers, head.id));
      assert.equal(behindHeld, 0);
      const free = await endsUnderLock(context, first, () => setBehind(context, made, followers, head.id));
      assert.equal(free, 1);
      assert.deepEqual(await behindOf(context, followers), [undefined, head.id]);
    },
  },
  {
    name: "setBehind: a follower is not stranded by a head that settles at the same time",
    needs: ["rowLocks", ...KEYED],
    async run(context) {
      const made = await queue(context);
      const { head, followers } = made;
      const token = await context.token(head);
      // The settle is in another transaction, and not committed when the followers are to be set
      // behind.
      let changed: number | undefined;
      await context.whileLocked([head], {
        waiters: 0,
        async start() {
          return await Promise.resolve();
        },
        async meanwhile(edit) {
          await edit(head, { state: "sent" });
          changed = await setBehind(context, made, followers, head.id);
        },
      });
      assert.equal(changed, 0);
      assert.deepEqual(await behindOf(context, followers), [undefined, undefined]);
      // The other order: set behind first, then settled; its relay brings them back.
      await context.table.edit(head.id, { state: "sending" });
      assert.equal(await setBehind(context, made, followers, head.id), 2);
      const { fence } = made;
      const left = await context.store.settle({ fence, outcomes: [sent(token)], elapsedMs: 0, from: "sending" });
      assert.deepEqual(left, []);
      assert.equal(await context.store.housekeeping.bringBack({ headIds: [head.id], limit: 10 }), 2);
    },
  },
  {
    name: "bringBack: keeps to its limit, lowest heads and ids first, and leaves the followers of others",
    needs: KEYED,
    async run(context) {
      const held = await context.acquire();
      const queues: Queue[] = [];
      for (const head of [CLAIMED, CLAIMED, CLAIMED]) queues.push(await queue(context, head, undefined, held));
      for (const made of queues) await setBehind(context, made, made.followers, made.head.id);
      const all = queues.flatMap(({ followers }) => followers);
      const [one, two, three] = queues.map(({ head }) => head.id);
      assert.ok(one && two && three);
      const bringBack = (limit: number): Promise<number> =>
        context.store.housekeeping.bringBack({ headIds: [three, one], limit });
      assert.equal(await bringBack(3), 3);
      assert.deepEqual(await behindOf(context, all), [undefined, undefined, two, two, undefined, three]);
      assert.equal(await bringBack(3), 1);
      assert.deepEqual(await behindOf(context, all), [undefined, undefined, two, two, undefined, undefined]);
      assert.equal(await context.store.housekeeping.bringBack({ headIds: [], limit: 3 }), 0);
    },
  },
  {
    name: "bringBack: a message whose own time is ahead waits for it (rule: delay-is-not-retry)",
    needs: ["deliverAt", ...KEYED],
    async run(context) {
      const made = await queue(context, CLAIMED, [{ deliverInMs: HOUR_MS }, { deliverInMs: -HOUR_MS }]);
      assert.equal(await setBehind(context, made, made.followers, made.head.id), 2);
      await context.store.housekeeping.bringBack({ headIds: [made.head.id], limit: 10 });
      const [ahead, past] = await Promise.all(made.followers.map((row) => context.row(row)));
      context.assertInMs(ahead?.nextRetryInMs ?? null, HOUR_MS, "next_retry_at");
      assert.equal(past?.nextRetryInMs, null);
    },
  },
  {
    name: "bringBack: passes over rows that somebody holds, and over rows that are not pending any more",
    needs: ["rowLocks", ...KEYED],
    async run(context) {
      const made = await queue(context, CLAIMED, [{}, {}, {}]);
      const [held, free, moved] = made.followers;
      assert.ok(held && free && moved);
      await setBehind(context, made, made.followers, made.head.id);
      await context.table.edit(moved.id, { state: "suspended" });
      const bringBack = () => context.store.housekeeping.bringBack({ headIds: [made.head.id], limit: 1 });
      assert.equal(await endsUnderLock(context, held, bringBack), 1);
      assert.deepEqual(await behindOf(context, [held, free]), [made.head.id, undefined]);
      assert.equal((await context.row(moved)).state, "suspended");
    },
  },
  {
    name: "headsOfBehind: names the messages that have followers behind them, page by page, and whether they stand there",
    needs: KEYED,
    async run(context) {
      const states = ["pending", "sending", "suspended", "failed"] as const;
      const held = await context.acquire();
      const queues: Queue[] = [];
      for (const state of [...states, ...states]) queues.push(await queue(context, { state }, undefined, held));
      for (const made of queues) await setBehind(context, made, made.followers, made.head.id);
      const ids = queues.map(({ head }) => head.id);
      for (const [index, state] of (["sent", "consumed"] as const).entries()) {
        await context.table.edit(ids[4 + index] ?? "", { state });
      }
      const gone = ids[6] ?? "";
      await context.sql(
        `DELETE FROM ${context.own.messages} WHERE ${context.dialect.name(context.layout.columns.id)} = ${gone}`,
      );
      const { housekeeping } = context.store;
      const list = async (failedBlocks: boolean, afterHeadId = "0", limit = 100): Promise<[string, boolean][]> =>
        (await housekeeping.headsOfBehind({ afterHeadId, limit, failedBlocks })).map(({ headId, stands }) => [
          headId,
          stands,
        ]);
      const standing = [true, true, true, true, false, false, false, true];
      assert.deepEqual(
        await list(true),
        ids.map((id, index) => [id, standing[index]]),
      );
      const unblocked = (index: number): boolean => standing[index] === true && index % 4 !== 3;
      assert.deepEqual(
        await list(false),
        ids.map((id, index) => [id, unblocked(index)]),
      );
      assert.deepEqual(
        await list(true, ids[1], 2),
        [ids[2], ids[3]].map((id) => [id, true]),
      );
      assert.deepEqual(await list(true, ids[7]), []);
    },
  },
  {
    name: "set behind: a person can suspend and resume such a message, and a topic that works again leaves it where it is",
    needs: KEYED,
    async run(context) {
      const made = await queue(context);
      const { followers, first, head } = made;
      await setBehind(context, made, followers, head.id);
      await context.assertUnchanged(followers, async () => {
        const reset = await context.store.housekeeping.resetBackoff({ topic: "orders", limit: 10, stepMs: 0 });
        assert.equal(reset, 0);
      });
      const change = { filter: { ids: [first.id] }, action: { author: "ops", reason: "a look" }, limit: 1 };
      assert.equal((await context.admin.suspend(change)).changed, 1);
      assert.deepEqual(await behindOf(context, followers), [undefined, head.id]);
      assert.equal((await context.admin.resume(change)).changed, 1);
      assert.deepEqual(
        (await context.scan()).map(({ id }) => id),
        [first.id],
      );
    },
  },
];
