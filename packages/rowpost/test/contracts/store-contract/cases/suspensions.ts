/**
 * Rules that suspend more than one message: relays see them, and who lifts one resumes what it
 * suspended.
 */
import assert from "node:assert/strict";
import { ruleReason } from "../../../../src/message/suspension-reason.ts";
import type { SuspensionRule } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, StoreCaseContext } from "../context.ts";
import { freshOwner } from "../context.ts";

const HOUR_MS = 3_600_000;
const ACTION = { author: "ann", reason: "over" };
const TOPIC: SuspensionRule = { scope: "topic", value: "orders", reason: "maintenance", author: "ops", endsInMs: null };

/** The rules as the second instance's relay gets them. */
async function seen(context: StoreCaseContext): Promise<readonly SuspensionRule[]> {
  const owner = freshOwner();
  const beat = { owner, label: "host:1", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] };
  return (await context.other.store.leases.heartbeat(beat)).suspensions;
}

/** Rows that this rule has suspended. */
function suspendedBy(context: StoreCaseContext, rule: SuspensionRule, count: number): Promise<PutRow[]> {
  const failReason = `${ruleReason(rule)}${rule.reason}`;
  return context.putAll(Array.from({ length: count }, () => ({ state: "suspended", failReason }) as const));
}

export const suspensionCases: readonly StoreContractCase[] = [
  {
    name: "suspensions: a rule is seen by other instances, and replaced by a later one on the same thing",
    async run(context) {
      const rules: SuspensionRule[] = [
        TOPIC,
        { ...TOPIC, scope: "type", value: "order.created", reason: "O'Brien \\ 消息 🚀" },
        { ...TOPIC, scope: "ordering_key", value: "customer '7' \\" },
        { ...TOPIC, scope: "relay", value: "*" },
      ];
      for (const rule of rules) await context.admin.suspendScope(rule);
      await context.admin.suspendScope({ ...TOPIC, reason: "longer", author: "bob", endsInMs: HOUR_MS });
      const found = await seen(context);
      const replaced = found.find(({ scope }) => scope === "topic");
      assert.deepEqual([replaced?.value, replaced?.reason, replaced?.author], ["orders", "longer", "bob"]);
      context.assertInMs(replaced?.endsInMs ?? null, HOUR_MS, "end of the rule");
      const others = found.filter(({ scope }) => scope !== "topic");
      const byScope = (one: SuspensionRule, two: SuspensionRule): number => one.scope.localeCompare(two.scope);
      assert.deepEqual([...others].sort(byScope), rules.slice(1).sort(byScope));
    },
  },
  {
    name: "suspensions: a rule whose time is over is not seen",
    async run(context) {
      const { dialect, own } = context;
      await context.admin.suspendScope({ ...TOPIC, endsInMs: HOUR_MS });
      await context.sql(`UPDATE ${own.suspension} SET ends_at = ${dialect.ownAt(-1_000)} WHERE ${own.ours}`);
      assert.deepEqual(await seen(context), []);
    },
  },
  {
    name: "suspensions: values that differ in any byte are different rules",
    async run(context) {
      const values = ["orders", "Orders", "órders", "orders "];
      for (const value of values) await context.admin.suspendScope({ ...TOPIC, value, reason: `of ${value}` });
      assert.deepEqual(
        new Set((await seen(context)).map(({ value, reason }) => `${value}|${reason}`)),
        new Set(values.map((value) => `${value}|of ${value}`)),
      );
    },
  },
  {
    name: "suspensions: lifting a rule resumes the rows that it suspended, and no others",
    async run(context) {
      const other: SuspensionRule = { ...TOPIC, value: "payments" };
      const byType: SuspensionRule = { ...TOPIC, scope: "type" };
      for (const rule of [TOPIC, other, byType]) await context.admin.suspendScope(rule);
      const mine = await suspendedBy(context, TOPIC, 3);
      const foreign = [
        ...(await suspendedBy(context, other, 1)),
        ...(await suspendedBy(context, byType, 1)),
        await context.put({ state: "suspended", failReason: "by hand" }),
        await context.put({ state: "suspended" }),
        await context.put({ state: "failed", failReason: `${ruleReason(TOPIC)}and failed` }),
      ];
      const request = { scope: TOPIC.scope, value: TOPIC.value, action: ACTION };
      assert.equal(await context.assertUnchanged(foreign, () => context.admin.resumeScope(request)), 3);
      for (const row of mine) {
        const { nextRetryInMs, state } = await context.row(row);
        assert.deepEqual([state, nextRetryInMs], ["pending", null]);
      }
      const left = (await seen(context)).map(({ scope, value }) => `${scope} ${value}`).sort();
      assert.deepEqual(left, ["topic payments", "type orders"]);
    },
  },
  {
    name: "suspensions: lifting a rule resumes nothing of a rule on a value that only looks alike",
    async run(context) {
      const alike = ["Orders", "order_", "%", "orders2", "orders: all", "órders"].map(
        (value): SuspensionRule => ({ ...TOPIC, value }),
      );
      const foreign: PutRow[] = [];
      for (const rule of [TOPIC, ...alike]) await context.admin.suspendScope(rule);
      for (const rule of alike) foreign.push(...(await suspendedBy(context, rule, 1)));
      await suspendedBy(context, TOPIC, 1);
      const request = { scope: TOPIC.scope, value: TOPIC.value, action: ACTION };
      assert.equal(await context.assertUnchanged(foreign, () => context.admin.resumeScope(request)), 1);
    },
  },
  {
    name: "suspensions: lifting a rule resumes no message before its own time (rule: delay-is-not-retry)",
    needs: ["deliverAt"],
    async run(context) {
      await context.admin.suspendScope(TOPIC);
      const failReason = `${ruleReason(TOPIC)}maintenance`;
      const row = await context.put({ state: "suspended", failReason, deliverInMs: HOUR_MS });
      await context.admin.resumeScope({ scope: TOPIC.scope, value: TOPIC.value, action: ACTION });
      context.assertInMs((await context.row(row)).nextRetryInMs, HOUR_MS, "next_retry_at");
    },
  },
  {
    name: "suspensions: a relay suspends nothing under a rule that does not stand any more",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put();
      const rows = [await context.token(row)];
      const request = { rule: TOPIC, fence, rows, failReason: ruleReason(TOPIC), endsInMs: null };
      const { housekeeping } = context.store;
      const early = await context.assertUnchanged([row], () => housekeeping.suspendPending(request));
      await context.admin.suspendScope(TOPIC);
      await context.admin.resumeScope({ scope: TOPIC.scope, value: TOPIC.value, action: ACTION });
      const late = await context.assertUnchanged([row], () => housekeeping.suspendPending(request));
      assert.deepEqual([early, late], [0, 0]);
    },
  },
  {
    name: "suspensions: a rule that is lifted while a relay waits to suspend a row leaves nothing suspended",
    needs: ["rowLocks"],
    async run(context) {
      const { fence } = await context.acquire();
      await context.admin.suspendScope(TOPIC);
      const row = await context.put();
      const rows = [await context.token(row)];
      const request = { rule: TOPIC, fence, rows, failReason: ruleReason(TOPIC), endsInMs: null };
      const changed = await context.whileLocked([row], {
        start: () => context.store.housekeeping.suspendPending(request),
        async meanwhile() {
          await context.other.admin.resumeScope({ scope: TOPIC.scope, value: TOPIC.value, action: ACTION });
        },
      });
      assert.equal(changed, 0);
      assert.equal((await context.row(row)).state, "pending", "nobody would resume it");
    },
  },
];
