/**
 * What consumers report: the message is consumed, waits for its other consumers, or has its
 * deadline now (rule: confirmation).
 */
import assert from "node:assert/strict";
import { allowedFrom } from "../../../../src/message/states.ts";
import type { CheckedConfirmation, ConfirmationResult } from "../../../../src/outbox/confirmations.ts";
import { TransactionRequiredError } from "../../../../src/runtime/errors.ts";
import type { StoreInstance } from "../bench.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, StoreCaseContext } from "../context.ts";
import { rolledBack } from "../user-transaction.ts";

const HOUR_MS = 3_600_000;
const TYPE = "contract.checked";
const BOTH = ["billing", "stock"] as const;

const of = ({ key }: Pick<PutRow, "key">, more: Partial<CheckedConfirmation> = {}): CheckedConfirmation => ({
  type: TYPE,
  key,
  consumers: undefined,
  ...more,
});

/** In a transaction of its own. */
function confirm(
  context: StoreCaseContext,
  confirmations: readonly CheckedConfirmation[],
  instance: Pick<StoreInstance, "database"> = context,
): Promise<ConfirmationResult[]> {
  const writer = instance.database.confirmationWriter({ layout: context.layout });
  return instance.database.transaction((tx) => writer.confirm(tx, confirmations));
}

const statuses = (results: readonly ConfirmationResult[]): string[] => results.map(({ status }) => status);

export const confirmCases: readonly StoreContractCase[] = [...consumedCases(), ...severalCases(), ...failureCases()];

function consumedCases(): readonly StoreContractCase[] {
  return [
    {
      name: "confirm: a message in any state becomes consumed, once, with the time",
      async run(context) {
        for (const state of [...allowedFrom("confirm"), ...allowedFrom("confirmOvertakes")]) {
          const row = await context.put({ state, nextRetryInMs: HOUR_MS, failReason: "earlier" });
          const written = ["state", "nextRetryAt", "consumedAt", "lockVersion"] as const;
          const results = await context.assertChanges(row, written, () => confirm(context, [of(row)]));
          assert.deepEqual(results, [{ status: "consumed" }], state);
          const now = await context.row(row);
          assert.deepEqual([now.state, now.nextRetryInMs, now.failReason], ["consumed", null, "earlier"]);
          if (context.layout.columns.consumedAt !== undefined) context.assertInMs(now.consumedInMs, 0, "consumed_at");
          const again = await context.assertUnchanged([row], () => confirm(context, [of(row), of(row)]));
          assert.deepEqual(statuses(again), ["consumed", "consumed"], "the second time");
        }
      },
    },
    {
      name: "confirm: each of a call has its own result, and no other message is touched",
      async run(context) {
        const [first, second, other] = await context.putAll([
          { state: "sent" },
          { state: "consumed" },
          { state: "sent" },
        ]);
        assert.ok(first !== undefined && second !== undefined && other !== undefined);
        const folded = of({ key: first.key.toUpperCase() });
        const given = [of(second), folded, of({ key: "nobody" }), of(first), of({ key: other.key }, { type: "other" })];
        const results = await context.assertUnchanged([second, other], () => confirm(context, given));
        assert.deepEqual(statuses(results), ["consumed", "unknown", "unknown", "consumed", "unknown"]);
        assert.equal((await context.row(first)).state, "consumed");
      },
    },
    {
      name: "confirm: 500 messages, of which some are consumed already",
      async run(context) {
        const rows = await context.putAll(
          Array.from({ length: 500 }, (_, index) => ({
            key: `many-${index}`,
            state: index % 9 === 0 ? "consumed" : "sent",
          })),
        );
        const results = await confirm(
          context,
          rows.map((row) => of(row)),
        );
        assert.deepEqual(new Set(statuses(results)), new Set(["consumed"]));
        const left = await Promise.all(rows.map(async (row) => (await context.row(row)).state));
        assert.deepEqual(new Set(left), new Set(["consumed"]));
      },
    },
    {
      name: "confirm: hostile keys are keys",
      async run(context) {
        const keys = [`k '"\\ {},NULL 🚀`, "x') OR ('1'='1", "消息"];
        const rows = await context.putAll([...keys.map((key) => ({ key, state: "sent" as const })), { state: "sent" }]);
        const results = await confirm(
          context,
          keys.map((key) => of({ key }, { consumer: `o'"\\`, consumers: [`o'"\\`] })),
        );
        assert.deepEqual(statuses(results), ["consumed", "consumed", "consumed"]);
        const states = await Promise.all(rows.map(async (row) => (await context.row(row)).state));
        assert.deepEqual(states, ["consumed", "consumed", "consumed", "sent"]);
      },
    },
    {
      name: "confirm: an archived message takes its confirmation in the archive",
      async run(context) {
        for (const consumers of [undefined, ["billing"]]) {
          const row = await context.put({ state: "sent", sentInMs: -HOUR_MS, modifiedInMs: -HOUR_MS });
          const archiving = { mode: "archive", states: ["sent"], olderThanMs: 0, limit: 10 } as const;
          assert.equal(await context.store.housekeeping.removeFinished(archiving), 1);
          const results = await confirm(context, [of(row, { consumers, consumer: "billing" })]);
          assert.deepEqual(statuses(results), ["consumed"]);
          assert.equal((await context.archive.row(row.id)).state, "consumed");
        }
      },
    },
    {
      name: "confirm: a rollback leaves nothing, and outside a transaction nothing is confirmed",
      needs: ["userHandle"],
      async run(context) {
        const row = await context.put({ state: "sent", nextRetryInMs: HOUR_MS });
        const writer = context.database.confirmationWriter({ layout: context.layout });
        const named = of(row, { consumer: "billing", consumers: BOTH });
        const user = await context.harness.createUserHandle?.();
        assert.ok(user !== undefined);
        await context.assertUnchanged([row], async () => {
          await rolledBack(context, (tx) => writer.confirm(tx, [of(row)]));
          await rolledBack(context, (tx) => writer.confirm(tx, [named]));
          for (const given of [of(row), named]) {
            await assert.rejects(
              async () => await writer.confirm(context.database.executor(user.handle), [given]),
              TransactionRequiredError,
            );
          }
        });
        await user.close();
        const second = of(row, { consumer: "stock", consumers: BOTH });
        assert.deepEqual(await confirm(context, [second]), [{ status: "waiting", waitingFor: ["billing"] }]);
      },
    },
  ];
}

function severalCases(): readonly StoreContractCase[] {
  const by = (row: PutRow, consumer: string): CheckedConfirmation => of(row, { consumer, consumers: BOTH });
  return [
    {
      name: "confirm: with several consumers a message is consumed when all of them have confirmed, in any order and any number of times",
      async run(context) {
        const row = await context.put({ state: "sent", nextRetryInMs: HOUR_MS });
        const waiting = [{ status: "waiting", waitingFor: ["billing"] }];
        const touched = ["lockVersion"] as const;
        assert.deepEqual(
          await context.assertChanges(row, touched, () => confirm(context, [by(row, "stock")])),
          waiting,
        );
        assert.deepEqual(await confirm(context, [by(row, "stock")]), waiting, "the second time");
        assert.equal((await context.row(row)).state, "sent");
        assert.deepEqual(statuses(await confirm(context, [by(row, "billing")])), ["consumed"]);
        assert.equal((await context.row(row)).state, "consumed");
        const both = await context.put({ state: "sent" });
        const results = await confirm(context, [by(both, "billing"), by(both, "stock")]);
        assert.deepEqual(statuses(results), ["consumed", "consumed"], "both in one call");
      },
    },
    {
      name: "confirm: of two consumers that confirm at once the second one counts the first (rule: confirmation)",
      needs: ["rowLocks", "instances"],
      async run(context) {
        const row = await context.put({ state: "sent" });
        const first = context.database.confirmationWriter({ layout: context.layout });
        let second: Promise<ConfirmationResult[]> | undefined;
        const results = await context.database.transaction(async (tx) => {
          const mine = await first.confirm(tx, [by(row, "billing")]);
          second = confirm(context, [by(row, "stock")], context.other);
          second.catch(() => undefined);
          await context.waiting(1);
          return mine;
        });
        assert.deepEqual(statuses([...results, ...((await second) ?? [])]), ["waiting", "consumed"]);
        assert.equal((await context.row(row)).state, "consumed");
      },
    },
    {
      name: "confirm: a message that another transaction is changing is consumed when that one is over",
      needs: ["rowLocks", "instances"],
      async run(context) {
        const [row, other] = await context.putAll([{ state: "sent" }, { state: "sent" }]);
        assert.ok(row !== undefined && other !== undefined);
        const first = context.database.confirmationWriter({ layout: context.layout });
        let second: Promise<ConfirmationResult[]> | undefined;
        await context.database.transaction(async (tx) => {
          await first.confirm(tx, [by(row, "stock")]);
          second = confirm(context, [of(other), of(row)], context.other);
          second.catch(() => undefined);
          await context.waiting(1);
        });
        assert.deepEqual(statuses((await second) ?? []), ["consumed", "consumed"]);
        const states = [(await context.row(row)).state, (await context.row(other)).state];
        assert.deepEqual(states, ["consumed", "consumed"]);
      },
    },
    {
      name: "confirm: what was confirmed of a message counts for no other one, and is forgotten in time",
      async run(context) {
        const [row, other] = await context.putAll([{ state: "sent" }, { state: "sent" }]);
        assert.ok(row !== undefined && other !== undefined);
        await confirm(context, [by(row, "billing")]);
        assert.deepEqual(statuses(await confirm(context, [by(other, "stock")])), ["waiting"]);
        const { housekeeping } = context.store;
        assert.equal(await housekeeping.forgetConfirmations({ olderThanMs: HOUR_MS, limit: 10 }), 0);
        assert.equal(await housekeeping.forgetConfirmations({ olderThanMs: 0, limit: 1 }), 1);
        assert.equal(await housekeeping.forgetConfirmations({ olderThanMs: 0, limit: 10 }), 1);
        assert.deepEqual(statuses(await confirm(context, [by(row, "stock")])), ["waiting"]);
      },
    },
  ];
}

function failureCases(): readonly StoreContractCase[] {
  const failed = (row: PutRow, more: Partial<CheckedConfirmation> = {}): CheckedConfirmation =>
    of(row, { error: "no such customer", consumer: "billing", ...more });
  return [
    {
      name: "confirm: a failure that a consumer reports is the deadline of its message, with the reason",
      async run(context) {
        const row = await context.put({ state: "sent", nextRetryInMs: HOUR_MS, deliveryCount: 2 });
        const written = ["nextRetryAt", "failReason", "lockVersion"] as const;
        const results = await context.assertChanges(row, written, () =>
          confirm(context, [failed(row, { attempt: 2 })]),
        );
        assert.deepEqual(statuses(results), ["reported"]);
        const now = await context.row(row);
        assert.deepEqual([now.state, now.failReason], ["sent", "NOT_CONSUMED: billing: no such customer"]);
        const [timed] = await context.store.housekeeping.listTimed({ limit: 10 });
        assert.deepEqual([timed?.id, timed?.failReason], [row.id, "NOT_CONSUMED: billing: no such customer"]);
      },
    },
    {
      name: "confirm: a failure of an earlier attempt, of a message that is not sent, or that is confirmed in the same call, changes nothing",
      needs: ["deliveryCount"],
      async run(context) {
        const row = await context.put({ state: "sent", nextRetryInMs: HOUR_MS, deliveryCount: 2 });
        const [pending, consumed] = await context.putAll([{ state: "pending" }, { state: "consumed" }]);
        assert.ok(pending !== undefined && consumed !== undefined);
        const given = [
          failed(row, { attempt: 1 }),
          failed(pending),
          failed(consumed),
          failed({ ...row, key: "nobody" }),
        ];
        const results = await context.assertUnchanged([row, pending, consumed], () => confirm(context, given));
        assert.deepEqual(statuses(results), ["outdated", "outdated", "outdated", "unknown"]);
        assert.deepEqual(statuses(await confirm(context, [failed(row), of(row)])), ["outdated", "consumed"]);
      },
    },
    {
      name: "confirm: the reason of a failure is cut to the column, and holds what every database stores",
      async run(context) {
        const row = await context.put({ state: "sent" });
        const error = `a\0b\uD800 ' \\ 🚀 ${"x".repeat(5_000)}`;
        assert.deepEqual(statuses(await confirm(context, [failed(row, { error })])), ["reported"]);
        const { failReason } = await context.row(row);
        assert.ok(
          failReason?.startsWith("NOT_CONSUMED: billing: ab\uFFFD ' \\ 🚀 xxx"),
          String(failReason).slice(0, 60),
        );
      },
    },
  ];
}
