/** What a group gets again: when it is due, and what holds up its ordering key. */
import assert from "node:assert/strict";
import type { QueueContractCase } from "../case.ts";
import type { QueueCaseContext } from "../context.ts";
import { after, again, type Member } from "../member.ts";
import { redeliveriesOf } from "../written.ts";

const HOUR_MS = 3_600_000;

/** So many messages, read by a member that has put these of them into message_redelivery. */
async function waiting(
  context: QueueCaseContext,
  changes: readonly Parameters<typeof again>[1][],
): Promise<{ ids: readonly string[]; billing: Member }> {
  const ids = await context.append(changes.map(() => ({})));
  const billing = await context.member();
  const redeliveries = changes.map((change, index) => again(ids[index], change));
  assert.equal(await billing.settle({ nextId: after(ids.at(-1)), redeliveries }), true);
  return { ids, billing };
}

/** Makes one due so long ago, by hand. */
async function due({ sql, dialect, topic }: QueueCaseContext, id: string | undefined, agoMs: number): Promise<void> {
  await sql(
    `UPDATE message_redelivery SET next_attempt_at = ${dialect.ownAt(-agoMs)} WHERE topic_id = '${topic}' AND message_id = ${id}`,
  );
}

export const redeliveryCases: readonly QueueContractCase[] = [
  {
    name: "redelivery: one is due when its time has come, with its attempts and its ordering key",
    async run(context) {
      const { ids, billing } = await waiting(context, [
        { dueInMs: HOUR_MS },
        { dueInMs: 0, attempt: 3, orderingKey: "k" },
        { dueInMs: null, orderingKey: "k" },
      ]);
      const expected = [{ id: ids[1], attempt: 3, firstAttempt: 0, orderingKey: "k" }];
      assert.deepEqual(await billing.consumption.due(0, 10), expected);
      await due(context, ids[0], 1_000);
      assert.equal((await billing.consumption.due(0, 10)).length, 2, "its time has come");
    },
  },
  {
    name: "redelivery: an instant far ahead, and one that waits behind its key, are told apart",
    async run(context) {
      const { ids } = await waiting(context, [{ dueInMs: 1_000 * HOUR_MS }, { dueInMs: null, orderingKey: "k" }]);
      const [far, behind] = await redeliveriesOf(context);
      const inMs = Date.parse(far?.nextAttemptAt ?? "") - (await context.groups.nowMs());
      assert.ok(Math.abs(inMs - 1_000 * HOUR_MS) < 60_000, `${inMs} ms`);
      assert.deepEqual([behind?.id, behind?.nextAttemptAt], [ids[1], null]);
    },
  },
  {
    name: "redelivery: those that have waited longest come first, and no more than the limit",
    async run(context) {
      const { ids, billing } = await waiting(context, [{}, {}, {}]);
      for (const [index, agoMs] of [1_000, 9_000, 5_000].entries()) await due(context, ids[index], agoMs);
      const found = await billing.consumption.due(0, 2);
      assert.deepEqual(
        found.map(({ id }) => id),
        [ids[1], ids[2]],
      );
    },
  },
  {
    name: "redelivery: a dead letter does not come again",
    async run(context) {
      const { billing } = await waiting(context, [{ state: "dead" }]);
      assert.deepEqual(await billing.consumption.due(0, 10), []);
    },
  },
  {
    name: "redelivery: it is of one group and one partition",
    async run(context) {
      const { billing } = await waiting(context, [{ orderingKey: "k" }]);
      const audit = context.consumption("audit");
      assert.deepEqual([await billing.consumption.due(1, 10), await audit.due(0, 10)], [[], []]);
      assert.deepEqual([await billing.consumption.heldUp(1, ["k"]), await audit.heldUp(0, ["k"])], [[], []]);
      assert.deepEqual(await billing.consumption.heldUp(0, ["k"]), ["k"]);
    },
  },
  {
    name: "redelivery: those of the given ordering keys are held up that have a waiting one, byte for byte",
    async run(context) {
      const { billing } = await waiting(context, [
        { orderingKey: "订单" },
        { orderingKey: "Late", dueInMs: HOUR_MS },
        { orderingKey: "dead", state: "dead" },
        { orderingKey: null },
        { orderingKey: "not asked for" },
      ]);
      const asked = ["订单", "late", "Late", "Late ", "dead", "free", "'"];
      const held = await billing.consumption.heldUp(0, asked);
      assert.deepEqual(held.toSorted(), ["Late", "订单"]);
    },
  },
  {
    name: "redelivery: the first waiting one of a released key is due, and no other",
    async run(context) {
      const { ids, billing } = await waiting(context, [
        { orderingKey: "k", state: "dead", dueInMs: 0 },
        { orderingKey: "k", dueInMs: null },
        { orderingKey: "k", dueInMs: null },
        { orderingKey: "other", dueInMs: null },
        { orderingKey: "later", dueInMs: HOUR_MS },
      ]);
      assert.deepEqual(await billing.consumption.due(0, 10), []);
      assert.equal(await billing.settle({ released: ["k", "later", "unknown"] }), true);
      assert.deepEqual(
        (await billing.consumption.due(0, 10)).map(({ id }) => id),
        [ids[1]],
        "one that has a time of its own keeps it",
      );
      await billing.settle({ redelivered: [ids[1] ?? ""], released: ["k"] });
      assert.deepEqual(
        (await billing.consumption.due(0, 10)).map(({ id }) => id),
        [ids[2]],
      );
    },
  },
  {
    name: "redelivery: one that is put again is as it was put last",
    async run(context) {
      const { ids, billing } = await waiting(context, [{ attempt: 4, orderingKey: "k" }]);
      await billing.settle({ redeliveries: [again(ids[0], { attempt: 1, failReason: "LATE" })] });
      const [found, ...more] = await redeliveriesOf(context);
      assert.deepEqual(more, []);
      assert.deepEqual([found?.attempt, found?.failReason, found?.orderingKey], [1, "LATE", null]);
    },
  },
];
