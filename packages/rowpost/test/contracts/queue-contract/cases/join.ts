/** Where a group begins, and how far it is. */
import assert from "node:assert/strict";
import type { Progress } from "../../../../src/queue/store.ts";
import type { QueueContractCase } from "../case.ts";
import { after, nextOfPartition } from "../member.ts";

/** Where it stands, in order of the partitions. */
function places(progress: readonly Progress[]): (readonly [number, string])[] {
  return progress.map(({ partition, nextId }) => [partition, nextId] as const).sort(([left], [right]) => left - right);
}

export const joinCases: readonly QueueContractCase[] = [
  {
    name: "join: a new group begins at the start, at the end, or at an id",
    async run({ append, consumption }) {
      const ids = await append([{}, { partition: 1 }, {}]);
      const expected = {
        start: ["0", "0"],
        end: [nextOfPartition(ids[2]), nextOfPartition(ids[1])],
        id: [ids[2], ids[2]],
      };
      for (const [name, [zero = "", one = ""]] of Object.entries(expected)) {
        const group = consumption(name);
        await group.join(name === "id" ? { id: ids[2] ?? "" } : (name as "start" | "end"));
        assert.deepEqual(places(await group.progress([0, 1])), [
          [0, zero],
          [1, one],
        ]);
      }
    },
  },
  {
    name: "join: a group that is known stays where it is, and begins a new partition at its start",
    async run({ append, member, store, topic, consumption }) {
      const ids = await append([{}]);
      const billing = await member();
      assert.equal(await billing.settle({ nextId: after(ids[0]) }), true);
      await store.topics.alter({ topic, partitions: 3, retentionMonths: null });
      await append([{ partition: 2 }], { keyedPartitions: 2 }).catch(() => undefined);
      const second = consumption("billing");
      await second.join("end");
      assert.deepEqual(places(await second.progress([0, 1, 2])), [
        [0, after(ids[0])],
        [1, "0"],
        [2, "0"],
      ]);
    },
  },
  {
    name: "join: members that join at once make the group's rows once",
    needs: ["instances"],
    async run({ consumption, other }) {
      const both = [consumption("billing"), consumption("billing", other)];
      await Promise.all(both.map((each) => each.join("start")));
      for (const each of both) {
        assert.deepEqual(places(await each.progress([0, 1])), [
          [0, "0"],
          [1, "0"],
        ]);
      }
    },
  },
  {
    name: "join: groups are apart, also when their names differ in case alone",
    async run({ append, member, consumption }) {
      const ids = await append([{}]);
      const billing = await member();
      const upper = consumption("Billing");
      await upper.join("start");
      assert.equal(await billing.settle({ nextId: after(ids[0]) }), true);
      assert.deepEqual(places(await upper.progress([0])), [[0, "0"]]);
    },
  },
  {
    name: "progress: is told of the partitions that were asked for, with round and epoch",
    async run({ member }) {
      const { consumption } = await member();
      assert.deepEqual(await consumption.progress([1]), [{ partition: 1, nextId: "0", round: 0, epoch: "1" }]);
      assert.deepEqual(await consumption.progress([]), []);
    },
  },
];
