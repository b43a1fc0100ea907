/** Why a message is not sent: each rule that holds one is named, in the order of the relay. */
import assert from "node:assert/strict";
import type { Explanation } from "../../../../src/admin/message-admin.ts";
import { ruleReason } from "../../../../src/message/suspension-reason.ts";
import type { RelayReport } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues, StoreCaseContext } from "../context.ts";

const HOUR_MS = 3_600_000;
const ACTION = { author: "ann", reason: "wrong amount" };
const WELL: RelayReport = {
  version: "1.2.3",
  shards: [],
  inFlight: 0,
  windowSize: 2_000,
  onFailed: "block",
  moreResting: 0,
  brokers: [],
  restingTopics: [],
  lastError: undefined,
};

async function explained(context: StoreCaseContext, row: PutRow): Promise<Explanation> {
  const message = await context.other.admin.show({ id: row.id });
  assert.ok(message);
  return await context.other.admin.explain(message);
}

/** What holds a row with these values. */
async function held(context: StoreCaseContext, values: PutValues): Promise<Explanation> {
  return await explained(context, await context.put(values));
}

/** A relay that lives, holds all shards, and says this of itself. */
async function relay(context: StoreCaseContext, report: Partial<RelayReport> = {}): Promise<void> {
  const { owner } = await context.acquire();
  const { leases } = context.store;
  await leases.heartbeat({ owner, label: "host:1", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] });
  await leases.report({ owner, report: JSON.stringify({ ...WELL, ...report }) });
}

export const explainCases: readonly StoreContractCase[] = [
  {
    name: "explain: what is no longer waiting says what became of it",
    async run(context) {
      await relay(context);
      const failed = await held(context, { state: "failed", retryCount: 16, failReason: "HTTP_503" });
      assert.equal(failed.heldBy, "failed");
      assert.match(failed.text, /16 counted attempts: HTTP_503.*rowpost retry/);
      const slow = await held(context, { state: "failed", failReason: "HTTP_503", nextRetryInMs: HOUR_MS });
      assert.ok(slow.until !== undefined && slow.text.includes(slow.until));
      assert.equal((await held(context, { state: "sent" })).heldBy, "sent");
      assert.equal((await held(context, { state: "sent", nextRetryInMs: HOUR_MS })).heldBy, "confirmation");
      assert.equal((await held(context, { state: "consumed" })).heldBy, "consumed");
      const sending = await held(context, { state: "sending" });
      assert.deepEqual([sending.heldBy, sending.relay], ["sending", "host:1"]);
    },
  },
  {
    name: "explain: a suspended one names the person or the rule, and the words",
    async run(context) {
      await relay(context);
      const byHand = await context.put({ failReason: "HTTP_503", retryCount: 1 });
      await context.admin.suspend({ filter: { ids: [byHand.id] }, action: ACTION, limit: 1 });
      assert.match(
        (await explained(context, byHand)).text,
        /suspended by ann at \d.*: wrong amount, until it is resumed/,
      );
      const rule = { scope: "topic", value: 'a "b" \\' } as const;
      const failReason = `${ruleReason(rule)}stock count (ops)`;
      const byRule = await context.put({ state: "suspended", failReason, nextRetryInMs: HOUR_MS });
      const { heldBy, text, until } = await explained(context, byRule);
      assert.equal(heldBy, "suspended");
      assert.ok(text.includes(`topic ${JSON.stringify(rule.value)}: stock count (ops), until ${until}`), text);
    },
  },
  {
    name: "explain: a delay, and a backoff with its last error",
    needs: ["deliverAt"],
    async run(context) {
      const delayed = await held(context, { deliverInMs: HOUR_MS, nextRetryInMs: HOUR_MS });
      assert.equal(delayed.heldBy, "delay");
      const waits = await held(context, { retryCount: 3, nextRetryInMs: HOUR_MS, failReason: "HTTP_503: busy" });
      assert.equal(waits.heldBy, "backoff");
      assert.match(waits.text, /\(3 counted so far\)\. The last error: HTTP_503: busy/);
      const ms = Date.parse(waits.until ?? "") - Date.parse(delayed.until ?? "");
      assert.ok(Math.abs(ms) < 60_000, `${waits.until} and ${delayed.until}`);
    },
  },
  {
    name: "explain: the message in front of it in its ordering key, and that one's state",
    needs: ["orderingKey"],
    async run(context) {
      await relay(context);
      const rows = await context.putAll([
        { orderingKey: "k", state: "failed", failReason: "HTTP_400" },
        { orderingKey: "k" },
        { orderingKey: "other" },
      ]);
      const [front, behind, other] = rows;
      assert.ok(front && behind && other);
      const { behindId, heldBy, text } = await explained(context, behind);
      assert.deepEqual([heldBy, behindId], ["ordering key", front.id]);
      assert.match(text, /which is failed: HTTP_400/);
      assert.equal((await explained(context, other)).heldBy, "nothing");
      await relay(context, { onFailed: "skip" });
      assert.equal((await explained(context, behind)).heldBy, "nothing", "the relay passes failed ones");
    },
  },
  {
    name: "explain: no relay, a shard that nobody has, an owner that is silent",
    async run(context) {
      const row = await context.put();
      assert.equal((await explained(context, row)).heldBy, "no relay");
      const { leases } = context.store;
      const beat = { leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] };
      await leases.heartbeat({ owner: "alive", label: "host:2", ...beat });
      const unowned = await explained(context, row);
      assert.equal(unowned.heldBy, "shard without owner");
      assert.match(unowned.text, /host:2/);
      const { owner } = await context.acquire();
      await leases.heartbeat({ owner, label: "host:1", ...beat });
      assert.equal((await explained(context, row)).heldBy, "nothing");
      const { dialect, own } = context;
      await context.sql(
        `UPDATE ${own.relay} SET seen_at = ${dialect.ownAt(-300_000)} WHERE ${own.ours} AND label LIKE 'host:1%'`,
      );
      const silent = await explained(context, row);
      assert.equal(silent.heldBy, "silent owner");
      assert.match(silent.text, /host:1, silent since \d/);
    },
  },
  {
    name: "explain: a rule that is to suspend it, a broker that is away, a topic that rests, or nothing",
    async run(context) {
      const row = await context.put({ topic: "orders" });
      const away = { name: "kafka", awayForMs: 60_000, reason: "ECONNREFUSED" };
      await relay(context, { brokers: [{ ...away, topics: undefined }] });
      const waits = await explained(context, row);
      assert.deepEqual([waits.heldBy, waits.relay], ["broker away", "host:1"]);
      assert.match(waits.text, /kafka is away since \d.*: ECONNREFUSED/);
      await relay(context, { brokers: [{ ...away, topics: ["stock"] }] });
      assert.equal((await explained(context, row)).heldBy, "nothing", "it goes to another broker");
      await relay(context, { restingTopics: [{ topic: "orders", restsForMs: 30_000, reason: "HTTP_429" }] });
      const rests = await explained(context, row);
      assert.equal(rests.heldBy, "topic rests");
      assert.match(rests.text, /HTTP_429/);
      await relay(context);
      assert.match((await explained(context, row)).text, /due now; relay host:1 takes it$/);
      await context.admin.suspendScope({ scope: "topic", value: "orders", ...ACTION, endsInMs: null });
      const ruled = await explained(context, row);
      assert.equal(ruled.heldBy, "suspension rule");
      assert.match(ruled.text, /rule of ann on topic "orders" holds it: wrong amount/);
    },
  },
  {
    name: "left: counts what waits by what it waits for, and says when the first attempt is due",
    needs: ["deliverAt"],
    async run(context) {
      await context.putAll([
        {},
        { nextRetryInMs: -5_000, retryCount: 1 },
        { nextRetryInMs: HOUR_MS, retryCount: 1 },
        { nextRetryInMs: 2 * HOUR_MS, retryCount: 1 },
        { nextRetryInMs: HOUR_MS, deliverInMs: HOUR_MS },
        ...(["sending", "sent", "failed", "suspended"] as const).map((state) => ({ state })),
      ]);
      const { nextBackoffInMs, ...left } = await context.store.housekeeping.left();
      const waiting = { due: 2, backoff: 2, delayed: 1, behind: 0 };
      assert.deepEqual(left, { ...waiting, sending: 1, failed: 1, suspended: 1 });
      context.assertInMs(nextBackoffInMs ?? null, HOUR_MS, "next attempt");
    },
  },
  {
    name: "admin: retry now brings forward what waits for its next attempt, and nothing that is delayed",
    needs: ["deliverAt"],
    async run(context) {
      const rows = await context.putAll([
        { state: "failed", retryCount: 16, failReason: "HTTP_503" },
        { nextRetryInMs: HOUR_MS, retryCount: 3, failReason: "HTTP_503" },
        { nextRetryInMs: HOUR_MS, deliverInMs: HOUR_MS },
        {},
        { state: "sent" },
      ]);
      const ids = rows.map(({ id }) => id);
      const others = rows.slice(2);
      const request = { filter: { ids }, action: ACTION, limit: 10 };
      const { changed, conflicts } = await context.assertUnchanged(others, () =>
        context.admin.retry({ ...request, now: true }),
      );
      assert.deepEqual([changed, conflicts.map(({ id }) => id)], [2, ids.slice(4)]);
      const [failed, waits] = await Promise.all(rows.slice(0, 2).map((row) => context.row(row)));
      assert.deepEqual([failed?.state, failed?.nextRetryInMs, failed?.retryCount], ["pending", null, 0]);
      assert.deepEqual([waits?.nextRetryInMs, waits?.retryCount, waits?.failReason], [null, 3, "HTTP_503"]);
    },
  },
  {
    name: "admin: a reset of the backoff brings a topic forward, keeps its attempts, and is written down",
    needs: ["deliverAt"],
    async run(context) {
      const waiting: PutValues = { nextRetryInMs: HOUR_MS, retryCount: 3, failReason: "HTTP_503" };
      const rows = await context.putAll([waiting, waiting, { ...waiting, topic: "other" }]);
      const [first, , other] = rows;
      assert.ok(first && other);
      const reset = () => context.admin.resetBackoff({ topic: "orders", action: ACTION });
      assert.equal(await context.assertUnchanged([other], reset), 2);
      const { failReason, nextRetryInMs, retryCount } = await context.row(first);
      assert.ok(nextRetryInMs !== null && nextRetryInMs < 60_000, `due in ${nextRetryInMs} ms`);
      assert.deepEqual([retryCount, failReason], [3, "HTTP_503"]);
      assert.equal(await reset(), 0);
    },
  },
];
