/** Outcomes: what each writes, that it belongs to one claim (rule R4), and how rows that did not match are reported. */
import assert from "node:assert/strict";
import { MESSAGE_STATES, type MessageState } from "../../../message/states.ts";
import type { Outcome, RowNow } from "../../../outbox/relay-store.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues, StoreCaseContext } from "../context.ts";
import { failed, retried, returned, sent } from "../outcome.ts";

const HOUR_MS = 3_600_000;

/** A row as a claim has left it. */
const CLAIMED: PutValues = { state: "sending", deliveryCount: 1, lockVersion: 1 };

/** Settles outcomes of rows that were claimed as `sending`, in the name of an owner of all shards. */
async function settle(context: StoreCaseContext, outcomes: readonly Outcome[], elapsedMs = 0): Promise<RowNow[]> {
  const { fence } = await context.acquire();
  // The acquisition recovers rows in `sending`: here the rows are put afterwards.
  return await context.store.settle({ fence, outcomes, elapsedMs, from: "sending" });
}

export const settleCases: readonly StoreContractCase[] = [
  {
    name: "settle: sent writes the receipt and the times, clears the reason, and nothing else",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ ...CLAIMED, retryCount: 2, failReason: "earlier", nextRetryInMs: -5_000 });
      const outcomes = [sent(await context.token(row), { messageId: "0A1B-42" })];
      const columns = [
        "state",
        "messageId",
        "sentAt",
        "lastRetryAt",
        "nextRetryAt",
        "failReason",
        "lockVersion",
      ] as const;
      const open = await context.assertChanges(row, columns, () =>
        context.store.settle({ fence, outcomes, elapsedMs: 120_000, from: "sending" }),
      );
      assert.deepEqual(open, []);
      const now = await context.row(row);
      assert.equal(now.state, "sent");
      assert.equal(now.nextRetryInMs, null);
      assert.equal(now.failReason, null);
      const { messageId, sentAt, lastRetryAt, lockVersion } = context.layout.columns;
      if (messageId !== undefined) assert.equal(now.messageId, "0A1B-42");
      if (sentAt !== undefined) context.assertInMs(now.sentInMs, 0, "sent_at");
      if (lastRetryAt !== undefined) context.assertInMs(now.lastRetryInMs, -120_000, "last_retry_at");
      if (lockVersion !== undefined) assert.equal(now.lockVersion, 2);
    },
  },
  {
    name: "settle: sent with a confirmation deadline writes it",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put(CLAIMED);
      const outcomes = [sent(await context.token(row), { nextRetryInMs: HOUR_MS })];
      assert.deepEqual(await context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }), []);
      const now = await context.row(row);
      assert.equal(now.state, "sent");
      context.assertInMs(now.nextRetryInMs, HOUR_MS, "confirmation deadline");
    },
  },
  {
    name: "settle: a counted failure goes back to pending with its reason and its time",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ ...CLAIMED, retryCount: 2 });
      const outcomes = [retried(await context.token(row), { failReason: "BUSY", nextRetryInMs: 90_000 })];
      const columns = ["state", "retryCount", "failReason", "nextRetryAt", "lastRetryAt", "lockVersion"] as const;
      const open = await context.assertChanges(row, columns, () =>
        context.store.settle({ fence, outcomes, elapsedMs: 30_000, from: "sending" }),
      );
      assert.deepEqual(open, []);
      const now = await context.row(row);
      assert.deepEqual([now.state, now.retryCount, now.failReason], ["pending", 3, "BUSY"]);
      context.assertInMs(now.nextRetryInMs, 90_000, "next_retry_at");
      if (context.layout.columns.lastRetryAt !== undefined) {
        context.assertInMs(now.lastRetryInMs, -30_000, "last_retry_at");
      }
    },
  },
  {
    name: "settle: a retry never comes before the message's own time (rule R10)",
    needs: ["deliverAt"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([
        { ...CLAIMED, deliverInMs: HOUR_MS },
        { ...CLAIMED, deliverInMs: HOUR_MS },
        { ...CLAIMED, deliverInMs: -HOUR_MS },
      ]);
      const [delayed, returnedOne, past] = await context.tokens(rows);
      assert.ok(delayed && returnedOne && past);
      const outcomes = [retried(delayed), returned(returnedOne), returned(past)];
      assert.deepEqual(await context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }), []);
      const now = await Promise.all(rows.map((row) => context.row(row)));
      context.assertInMs(now[0]?.nextRetryInMs ?? null, HOUR_MS, "a retry after a minute");
      context.assertInMs(now[1]?.nextRetryInMs ?? null, HOUR_MS, "a return at once");
      assert.equal(now[2]?.nextRetryInMs, null, "a return of a message whose time has come");
    },
  },
  {
    name: "settle: an uncounted return takes the delivery back and leaves the counts and the reason",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ ...CLAIMED, retryCount: 2, failReason: "earlier", lastRetryInMs: -9_000 });
      const outcomes = [returned(await context.token(row))];
      const columns = ["state", "deliveryCount", "lockVersion"] as const;
      const open = await context.assertChanges(row, columns, () =>
        context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }),
      );
      assert.deepEqual(open, []);
      const now = await context.row(row);
      assert.deepEqual([now.state, now.retryCount, now.deliveryCount], ["pending", 2, 0]);
    },
  },
  {
    name: "settle: failed keeps the reason, and the time of the slow retry or none",
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([
        { ...CLAIMED, nextRetryInMs: -5_000 },
        { ...CLAIMED, nextRetryInMs: -5_000 },
      ]);
      const [slow, never] = await context.tokens(rows);
      assert.ok(slow && never);
      const outcomes = [failed(slow, { nextRetryInMs: 6 * HOUR_MS }), failed(never, { failReason: "gone" })];
      assert.deepEqual(await context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }), []);
      const [first, second] = await Promise.all(rows.map((row) => context.row(row)));
      assert.deepEqual([first?.state, first?.retryCount, first?.failReason], ["failed", 1, "REFUSED: too large"]);
      context.assertInMs(first?.nextRetryInMs ?? null, 6 * HOUR_MS, "slow retry");
      assert.deepEqual([second?.state, second?.nextRetryInMs, second?.failReason], ["failed", null, "gone"]);
    },
  },
  {
    name: "settle: one call writes all kinds of outcomes, each to its own row",
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll(Array.from({ length: 8 }, () => CLAIMED));
      const kinds = [sent, retried, returned, failed];
      const outcomes = (await context.tokens(rows)).map((token, index) => (kinds[index % kinds.length] ?? sent)(token));
      const open = await context.store.settle({ fence, outcomes: outcomes.reverse(), elapsedMs: 0, from: "sending" });
      assert.deepEqual(open, []);
      const states = await Promise.all(rows.map(async (row) => (await context.row(row)).state));
      const expected: MessageState[] = ["sent", "pending", "pending", "failed"];
      assert.deepEqual(states, [...expected, ...expected]);
      if (context.layout.columns.messageId === undefined) return;
      for (const row of rows.filter((_row, index) => index % kinds.length === 0)) {
        assert.equal((await context.row(row)).messageId, `receipt-${row.id}`, "its own receipt");
      }
    },
  },
  ...wrongStateCases(),
  {
    name: "settle: an outcome of an earlier claim changes nothing and is reported (rule R4)",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put(CLAIMED);
      const stale = await context.token(row);
      const again = { fence, elapsedMs: 0, from: "sending" } as const;
      await context.store.settle({ ...again, outcomes: [retried(stale, { nextRetryInMs: 0 })] });
      await context.table.edit(row.id, { nextRetryInMs: null });
      assert.equal(await context.store.claim({ fence, rows: [await context.token(row)] }), 1);
      // The client had no answer, so it sends the first settle once more: now it meets the second attempt.
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
      const token = { ...(await context.token(row)), lockVersion: 1 };
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
      const current = { ...(await context.token(row)), lockVersion: 4 };
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
        await context.table.edit(row.id, { state: "sending", lockVersion: token.lockVersion });
        const open = await context.whileLocked([row], {
          start: () => context.store.settle({ fence, outcomes: [outcome], elapsedMs: 0, from: "sending" }),
          meanwhile: (edit) => edit(row, { state: "suspended", lockVersion: token.lockVersion + 5 }),
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
      const gone = { id: "999999999", shard: 0, deliveryCount: 1, lockVersion: 1 };
      for (const outcome of [sent(gone), retried(gone)]) {
        const open = await settle(context, [outcome]);
        assert.deepEqual(
          open.map(({ id, state }) => [id, state]),
          [[gone.id, "unknown"]],
        );
      }
    },
  },
  {
    name: "settle: receipts and reasons are kept character by character, and cut to their columns",
    async run(context) {
      const { fence } = await context.acquire();
      const hostile = `O'Brien \\ "quoted" {a,NULL} \\n 消息 🚀 %_ \t end`;
      const { failReasonLength, messageIdLength } = context.layout;
      const long = "🚀".repeat(failReasonLength + 10);
      const rows = await context.putAll([CLAIMED, CLAIMED, CLAIMED, CLAIMED]);
      const [receipt, reason, longReason, broken] = await context.tokens(rows);
      assert.ok(receipt && reason && longReason && broken);
      const outcomes = [
        sent(receipt, { messageId: hostile }),
        retried(reason, { failReason: hostile }),
        failed(longReason, { failReason: long }),
        failed(broken, { failReason: "nul \0 and half a pair \uD83D." }),
      ];
      assert.deepEqual(await context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }), []);
      const [first, second, third, fourth] = await Promise.all(rows.map((row) => context.row(row)));
      if (messageIdLength >= hostile.length) assert.equal(first?.messageId, hostile);
      assert.equal(second?.failReason, hostile);
      assert.equal([...(third?.failReason ?? "")].length, failReasonLength);
      assert.match(fourth?.failReason ?? "", /half a pair \uFFFD/);
    },
  },
  {
    name: "settle: 500 outcomes are written at once",
    async run(context) {
      await context.enqueue(Array.from({ length: 500 }, (_, index) => context.message({ key: `many-${index}` })));
      const { fence } = await context.acquire();
      const rows = await context.scan();
      await context.store.claim({ fence, rows });
      const claimed = rows.map((row) => ({
        ...row,
        deliveryCount: row.deliveryCount + 1,
        lockVersion: row.lockVersion + 1,
      }));
      const outcomes = claimed.map(({ id, shard, deliveryCount, lockVersion }, index) =>
        (index % 2 === 0 ? sent : failed)({ id, shard, deliveryCount, lockVersion }),
      );
      assert.deepEqual(await context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }), []);
      const { rows: left } = await context.sql(`SELECT COUNT(*) AS n FROM ${context.own.messages}`);
      assert.equal(Number(left[0]?.["n"]), 500);
    },
  },
  {
    name: "settle: without a sending mark, outcomes are written to pending rows and to no others",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const expected: readonly (readonly [typeof sent, MessageState])[] = [
        [sent, "sent"],
        [retried, "pending"],
        [failed, "failed"],
      ];
      for (const [kind, state] of expected) {
        const [waiting, marked] = await context.putAll([{}, { state: "sending" }]);
        assert.ok(waiting && marked);
        const outcomes = (await context.tokens([waiting, marked])).map((token) => kind(token));
        const open = await context.assertUnchanged([marked], () =>
          context.store.settle({ fence, outcomes, elapsedMs: 0, from: "pending" }),
        );
        assert.deepEqual(
          open.map(({ id }) => id),
          [marked.id],
        );
        assert.equal((await context.row(waiting)).state, state);
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
      const { toState } = kind({ id: "0", shard: 0, deliveryCount: 0, lockVersion: 0 });
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
