/** Who may write: the owner of the partition at its epoch, from where the progress stands. */

import assert from "node:assert/strict";
import { nextVersion } from "../../../../src/runtime/next-version.ts";
import { until } from "../../../../src/testing/contract-run.ts";
import type { QueueContractCase } from "../case.ts";
import type { QueueCaseContext } from "../context.ts";
import { after, again, consumed, type Member, PLACE, type Settled } from "../member.ts";
import { placeOf, recordsOf, redeliveriesOf } from "../written.ts";

/** What there is of a group, to be compared. */
async function all(context: QueueCaseContext): Promise<unknown[]> {
  return [await placeOf(context), await recordsOf(context), await redeliveriesOf(context)];
}

/** Two messages, the first of which is consumed, and the second waits in message_redelivery. */
async function twoMessages(context: QueueCaseContext): Promise<{ ids: readonly string[]; billing: Member }> {
  const ids = await context.append([{}, {}, {}]);
  const billing = await context.member();
  await billing.settle({ nextId: ids[2], records: [consumed(ids[0])], redeliveries: [again(ids[1])] });
  return { ids, billing };
}

export const settleFenceCases: readonly QueueContractCase[] = [
  {
    name: "fence: a settle of another owner, of another epoch, or from elsewhere writes nothing",
    async run(context) {
      const { ids, billing } = await twoMessages(context);
      const before = await all(context);
      const work = {
        fromId: ids[2] ?? "",
        nextId: after(ids[2]),
        records: [consumed(ids[2])],
        redeliveries: [again(ids[2])],
        redelivered: [ids[1] ?? ""],
      };
      const settlement = billing.settlement(work);
      const place = { ...PLACE, instance: billing.owner };
      for (const [why, owner, changes] of [
        ["another owner", "somebody-else", {}],
        ["an older epoch", billing.owner, { epoch: String(Number(settlement.epoch) - 1) }],
        ["a newer epoch", billing.owner, { epoch: nextVersion(settlement.epoch) }],
        ["another place", billing.owner, { fromId: ids[0] ?? "" }],
        ["a partition that is not there", billing.owner, { partition: 7 }],
      ] as const) {
        const settled = await billing.consumption.settle(owner, { ...settlement, ...changes }, place);
        assert.equal(settled, false, why);
        assert.deepEqual(await all(context), before, why);
      }
      assert.equal(await billing.settle(work), true, "its own is written");
    },
  },
  {
    name: "fence: without a new progress another owner or another epoch writes nothing either",
    async run(context) {
      const { ids, billing } = await twoMessages(context);
      const before = await all(context);
      const settlement = billing.settlement({ redelivered: [ids[1] ?? ""] });
      const place = { ...PLACE, instance: billing.owner };
      assert.equal(await billing.consumption.settle("somebody-else", settlement, place), false);
      assert.equal(await billing.settle({ ...settlement, epoch: String(Number(settlement.epoch) - 1) }), false);
      assert.deepEqual(await all(context), before);
    },
  },
  {
    name: "fence: a member whose partition was taken over writes nothing any more",
    async run(context) {
      const [id] = await context.append([{}]);
      const slow = await context.member();
      const quick = await context.member({ instance: context.other });
      const work = { nextId: after(id), records: [consumed(id)] };
      assert.equal(await slow.settle(work), false);
      assert.deepEqual(await all(context), ["0", [], []]);
      assert.equal(await quick.settle(work), true);
    },
  },
  {
    name: "fence: one whose partition came back to it writes nothing of before",
    async run(context) {
      const [id] = await context.append([{}]);
      const before = await context.member({ owner: "comes-back" });
      await context.member();
      const now = await context.member({ owner: "comes-back" });
      const work = { nextId: after(id) };
      assert.equal(await before.settle(work), false);
      assert.equal(await now.settle(work), true);
    },
  },
  {
    name: "fence: a settleIn that is fenced out says so",
    async run(context) {
      const [id] = await context.append([{}]);
      const slow = await context.member();
      await context.member();
      const work: Settled = { nextId: after(id), records: [consumed(id)] };
      const settled = await context.database.transaction((tx) => slow.settleIn(tx, work));
      assert.equal(settled, false);
      assert.equal(await placeOf(context), "0");
    },
  },
  {
    name: "fence: a takeover waits for a settle under way, and begins behind it",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const [id] = await context.append([{}]);
      const slow = await context.member();
      let taking: Promise<Member> | undefined;
      await context.database.transaction(async (tx) => {
        assert.equal(await slow.settleIn(tx, { nextId: after(id), records: [consumed(id)] }), true);
        let ended = false;
        taking = context.member({ instance: context.other });
        void taking
          .catch(() => undefined)
          .finally(() => {
            ended = true;
          });
        await context.waiting(1, () => ended);
        assert.equal(ended, false, "it waits");
      });
      const quick = await taking;
      assert.equal(await placeOf(context), after(id));
      assert.equal(await slow.settle({ fromId: after(id), nextId: after(after(id)) }), false);
      assert.equal(await quick?.settle({ fromId: after(id), nextId: after(after(id)) }), true);
    },
  },
  {
    name: "fence: the settle of one partition keeps nobody waiting in another",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const ids = await context.append([{}, { partition: 1 }]);
      const billing = await context.member();
      await context.database.transaction(async (tx) => {
        await billing.settleIn(tx, { nextId: after(ids[0]), records: [consumed(ids[0])] });
        let ended = false;
        const beside = billing.settle({ partition: 1, nextId: after(ids[1]), records: [consumed(ids[1])] });
        void beside
          .catch(() => undefined)
          .finally(() => {
            ended = true;
          });
        await until("the other partition is free", () => ended, { withinMs: 4_000 });
        assert.equal(await beside, true);
      });
    },
  },
  {
    name: "fence: what may have been written already is written once, and not refused",
    async run(context) {
      const [id] = await context.append([{}]);
      const billing = await context.member();
      const work = { nextId: after(id), records: [consumed(id)], redeliveries: [again(id)] };
      assert.equal(await billing.settle({ ...work, mayBeWritten: true }), true, "it was not");
      const before = await all(context);
      assert.equal(await billing.settle(work), false, "a plain settle is refused then");
      assert.equal(await billing.settle({ ...work, mayBeWritten: true }), true, "it was");
      const [place, records, redeliveries] = await all(context);
      assert.deepEqual([place, records], before.slice(0, 2));
      assert.equal((redeliveries as unknown[]).length, 1);
    },
  },
  {
    name: "fence: a redelivery that somebody has taken out meanwhile lets nothing of the settle be written",
    async run(context) {
      const { ids, billing } = await twoMessages(context);
      const by = { topic: context.topic, group: "billing" };
      const note = { author: "ann", reason: "x", ip: null };
      await context.groups.remove(by, 0, { ids: [ids[1] ?? ""], from: "waiting or dead", result: "skipped", note });
      const before = await all(context);
      for (const work of [
        { redelivered: [ids[1] ?? ""] },
        { redeliveries: [again(ids[1], { attempt: 2, again: true })] },
      ]) {
        const records = [consumed(ids[2])];
        assert.equal(await billing.settle({ fromId: ids[2] ?? "", nextId: after(ids[2]), records, ...work }), false);
        assert.deepEqual(await all(context), before);
      }
    },
  },
  {
    name: "fence: a redelivery is changed only as it was when it was taken: one attempt less, and waiting",
    async run(context) {
      const { ids, billing } = await twoMessages(context);
      const change = (attempt: number): Settled => ({ redeliveries: [again(ids[1], { attempt, again: true })] });
      assert.equal(await billing.settle(change(3)), false, "two attempts later");
      assert.equal(await billing.settle(change(2)), true);
      assert.equal(await billing.settle(change(2)), false, "a second time");
      await billing.settle({ redeliveries: [again(ids[1], { attempt: 3, again: true, state: "dead" })] });
      assert.equal(await billing.settle(change(4)), false, "a dead letter");
      const [found] = await redeliveriesOf(context);
      assert.deepEqual([found?.state, found?.attempt], ["dead", 3]);
    },
  },
];
