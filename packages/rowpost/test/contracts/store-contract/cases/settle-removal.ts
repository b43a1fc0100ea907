/** Sent messages that need not be kept: gone with their outcome, once the broker has them. */
import assert from "node:assert/strict";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, StoreCaseContext } from "../context.ts";
import { CLAIMED, failed, retried, sent } from "../outcome.ts";
import { endsUnderLock } from "../under-lock.ts";

const HOUR_MS = 3_600_000;

async function settle(
  context: StoreCaseContext,
  outcomes: readonly ReturnType<typeof sent>[],
  onSent: "archive" | "delete",
  fence: Awaited<ReturnType<typeof context.acquire>>["fence"],
): Promise<readonly unknown[]> {
  return await context.store.settle({ fence, outcomes, elapsedMs: 5_000, from: "sending", onSent });
}

async function assertGone(context: StoreCaseContext, rows: readonly PutRow[]): Promise<void> {
  for (const { id } of rows) assert.equal(await context.table.find(id), undefined, `message ${id} is gone`);
}

export const settleRemovalCases: readonly StoreContractCase[] = [
  {
    name: "settle: with onSent delete a sent row is gone, whatever becomes of the others",
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([CLAIMED, CLAIMED, CLAIMED, CLAIMED]);
      const [first, second, third, fourth] = await context.tokens(rows);
      assert.ok(first !== undefined && second !== undefined && third !== undefined && fourth !== undefined);
      const outcomes = [sent(first), failed(second), retried(third), sent(fourth)];
      assert.deepEqual(await settle(context, outcomes, "delete", fence), []);
      await assertGone(context, [rows[0], rows[3]] as PutRow[]);
      assert.equal((await context.row(rows[1] as PutRow)).state, "failed");
      assert.equal((await context.row(rows[2] as PutRow)).state, "pending");
    },
  },
  {
    name: "settle: with onSent archive a sent row stands in the archive with its receipt, and nowhere else",
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([CLAIMED, CLAIMED]);
      const outcomes = (await context.tokens(rows)).map((token) => sent(token));
      assert.deepEqual(await settle(context, outcomes, "archive", fence), []);
      await assertGone(context, rows);
      for (const { id } of rows) {
        const archived = await context.archive.row(id);
        assert.equal(archived.state, "sent");
        if (context.layout.columns.messageId !== undefined) assert.equal(archived.messageId, `receipt-${id}`);
        if (context.layout.columns.sentAt !== undefined) context.assertInMs(archived.sentInMs, 0, "sent_at");
      }
    },
  },
  ...(["delete", "archive"] as const).flatMap((onSent): StoreContractCase[] => [
    {
      name: `settle: with onSent ${onSent} a row that waits for its confirmation stays`,
      async run(context) {
        const { fence } = await context.acquire();
        const row = await context.put(CLAIMED);
        const outcomes = [sent(await context.token(row), { nextRetryInMs: HOUR_MS })];
        assert.deepEqual(await settle(context, outcomes, onSent, fence), []);
        const now = await context.row(row);
        assert.equal(now.state, "sent");
        context.assertInMs(now.nextRetryInMs, HOUR_MS, "confirmation deadline");
      },
    },
    {
      name: `settle: with onSent ${onSent}, once more, when the answer was lost: the rows that are gone count as settled`,
      async run(context) {
        const { fence } = await context.acquire();
        const rows = await context.putAll([CLAIMED, CLAIMED]);
        const outcomes = (await context.tokens(rows)).map((token) => sent(token));
        assert.deepEqual(await settle(context, outcomes, onSent, fence), []);
        assert.deepEqual(await settle(context, outcomes, onSent, fence), []);
      },
    },
    {
      name: `settle: with onSent ${onSent} a row of a later claim stays as it is`,
      needs: ["claimToken"],
      async run(context) {
        const { fence } = await context.acquire();
        const [mine, theirs] = await context.putAll([CLAIMED, CLAIMED]);
        assert.ok(mine !== undefined && theirs !== undefined);
        const outcomes = (await context.tokens([mine, theirs])).map((token) => sent(token));
        await context.table.edit(theirs.id, { lockVersion: 7, deliveryCount: 2 });
        const open = await context.assertUnchanged([theirs], () => settle(context, outcomes, onSent, fence));
        assert.deepEqual(
          open.map((row) => (row as { readonly id: string }).id),
          [theirs.id],
        );
        // The other one is settled: now, or with the move left to housekeeping.
        const now = await context.table.find(mine.id);
        assert.ok(now === undefined || now.state === "sent");
      },
    },
    {
      name: `settle: with onSent ${onSent} a row that somebody holds keeps no other one waiting`,
      needs: ["rowLocks"],
      async run(context) {
        const { fence } = await context.acquire();
        const store = await context.openStore({ lockWaitTimeoutMs: 200 });
        const [held, free] = await context.putAll([CLAIMED, CLAIMED]);
        assert.ok(held !== undefined && free !== undefined);
        const outcomes = (await context.tokens([held, free])).map((token) => sent(token));
        const request = { fence, outcomes, elapsedMs: 0, from: "sending", onSent } as const;
        const open = await endsUnderLock(context, held, () => store.settle(request));
        assert.deepEqual(
          open.map(({ id, isHeld }) => ({ id, isHeld })),
          [{ id: held.id, isHeld: true }],
        );
        await assertGone(context, [free]);
        assert.deepEqual(await store.settle(request), []);
        await assertGone(context, [held]);
      },
    },
  ]),
];
