/** Outcomes: what each kind writes, and what it leaves. */

import assert from "node:assert/strict";
import type { MessageState } from "../../../../src/message/states.ts";
import { claimedToken } from "../../../../src/relay/row-token.ts";
import type { StoreContractCase } from "../case.ts";
import { CLAIMED, failed, retried, returned, sent } from "../outcome.ts";
import { settleClaimCases } from "./settle-claim.ts";
import { settleRemovalCases } from "./settle-removal.ts";

const HOUR_MS = 3_600_000;

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
    name: "settle: a retry never comes before the message's own time (rule: delay-is-not-retry)",
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
    name: "settle: without the mark a counted failure counts its delivery too, and a return changes neither count nor time (rule: crash-counting)",
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([
        { deliveryCount: 3, retryCount: 2, lastRetryInMs: -9_000 },
        { deliveryCount: 3, retryCount: 2, lastRetryInMs: -9_000 },
      ]);
      const [tried, back] = await context.tokens(rows);
      assert.ok(tried && back);
      const outcomes = [retried(tried, { deliveryDelta: 1 }), returned(back, { deliveryDelta: 0 })];
      assert.deepEqual(await context.store.settle({ fence, outcomes, elapsedMs: 60_000, from: "pending" }), []);
      const [first, second] = await Promise.all(rows.map((row) => context.row(row)));
      assert.deepEqual([first?.state, first?.retryCount], ["pending", 3]);
      assert.deepEqual([second?.state, second?.retryCount], ["pending", 2]);
      if (context.layout.columns.deliveryCount !== undefined) {
        assert.deepEqual([first?.deliveryCount, second?.deliveryCount], [4, 3]);
      }
      if (context.layout.columns.lastRetryAt !== undefined) {
        context.assertInMs(first?.lastRetryInMs ?? null, -60_000, "the attempt that failed");
        context.assertInMs(second?.lastRetryInMs ?? null, -9_000, "no attempt");
      }
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
      assert.equal(Array.from(third?.failReason ?? "").length, failReasonLength);
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
      const outcomes = rows.map((row, index) => (index % 2 === 0 ? sent : failed)(claimedToken(row, "on")));
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
  ...settleClaimCases,
  ...settleRemovalCases,
];
