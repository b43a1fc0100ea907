/** The list of what waits for a confirmation: what is on it, its order, and the counts by type. */
import assert from "node:assert/strict";
import type { CheckedConfirmation } from "../../../../src/outbox/confirmations.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, StoreCaseContext } from "../context.ts";

const HOUR_MS = 3_600_000;
const TYPE = "contract.checked";
const BOTH = ["billing", "stock"] as const;

export const unconfirmedCases: readonly StoreContractCase[] = [
  {
    name: "unconfirmed: sent messages with a deadline and no others, the earliest first, as many as asked for",
    async run(context) {
      const [late, later, next] = await context.putAll([
        { state: "sent", nextRetryInMs: -HOUR_MS },
        { state: "sent", nextRetryInMs: -60_000 },
        { state: "sent", nextRetryInMs: HOUR_MS },
        { state: "sent" },
        { state: "consumed" },
        { state: "pending", nextRetryInMs: -2 * HOUR_MS },
        { state: "failed", nextRetryInMs: -2 * HOUR_MS },
      ]);
      const ids = [late?.id, later?.id, next?.id];
      const all = await context.admin.unconfirmed({ limit: 10 });
      assert.deepEqual([all.messages.map(({ id }) => id), all.more], [ids, false]);
      const two = await context.admin.unconfirmed({ limit: 2 });
      assert.deepEqual([two.messages.map(({ id }) => id), two.more], [ids.slice(0, 2), true]);
      assert.deepEqual(
        all.counts.map(({ atLeast, count, overdue, type }) => [type, overdue, count, atLeast]),
        [
          [TYPE, true, 2, false],
          [TYPE, false, 1, false],
        ],
      );
    },
  },
  {
    name: "unconfirmed: each message says which consumers have confirmed it, and its type who did so lately",
    async run(context) {
      const [row, other] = await context.putAll([
        { state: "sent", nextRetryInMs: HOUR_MS },
        { state: "sent", nextRetryInMs: 2 * HOUR_MS },
      ]);
      assert.ok(row !== undefined && other !== undefined);
      await confirm(context, row, "stock");
      const { consumers, messages } = await context.admin.unconfirmed({ limit: 10 });
      assert.deepEqual(
        messages.map(({ confirmedBy, id }) => [id, confirmedBy]),
        [
          [row.id, ["stock"]],
          [other.id, []],
        ],
      );
      assert.deepEqual(consumers, [{ type: TYPE, consumers: ["stock"] }]);
      await confirm(context, row, "billing");
      const after = await context.admin.unconfirmed({ limit: 10 });
      assert.deepEqual(
        after.messages.map(({ id }) => id),
        [other.id],
      );
    },
  },
];

async function confirm(context: StoreCaseContext, { key }: PutRow, consumer: string): Promise<void> {
  const confirmation: CheckedConfirmation = { type: TYPE, key, consumer, consumers: BOTH };
  const writer = context.database.confirmationWriter({ layout: context.layout });
  await context.database.transaction((tx) => writer.confirm(tx, [confirmation]));
}
