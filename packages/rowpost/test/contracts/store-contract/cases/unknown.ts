/** What consumers say of messages that are not there: kept for a while, and never applied. */
import assert from "node:assert/strict";
import type { UnknownConfirmation } from "../../../../src/admin/reconcile/store.ts";
import type { CheckedConfirmation } from "../../../../src/outbox/confirmations.ts";
import type { StoreContractCase } from "../case.ts";
import type { StoreCaseContext } from "../context.ts";

const TYPE = "contract.checked";
const HOUR_MS = 3_600_000;
/** More are not kept. */
const MOST = 10_000;

const said = (key: string, more: Partial<CheckedConfirmation> = {}): CheckedConfirmation => ({
  type: TYPE,
  key,
  consumers: undefined,
  ...more,
});

function keep(context: StoreCaseContext, confirmations: readonly CheckedConfirmation[]): Promise<boolean> {
  const writer = context.database.confirmationWriter({ layout: context.layout });
  return context.database.transaction((tx) => writer.keepUnknown(tx, confirmations));
}

async function kept(context: StoreCaseContext, limit = 10): Promise<readonly UnknownConfirmation[]> {
  const store = context.database.reconcileStore({ layout: context.layout });
  try {
    return await store.view((view) => view.unknownConfirmations(limit));
  } finally {
    await store.close();
  }
}

export const unknownCases: readonly StoreContractCase[] = [
  {
    name: "unknown: a confirmation is kept once for each message and consumer, with what was said last",
    async run(context) {
      const [key, other] = ["no-such 消息", "NO-SUCH 消息"];
      const first = [said(key, { consumer: "billing" }), said(key), said(other)];
      assert.equal(await keep(context, first), true);
      const again = said(key, { consumer: "billing", error: "no\0 such \u{D800} customer".padEnd(2_000, "!") });
      assert.equal(await keep(context, [again, again]), true);
      const list = await kept(context);
      const about = list.map(({ consumer, error, isThere, key: of, times }) => [
        ...[of, consumer, error?.slice(0, 20), times],
        isThere,
      ]);
      assert.deepEqual(
        about.toSorted((left, right) => (String(left) < String(right) ? -1 : 1)),
        [
          [other, undefined, undefined, 1, false],
          [key, undefined, undefined, 1, false],
          [key, "billing", "no such \u{FFFD} customer!!", 3, false],
        ],
      );
      const last = list.map(({ lastAt }) => lastAt);
      assert.deepEqual(last, last.toSorted().toReversed(), "the last one first");
      for (const { firstAt, lastAt } of list) {
        assert.ok(Date.parse(firstAt) <= Date.parse(lastAt), "first before last");
        context.assertInMs(Date.parse(lastAt) - Date.now(), 0, "last_at");
      }
    },
  },
  {
    name: "unknown: a message that comes later is not ended by what was said before",
    async run(context) {
      await keep(context, [said("later"), said("never")]);
      const row = await context.put({ type: TYPE, key: "later", state: "pending" });
      const list = await context.assertUnchanged([row], () => kept(context));
      assert.deepEqual(
        list.map(({ isThere, key }) => [key, isThere]),
        [
          ["later", true],
          ["never", false],
        ],
      );
    },
  },
  {
    name: "unknown: as many are kept as somebody can read, and they are forgotten in time",
    async run(context) {
      const all = Array.from({ length: MOST }, (_, index) => said(`k${index}`));
      assert.equal(await keep(context, all), true);
      assert.equal(await keep(context, [said("one more"), said("k1")]), false);
      assert.equal((await kept(context, MOST + 1)).length, MOST);
      assert.equal((await kept(context, 3)).length, 3);
      const { housekeeping } = context.store;
      assert.equal(await housekeeping.forgetUnknown({ olderThanMs: HOUR_MS, limit: MOST }), 0);
      assert.equal(await housekeeping.forgetUnknown({ olderThanMs: 0, limit: 1 }), 1);
      assert.equal(await keep(context, [said("one more")]), true);
      assert.equal(await housekeeping.forgetUnknown({ olderThanMs: 0, limit: 2 * MOST }), MOST);
      assert.deepEqual(await kept(context), []);
    },
  },
];
