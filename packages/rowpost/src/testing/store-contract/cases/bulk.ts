/** Changes of many messages by hand: what they mean, and that nothing is lost or done twice. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { BulkOperation, BulkStep, BulkStore } from "../../../outbox/bulk-operations.ts";
import type { StoreContractCase } from "../case.ts";
import type { StoreCaseContext } from "../context.ts";

const ACTION = { author: "ann", reason: "the broker is back", via: "console" };
const WORKER = { owner: randomUUID(), leaseMs: 60_000 };

async function withBulk(context: StoreCaseContext, work: (bulk: BulkStore) => Promise<void>): Promise<void> {
  const bulk = context.database.bulk({ layout: context.layout });
  try {
    await work(bulk);
  } finally {
    await bulk.close();
  }
}

async function failed(context: StoreCaseContext, count: number): Promise<string[]> {
  const first = randomUUID();
  const rows = await context.putAll(
    Array.from({ length: count }, (_, index) => ({
      ...{ key: `${first}-${index}`, state: "failed", failReason: "HTTP_503", topic: "orders" },
    })),
  );
  return rows.map(({ id }) => id);
}

/** Does one batch; waits as long as the rate asks for. */
async function step(bulk: BulkStore, worker: typeof WORKER): Promise<BulkStep | undefined> {
  const done = await bulk.work(worker);
  if (done === undefined || !("waitMs" in done)) return done;
  await delay(done.waitMs);
  return await step(bulk, worker);
}

/** Works until there is nothing to do. */
async function finish(bulk: BulkStore, id: string, worker = WORKER): Promise<BulkOperation> {
  while ((await step(bulk, worker)) !== undefined);
  const operation = await bulk.read(id);
  assert.ok(operation);
  return operation;
}

function law({ changed, conflicts, state, total, vanished }: BulkOperation): unknown {
  assert.equal(total, changed + conflicts + vanished);
  return { changed, conflicts, state, vanished };
}

const RETRY = { kind: "retry", filter: { topic: "orders" }, author: "ann" } as const;

export const bulkCases: readonly StoreContractCase[] = [
  {
    name: "bulk: what the preview found is changed, but for what somebody changed or removed since",
    async run(context) {
      await withBulk(context, async (bulk) => {
        const ids = await failed(context, 5);
        await context.put({ state: "sent", topic: "orders" });
        const { operation, samples } = await bulk.preview(RETRY);
        assert.deepEqual([operation.state, operation.total, operation.planned], ["preview", 5, true]);
        assert.deepEqual(
          samples.map(({ id }) => id),
          ids,
        );
        const [first = "", second = "", ...others] = ids;
        await context.admin.suspend({ filter: { ids: [first] }, action: ACTION, limit: 1 });
        await context.admin.remove({ filter: { ids: [second] }, action: ACTION, limit: 1, mode: "delete" });
        const later = await failed(context, 1);
        assert.equal(await bulk.work(WORKER), undefined, "a preview is nobody's work");
        await bulk.start({ id: operation.id, action: ACTION, rate: 1_000 });
        const ended = await finish(bulk, operation.id);
        assert.deepEqual(law(ended), { changed: 3, conflicts: 1, state: "done", vanished: 1 });
        assert.deepEqual(await bulk.conflicts({ id: operation.id, afterId: "0", limit: 10 }), [
          { id: first, state: "suspended" },
        ]);
        const { messages } = await context.admin.list({ filter: { ids: [...others, ...later] }, limit: 10 });
        assert.deepEqual(
          messages.map(({ state }) => state),
          ["failed", "pending", "pending", "pending"],
        );
        const [change] = await context.admin.changes(others[0] ?? "");
        assert.deepEqual([change?.action, change?.author, change?.reason], ["retry", "ann", ACTION.reason]);
      });
    },
  },
  {
    name: "bulk: only who made a preview can start it, and once; the others are refused",
    async run(context) {
      await withBulk(context, async (bulk) => {
        await failed(context, 1);
        const { id } = (await bulk.preview(RETRY)).operation;
        const bob = { ...ACTION, author: "bob" };
        assert.equal(await bulk.start({ id, action: bob, rate: 1_000 }), undefined);
        assert.equal(await bulk.start({ id: randomUUID(), action: ACTION, rate: 1_000 }), undefined);
        const started = await bulk.start({ id, action: ACTION, rate: 1_000 });
        assert.equal(started?.state, "running");
        assert.deepEqual(law(await finish(bulk, id)), { changed: 1, conflicts: 0, state: "done", vanished: 0 });
        const again = await bulk.start({ id, action: ACTION, rate: 1_000 });
        assert.equal(again?.state, "done", "it is not begun again");
        await assert.rejects(bulk.preview({ ...RETRY, filter: {} }), { code: "CONFIGURATION" });
        await assert.rejects(bulk.preview({ ...RETRY, filter: { states: ["sent"] } }), { code: "CONFIGURATION" });
        assert.ok((await bulk.list()).some((operation) => operation.id === id));
      });
    },
  },
  {
    name: "bulk: one that is paused waits, one that is cancelled leaves the rest",
    async run(context) {
      await withBulk(context, async (bulk) => {
        const ids = await failed(context, 2);
        const preview = async () => (await bulk.preview(RETRY)).operation.id;
        const id = await preview();
        await bulk.start({ id, action: ACTION, rate: 1_000 });
        assert.equal(await bulk.move({ id, to: "paused", action: ACTION }), true);
        assert.equal(await bulk.move({ id, to: "paused", action: ACTION }), false);
        assert.equal(await bulk.work(WORKER), undefined);
        assert.equal(await bulk.move({ id, to: "running", action: ACTION }), true);
        assert.equal(await bulk.move({ id, to: "cancelled", action: ACTION }), true);
        assert.equal(await bulk.move({ id, to: "running", action: ACTION }), false);
        assert.equal(await bulk.work(WORKER), undefined);
        const { messages } = await context.admin.list({ filter: { ids, states: ["failed"] }, limit: 10 });
        assert.equal(messages.length, 2);
        const cancelled = await bulk.read(id);
        assert.deepEqual([cancelled?.state, cancelled?.total, cancelled?.changed], ["cancelled", 2, 0]);
      });
    },
  },
  {
    name: "bulk: nobody else works on one that is leased, and somebody does when the lease is over",
    async run(context) {
      await withBulk(context, async (bulk) => {
        // Three batches of 500.
        await failed(context, 1_001);
        const { id } = (await bulk.preview(RETRY)).operation;
        await bulk.start({ id, action: ACTION, rate: 100_000 });
        assert.deepEqual(await bulk.work(WORKER), { id });
        const other = { ...WORKER, owner: randomUUID() };
        assert.equal(await bulk.work(other), undefined);
        await step(bulk, { ...WORKER, leaseMs: 0 });
        assert.equal((await bulk.read(id))?.changed, 1_000);
        // The first one is dead: its lease is over at once.
        assert.deepEqual(law(await finish(bulk, id, other)), {
          changed: 1_001,
          conflicts: 0,
          state: "done",
          vanished: 0,
        });
      });
    },
  },
  {
    name: "bulk: a slow one holds up no other",
    async run(context) {
      await withBulk(context, async (bulk) => {
        await failed(context, 501);
        const slow = (await bulk.preview(RETRY)).operation.id;
        await bulk.start({ id: slow, action: ACTION, rate: 1 });
        assert.deepEqual(await bulk.work(WORKER), { id: slow });
        await context.put({ state: "failed", failReason: "HTTP_503", topic: "stock" });
        const quick = (await bulk.preview({ ...RETRY, filter: { topic: "stock" } })).operation.id;
        await bulk.start({ id: quick, action: ACTION, rate: 1_000 });
        assert.deepEqual(await bulk.work(WORKER), { id: quick });
        await step(bulk, WORKER);
        const states = [await bulk.read(quick), await bulk.read(slow)];
        assert.deepEqual(
          states.map((operation) => [operation?.state, operation?.changed]),
          [
            ["done", 1],
            ["running", 500],
          ],
        );
        const rest = await bulk.work(WORKER);
        assert.ok(rest !== undefined && "waitMs" in rest && rest.waitMs > 60_000, "500 at one a second");
      });
    },
  },
  {
    name: "bulk: of two workers at once one changes the batch, and the other none of it",
    async run(context) {
      await withBulk(context, async (bulk) => {
        await withBulk(context, async (beside) => {
          const other = { ...WORKER, owner: randomUUID() };
          for (let round = 0; round < 5; round += 1) {
            const topic = `round ${round}`;
            await context.putAll(Array(4).fill({ state: "failed", failReason: "HTTP_503", topic }));
            const { id } = (await bulk.preview({ ...RETRY, filter: { topic } })).operation;
            await bulk.start({ id, action: ACTION, rate: 1_000 });
            await Promise.all([bulk.work(WORKER), beside.work(other)]);
            await Promise.all([finish(bulk, id), finish(beside, id, other)]);
            assert.deepEqual(law(await finish(bulk, id)), { changed: 4, conflicts: 0, state: "done", vanished: 0 });
          }
        });
      });
    },
  },
  {
    name: "bulk: messages named one by one are suspended until a time, and resumed",
    async run(context) {
      await withBulk(context, async (bulk) => {
        const { id: message } = await context.put({ state: "pending" });
        const [shown] = (await context.admin.list({ filter: { ids: [message] }, limit: 1 })).messages;
        const seen = [{ id: message, lockVersion: shown?.lockVersion ?? "0" }];
        const { id } = (await bulk.preview({ kind: "suspend", filter: {}, seen, author: "ann" })).operation;
        await bulk.start({ id, action: ACTION, rate: 1_000, untilMs: 3_600_000 });
        assert.deepEqual(law(await finish(bulk, id)), { changed: 1, conflicts: 0, state: "done", vanished: 0 });
        const [held] = (await context.admin.list({ filter: { ids: [message] }, limit: 1 })).messages;
        assert.equal(held?.state, "suspended");
        assert.notEqual(held?.nextRetryAt, null);
        const resume = await bulk.preview({ kind: "resume", filter: { states: ["suspended"] }, author: "ann" });
        await bulk.start({ id: resume.operation.id, action: ACTION, rate: 1_000 });
        assert.equal((await finish(bulk, resume.operation.id)).changed, 1);
      });
    },
  },
];
