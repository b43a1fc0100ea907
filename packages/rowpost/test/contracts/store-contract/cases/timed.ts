/**
 * Rows whose time has come in a state other than pending: slow retries, confirmation deadlines,
 * ends of suspensions.
 */
import assert from "node:assert/strict";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { TimedDecision } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues, StoreCaseContext } from "../context.ts";
import { endsUnderLock } from "../under-lock.ts";

const HOUR_MS = 3_600_000;
const DUE: PutValues = { nextRetryInMs: -5_000, retryCount: 3, deliveryCount: 4, lockVersion: 6 };

/** Decides about rows as they are now. */
async function apply(
  context: StoreCaseContext,
  rows: readonly PutRow[],
  decision: Partial<TimedDecision> & Pick<TimedDecision, "transition">,
): Promise<number> {
  const tokens = await context.tokens(rows);
  const decisions = tokens.map((token) => ({ ...token, failReason: null, nextRetryInMs: null, ...decision }));
  return await context.store.housekeeping.applyTimed({ decisions });
}

/** From-state of each decision, and a decision as housekeeping makes it. */
const DECISIONS = {
  slowRetry: { from: ["failed"], failReason: null, nextRetryInMs: null },
  resume: { from: ["suspended"], failReason: null, nextRetryInMs: null },
  confirmTimeoutResend: { from: ["sent"], failReason: "not confirmed", nextRetryInMs: null },
  confirmTimeoutFail: { from: ["sent"], failReason: "not confirmed", nextRetryInMs: HOUR_MS },
  clearTimer: { from: ["sent", "failed"], failReason: null, nextRetryInMs: null },
} as const;

const TRANSITIONS = Object.keys(DECISIONS) as (keyof typeof DECISIONS)[];

export const timedCases: readonly StoreContractCase[] = [
  {
    name: "listTimed: names sent, failed and suspended rows whose time has come, with what a decision needs",
    async run(context) {
      const rows = await context.putAll(
        MESSAGE_STATES.map((state) => ({ ...DUE, state, topic: `of-${state}`, createdInMs: -90_000 })),
      );
      const found = await context.store.housekeeping.listTimed({ limit: 100 });
      const expected = (["failed", "sent", "suspended"] as const).map((state) => ({
        state,
        row: rows[MESSAGE_STATES.indexOf(state)],
      }));
      assert.deepEqual(
        found.map(({ state }) => state).sort(),
        expected.map(({ state }) => state),
      );
      for (const { row, state } of expected) {
        assert.ok(row);
        const { ageMs, ...rest } = found.find((each) => each.id === row.id) ?? assert.fail(`${state} is not listed`);
        const about = {
          state,
          type: "contract.checked",
          key: row.key,
          topic: `of-${state}`,
          retryCount: 3,
          failReason: null,
        };
        assert.deepEqual(rest, { ...(await context.token(row)), ...about });
        assert.ok(ageMs >= 85_000 && ageMs < 120_000, `${ageMs} ms old`);
      }
    },
  },
  {
    name: "listTimed: leaves rows alone whose time is yet to come, and rows without a time",
    async run(context) {
      const states = ["sent", "failed", "suspended"] as const;
      await context.putAll(states.flatMap((state) => [{ state }, { state, nextRetryInMs: 60_000 }]));
      assert.deepEqual(await context.store.housekeeping.listTimed({ limit: 100 }), []);
    },
  },
  {
    name: "listTimed: no state starves another under its limit, and the earliest come first",
    async run(context) {
      const states = ["sent", "failed", "suspended"] as const;
      const rows = await context.putAll(
        states.flatMap((state) => [-10_000, -90_000, -50_000].map((nextRetryInMs) => ({ state, nextRetryInMs }))),
      );
      const found = await context.store.housekeeping.listTimed({ limit: 1 });
      const earliest = rows.filter((_row, index) => index % 3 === 1).map(({ id }) => id);
      assert.ok(found.length > 0 && found.every(({ id }) => earliest.includes(id)), JSON.stringify(found));
      assert.equal((await context.store.housekeeping.listTimed({ limit: 100 })).length, 9);
    },
  },
  {
    name: "applyTimed: the slow retry brings a failed row back and leaves its counts and its reason",
    async run(context) {
      const row = await context.put({ ...DUE, state: "failed", failReason: "earlier" });
      const columns = ["state", "nextRetryAt", "lockVersion"] as const;
      assert.equal(
        await context.assertChanges(row, columns, () => apply(context, [row], { transition: "slowRetry" })),
        1,
      );
      const { nextRetryInMs, state } = await context.row(row);
      assert.deepEqual([state, nextRetryInMs], ["pending", null]);
    },
  },
  {
    name: "applyTimed: a suspension that ends brings the row back, never before its own time (rule: delay-is-not-retry)",
    async run(context) {
      const row = await context.put({ ...DUE, state: "suspended" });
      const columns = ["state", "nextRetryAt", "lockVersion"] as const;
      assert.equal(await context.assertChanges(row, columns, () => apply(context, [row], { transition: "resume" })), 1);
      const { nextRetryInMs, state } = await context.row(row);
      assert.deepEqual([state, nextRetryInMs], ["pending", null]);
    },
  },
  {
    name: "applyTimed: neither the slow retry nor the end of a suspension comes before the message's own time (rule: delay-is-not-retry)",
    needs: ["deliverAt"],
    async run(context) {
      for (const [transition, state] of [
        ["slowRetry", "failed"],
        ["resume", "suspended"],
      ] as const) {
        const row = await context.put({ ...DUE, state, deliverInMs: HOUR_MS });
        await apply(context, [row], { transition });
        context.assertInMs((await context.row(row)).nextRetryInMs, HOUR_MS, transition);
      }
    },
  },
  {
    name: "applyTimed: a confirmation that did not come sends again, and counts",
    async run(context) {
      const row = await context.put({ ...DUE, state: "sent", messageId: "0A1B", sentInMs: -60_000 });
      const columns = ["state", "retryCount", "failReason", "nextRetryAt", "lockVersion"] as const;
      const decision = { transition: "confirmTimeoutResend", failReason: "no confirmation" } as const;
      assert.equal(await context.assertChanges(row, columns, () => apply(context, [row], decision)), 1);
      const { failReason, nextRetryInMs, retryCount, state } = await context.row(row);
      assert.deepEqual([state, retryCount, failReason, nextRetryInMs], ["pending", 4, "no confirmation", null]);
    },
  },
  {
    name: "applyTimed: a confirmation that did not come fails, counts, and has the time of the slow retry (rule: crash-counting)",
    async run(context) {
      const row = await context.put({ ...DUE, state: "sent", messageId: "0A1B" });
      const columns = ["state", "retryCount", "failReason", "nextRetryAt", "lockVersion"] as const;
      const decision = {
        transition: "confirmTimeoutFail",
        failReason: "no confirmation",
        nextRetryInMs: HOUR_MS,
      } as const;
      assert.equal(await context.assertChanges(row, columns, () => apply(context, [row], decision)), 1);
      const { failReason, nextRetryInMs, retryCount, state } = await context.row(row);
      assert.deepEqual([state, retryCount, failReason], ["failed", 4, "no confirmation"]);
      context.assertInMs(nextRetryInMs, HOUR_MS, "slow retry");
    },
  },
  {
    name: "applyTimed: a timer that is cleared never comes again, and a sent row still waits for its confirmation",
    async run(context) {
      const [sent, failed] = await context.putAll([
        { ...DUE, state: "sent" },
        { ...DUE, state: "failed" },
      ]);
      assert.ok(sent && failed);
      const columns = ["nextRetryAt", "lockVersion"] as const;
      await context.assertChanges(sent, columns, () => apply(context, [sent], { transition: "clearTimer" }));
      await context.assertChanges(failed, columns, () => apply(context, [failed], { transition: "clearTimer" }));
      assert.deepEqual(await context.store.housekeeping.listTimed({ limit: 10 }), []);
      assert.equal((await context.row(failed)).nextRetryInMs, null);
      assert.notEqual((await context.row(sent)).nextRetryInMs, null, "it must not look finished");
      const request = { mode: "delete", states: ["sent"], olderThanMs: 0, limit: 10 } as const;
      assert.equal(await context.store.housekeeping.removeFinished(request), 0);
    },
  },
  ...TRANSITIONS.map((transition): StoreContractCase => {
    const { from, ...decision } = DECISIONS[transition];
    return {
      name: `applyTimed: ${transition} leaves rows in other states alone`,
      async run(context) {
        const others = MESSAGE_STATES.filter((state) => !(from as readonly string[]).includes(state));
        // Whether a suspended row may lose its timer is left open: nothing does that.
        const states = transition === "clearTimer" ? others.filter((state) => state !== "suspended") : others;
        const rows = await context.putAll(states.map((state) => ({ ...DUE, state })));
        const changed = await context.assertUnchanged(rows, () => apply(context, rows, { transition, ...decision }));
        assert.equal(changed, 0);
      },
    };
  }),
  {
    name: "applyTimed: a row that changed since it was listed stays, whatever was decided",
    needs: ["claimToken"],
    async run(context) {
      for (const transition of TRANSITIONS) {
        const { from, ...decision } = DECISIONS[transition];
        const row = await context.put({ ...DUE, state: from[0] });
        const stale = await context.token(row);
        await context.table.edit(row.id, { lockVersion: 7, deliveryCount: 5 });
        const decisions = [{ ...stale, transition, ...decision }];
        const changed = await context.assertUnchanged([row], () =>
          context.store.housekeeping.applyTimed({ decisions }),
        );
        assert.equal(changed, 0, transition);
      }
    },
  },
  {
    name: "applyTimed: a row that a user holds keeps no other waiting, and is decided about later",
    needs: ["rowLocks"],
    async run(context) {
      for (const transition of TRANSITIONS) {
        const { from, ...decision } = DECISIONS[transition];
        const rows = await context.putAll(Array.from({ length: 5 }, () => ({ ...DUE, state: from[0] })));
        const [held] = rows;
        assert.ok(held);
        const changed = await endsUnderLock(context, held, () => apply(context, rows, { transition, ...decision }));
        assert.equal(changed, 4, transition);
        assert.equal((await context.row(held)).state, from[0], transition);
        assert.equal(await apply(context, [held], { transition, ...decision }), 1, transition);
      }
    },
  },
  {
    name: "applyTimed: different decisions in one call, each for its own row",
    async run(context) {
      const rows = await context.putAll([
        { ...DUE, state: "failed" },
        { ...DUE, state: "sent" },
        { ...DUE, state: "suspended" },
        { ...DUE, state: "sent" },
      ]);
      const transitions = ["slowRetry", "confirmTimeoutFail", "resume", "confirmTimeoutResend"] as const;
      const decisions = (await context.tokens(rows)).map((token, index): TimedDecision => {
        const transition = transitions[index] ?? "clearTimer";
        const { failReason, nextRetryInMs } = DECISIONS[transition];
        return { ...token, transition, nextRetryInMs, failReason: failReason && `${failReason} ${index}` };
      });
      assert.equal(await context.store.housekeeping.applyTimed({ decisions }), 4);
      const now = await Promise.all(rows.map((row) => context.row(row)));
      assert.deepEqual(
        now.map(({ state }) => state),
        ["pending", "failed", "pending", "pending"],
      );
      assert.deepEqual([now[1]?.failReason, now[3]?.failReason], ["not confirmed 1", "not confirmed 3"]);
    },
  },
];
