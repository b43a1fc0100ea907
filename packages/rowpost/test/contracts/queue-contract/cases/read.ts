/** Reading for a group: ranges, single ids, and what the counters say. */
import assert from "node:assert/strict";
import { infoTable } from "../../../../src/databases/sql/queue/names.ts";
import type { QueueContractCase } from "../case.ts";
import { oldId } from "../old-months.ts";

const OLD = 202501;

export const readCases: readonly QueueContractCase[] = [
  {
    name: "read: brings a range of one partition in the order of the ids, with both of its ends",
    async run({ putOld, consumption }) {
      const ids = await putOld(
        OLD,
        Array.from({ length: 12 }, (_, n) => ({ partition: n % 2, body: String(n) })),
      );
      const request = { month: OLD, partition: 0, fromId: ids[2] ?? "", toId: ids[8] ?? "", limit: 100 };
      const found = await consumption("billing").read(request);
      assert.deepEqual(
        found?.map(({ id, partition, body }) => [id, partition, body]),
        [2, 4, 6, 8].map((n) => [ids[n], 0, String(n)]),
      );
    },
  },
  {
    name: "read: brings no more than the limit, the oldest first",
    async run({ putOld, consumption }) {
      const ids = await putOld(OLD, [{}, {}, {}, {}]);
      const request = { month: OLD, partition: 0, fromId: "0", toId: ids[3] ?? "", limit: 2 };
      const found = await consumption("billing").read(request);
      assert.deepEqual(
        found?.map(({ id }) => id),
        ids.slice(0, 2),
      );
    },
  },
  {
    name: "read: leaves out bodies of more bytes than it is told, and says how many they have",
    async run({ putOld, consumption }) {
      const bodies = ["12345", "中文", "123456", "1"];
      const ids = await putOld(
        OLD,
        bodies.map((body) => ({ body })),
      );
      const request = { month: OLD, partition: 0, fromId: "0", toId: ids[3] ?? "", limit: 100 };
      const found = await consumption("billing").read({ ...request, bodyLimit: 5 });
      assert.deepEqual(
        found?.map(({ body, leftOutBytes }) => [body, leftOutBytes]),
        [
          ["12345", undefined],
          ["", 6],
          ["", 6],
          ["1", undefined],
        ],
      );
    },
  },
  {
    name: "read: a month without a table is told apart from one without messages",
    async run({ store, topic, consumption }) {
      await store.topics.makeMonths(topic, [OLD]);
      const billing = consumption("billing");
      const request = { partition: 0, fromId: "0", toId: oldId(OLD, 9), limit: 10 };
      assert.deepEqual(await billing.read({ ...request, month: OLD }), []);
      assert.equal(await billing.read({ ...request, month: 202412 }), undefined);
    },
  },
  {
    name: "read: single ids come in their order, over months, without those of months that are gone",
    async run({ putOld, consumption, sql, topic }) {
      const gone = await putOld(202412, [{}]);
      await sql(`DROP TABLE ${infoTable(topic, 202412)}`);
      const first = await putOld(OLD, [{}, { partition: 1 }, {}]);
      const second = await putOld(202502, [{}, {}]);
      const wanted = [first[0], first[1], first[2], second[1]].map(String);
      const found = await consumption("billing").readIds([...gone, ...wanted]);
      assert.deepEqual(
        found.map(({ id }) => id),
        wanted,
      );
      assert.deepEqual(await consumption("billing").readIds([oldId(OLD, 77)]), [], "no such message");
    },
  },
  {
    name: "counters: tell the last id of each partition, and whether the group is paused",
    async run({ append, consumption, member, groups, topic }) {
      const ids = await append([{}, { partition: 1 }, {}]);
      await member();
      const billing = consumption("billing");
      const expected = new Map([
        [0, ids[2]],
        [1, ids[1]],
      ]);
      assert.deepEqual(await billing.counters(), { lastIds: expected, paused: false });
      await groups.setPause({ topic, group: "billing" }, { author: "ann", reason: "x" });
      assert.deepEqual(await billing.counters(), { lastIds: expected, paused: true });
      assert.equal((await consumption("other").counters()).paused, false, "another group is not");
    },
  },
  {
    name: "counters: a partition without messages has the id 0 of its own",
    async run({ consumption }) {
      const { lastIds } = await consumption("billing").counters();
      assert.deepEqual([lastIds.get(0), lastIds.get(1)], ["0", "1"]);
    },
  },
];
