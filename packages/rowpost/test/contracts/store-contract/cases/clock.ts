/** For a database clock that was set back. */
import assert from "node:assert/strict";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutValues } from "../context.ts";

const HOUR_MS = 3_600_000;
const request = { beyondMs: 600_000, limit: 100, stepMs: 60_000 };

export const clockCases: readonly StoreContractCase[] = [
  {
    name: "clockMs: is the clock that the rows are compared with",
    async run(context) {
      const row = await context.put({ nextRetryInMs: 0 });
      const before = await context.store.housekeeping.clockMs();
      context.assertInMs((await context.row(row)).nextRetryInMs, 0, "next_retry_at");
      assert.ok(Number.isInteger(before) && before > Date.UTC(2020, 0, 1));
      assert.ok((await context.store.housekeeping.clockMs()) >= before);
    },
  },
  {
    name: "shortenWaits: what has failed and waits longer than any backoff comes in its order, one step apart",
    async run(context) {
      const waiting: PutValues = { nextRetryInMs: 3 * HOUR_MS, retryCount: 2, failReason: "earlier" };
      const rows = await context.putAll([waiting, { ...waiting, topic: "other" }, waiting]);
      const [first] = rows;
      assert.ok(first);
      const changed = await context.assertChanges(first, ["nextRetryAt", "lockVersion"], () =>
        context.store.housekeeping.shortenWaits(request),
      );
      assert.equal(changed, 3);
      for (const [index, row] of rows.entries()) {
        context.assertInMs((await context.row(row)).nextRetryInMs, index * request.stepMs, `row ${index}`);
      }
      assert.equal(await context.store.housekeeping.shortenWaits(request), 0);
    },
  },
  {
    name: "shortenWaits: shorter waits, what never failed, other states and rows without a time stay",
    async run(context) {
      const others = MESSAGE_STATES.filter((state) => state !== "pending");
      const rows = await context.putAll([
        { nextRetryInMs: 300_000, retryCount: 1 },
        { nextRetryInMs: -5_000, retryCount: 1 },
        { nextRetryInMs: 3 * HOUR_MS },
        { retryCount: 1 },
        ...others.map((state) => ({ state, nextRetryInMs: 3 * HOUR_MS, retryCount: 1 })),
      ]);
      await context.assertUnchanged(rows, () => context.store.housekeeping.shortenWaits(request));
    },
  },
  {
    name: "shortenWaits: never before the delivery that was asked for (rule: delay-is-not-retry)",
    async run(context) {
      if (context.layout.columns.deliverAt === undefined) return;
      const near = { deliverInMs: 2 * HOUR_MS, retryCount: 1 };
      const late = await context.put({ ...near, nextRetryInMs: 5 * HOUR_MS });
      const timely = await context.put({ ...near, nextRetryInMs: 2 * HOUR_MS });
      await context.assertUnchanged([timely], () => context.store.housekeeping.shortenWaits(request));
      context.assertInMs((await context.row(late)).nextRetryInMs, 2 * HOUR_MS, "next_retry_at");
    },
  },
];
