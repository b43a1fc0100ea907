/**
 * A settle belongs to one claim (rule: claim-token): what it does not change, and how rows that did
 * not match are reported.
 */
import assert from "node:assert/strict";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow } from "../context.ts";
import { CLAIMED, failed, retried, returned, sent } from "../outcome.ts";

const HOUR_MS = 3_600_000;

export const settleClaimCases: readonly StoreContractCase[] = [
  ...wrongStateCases(),
  {
    name: "settle: an outcome of an earlier claim changes nothing and is reported (rule: claim-token)",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put(CLAIMED);
      const stale = await context.token(row);
      const again = { fence, elapsedMs: 0, from: "sending" } as const;
      await context.store.settle({ ...again, outcomes: [retried(stale, { nextRetryInMs: 0 })] });
      await context.table.edit(row.id, { nextRetryInMs: null });
      assert.equal(await context.store.claim({ fence, rows: [await context.token(row)] }), 1);
      // The client had no answer, so it sends the first settle once more: now it meets the second
      // attempt.
      for (const outcome of [retried(stale), failed(stale), sent(stale), returned(stale)]) {
        const open = await context.assertUnchanged([row], () =>
          context.store.settle({ ...again, outcomes: [outcome] }),
        );
        assert.deepEqual(
          open.map(({ id, state }) => [id, state]),
          [[row.id, "sending"]],
          outcome.toState,
        );
      }
    },
  },
  {
    name: "settle: the same outcome twice counts once, and the second time is no conflict",
    async run(context) {
      const { fence } = await context.acquire();
      for (const kind of [sent, retried, returned, failed]) {
        const row = await context.put(CLAIMED);
        const outcomes = [kind(await context.token(row))];
        const request = { fence, outcomes, elapsedMs: 0, from: "sending" } as const;
        assert.deepEqual(await context.store.settle(request), [], kind.name);
        const open = await context.assertUnchanged([row], () => context.store.settle(request));
        assert.deepEqual(open, [], `${kind.name}, the second time`);
      }
    },
  },
  {
    name: "settle: a message that a confirmation has overtaken only learns its receipt",
    needs: ["deliveryCount", "messageId"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({
        state: "consumed",
        deliveryCount: 1,
        lockVersion: 2,
        consumedInMs: -1_000,
        failReason: "earlier",
        lastRetryInMs: -9_000,
      });
      // As claimed: the confirmation has moved lock_version since.
      const token = { ...(await context.token(row)), lockVersion: "1" };
      const outcomes = [sent(token, { messageId: "0A1B", nextRetryInMs: HOUR_MS })];
      const open = await context.assertChanges(row, ["messageId", "sentAt", "lockVersion"], () =>
        context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }),
      );
      assert.deepEqual(open, []);
      const now = await context.row(row);
      assert.deepEqual([now.state, now.messageId], ["consumed", "0A1B"]);
    },
  },
  {
    name: "settle: an outcome of another claim than the confirmed one, or a failure, does not touch a consumed row",
    needs: ["deliveryCount"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ state: "consumed", deliveryCount: 2, lockVersion: 5 });
      const current = { ...(await context.token(row)), lockVersion: "4" };
      const outcomes = [sent({ ...current, deliveryCount: 1 }), retried(current), returned(current), failed(current)];
      for (const outcome of outcomes) {
        const request = { fence, outcomes: [outcome], elapsedMs: 0, from: "sending" } as const;
        const open = await context.assertUnchanged([row], () => context.store.settle(request));
        assert.deepEqual(
          open.map(({ state }) => state),
          ["consumed"],
          `${outcome.toState} of ${outcome.deliveryCount}`,
        );
      }
    },
  },
  {
    name: "settle: of a mixed batch exactly the rows that did not match are reported, as they are now",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([CLAIMED, CLAIMED, CLAIMED, CLAIMED]);
      const tokens = await context.tokens(rows);
      const [good, suspended, goodToo, claimedAgain] = rows;
      assert.ok(good && suspended && goodToo && claimedAgain);
      await context.table.edit(suspended.id, { state: "suspended", lockVersion: 2 });
      await context.table.edit(claimedAgain.id, { lockVersion: 3, deliveryCount: 2 });
      const outcomes = tokens.map((token, index) => (index < 2 ? sent(token) : retried(token)));
      const open = await context.assertUnchanged([suspended, claimedAgain], () =>
        context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }),
      );
      const reported = new Map(open.map((row) => [row.id, row]));
      assert.deepEqual([...reported.keys()].sort(), [suspended.id, claimedAgain.id].sort());
      assert.equal(reported.get(suspended.id)?.state, "suspended");
      assert.equal(reported.get(claimedAgain.id)?.state, "sending");
      assert.equal((await context.row(good)).state, "sent");
      assert.equal((await context.row(goodToo)).state, "pending");
    },
  },
  {
    name: "settle: looks at the row again after it has waited for somebody's lock",
    needs: ["rowLocks"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put(CLAIMED);
      const token = await context.token(row);
      for (const outcome of [sent(token), failed(token)]) {
        await context.table.edit(row.id, { state: "sending", lockVersion: Number(token.lockVersion) });
        const open = await context.whileLocked([row], {
          start: () => context.store.settle({ fence, outcomes: [outcome], elapsedMs: 0, from: "sending" }),
          meanwhile: (edit) => edit(row, { state: "suspended", lockVersion: Number(token.lockVersion) + 5 }),
        });
        assert.deepEqual(
          open.map(({ state }) => state),
          ["suspended"],
        );
        assert.equal((await context.row(row)).state, "suspended", outcome.toState);
      }
    },
  },
  {
    name: "settle: a row that is gone is reported",
    async run(context) {
      const { fence } = await context.acquire();
      const gone = { id: "999999999", shard: 0, deliveryCount: 1, lockVersion: "1", identityHash: "0" };
      for (const outcome of [sent(gone), retried(gone)]) {
        const open = await context.store.settle({ fence, outcomes: [outcome], elapsedMs: 0, from: "sending" });
        assert.deepEqual(
          open.map(({ id, state }) => [id, state]),
          [[gone.id, "unknown"]],
        );
      }
    },
  },
];

/** Each kind of outcome on rows in each state that it is not for. */
function wrongStateCases(): StoreContractCase[] {
  return [sent, retried, returned, failed].map((kind) => ({
    name: `settle: ${kind.name} changes no row that is not being sent, and reports each with its real state`,
    async run(context) {
      const { fence } = await context.acquire();
      // A consumed row takes the receipt of its claim; that has cases of its own.
      const { toState } = kind({ id: "0", shard: 0, deliveryCount: 0, lockVersion: "0", identityHash: "0" });
      const states = MESSAGE_STATES.filter((state) => state !== "sending" && state !== "consumed");
      const rows: PutRow[] = await context.putAll(states.map((state) => ({ ...CLAIMED, state })));
      const outcomes = (await context.tokens(rows)).map((token) => kind(token));
      const open = await context.assertUnchanged(rows, () =>
        context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }),
      );
      const wrong = states.filter((state) => state !== toState || context.layout.columns.lockVersion !== undefined);
      assert.deepEqual(open.map(({ state }) => state).sort(), [...wrong].sort());
    },
  }));
}
