/** What the detector of lost messages reads. */
import assert from "node:assert/strict";
import type { QueueContractCase } from "../case.ts";
import { after, again, consumed } from "../member.ts";
import { dropping } from "./retention.ts";
import { rewinding, rewound } from "./rewind.ts";

const OLD = 202501;

export const verifyCases: readonly QueueContractCase[] = [
  {
    name: "verify: each group tells where it began, where it is, and its round",
    async run(context) {
      const { append, member, verifying, topic } = context;
      const ids = await append([{}, {}]);
      const billing = await member({ start: { id: ids[1] ?? "" } });
      await billing.settle({ fromId: ids[1] ?? "", nextId: after(ids[1]) });
      await rewound(context, rewinding(context, { kind: "id", id: ids[0] ?? "" }, { partitions: [0] }));
      const found = await verifying.groups(topic);
      assert.deepEqual(
        found.toSorted((left, right) => left.partition - right.partition),
        [
          { group: "billing", partition: 0, beginId: ids[1], nextId: ids[0], round: 1 },
          { group: "billing", partition: 1, beginId: ids[1], nextId: ids[1], round: 0 },
        ],
      );
    },
  },
  {
    name: "verify: months that are being dropped are none of its months",
    async run(context) {
      await context.putOld(OLD, [{}]);
      await context.putOld(202502, [{}]);
      const months = await context.verifying.months(context.topic);
      assert.deepEqual(months.slice(0, 2), [OLD, 202502]);
      const request = { topic: context.topic, month: 202502, owner: "d", author: "a", reason: "r", force: false };
      await context.retention.begin(request);
      await dropping(context, OLD);
      assert.deepEqual(
        (await context.verifying.months(context.topic)).filter((month) => month < 202600),
        [],
      );
    },
  },
  {
    name: "verify: a range of messages tells the records of each, and what comes again",
    async run(context) {
      const { putOld, member, verifying, topic } = context;
      const ids = await putOld(OLD, [{}, {}, {}, { partition: 1 }, {}, {}, {}]);
      const billing = await member();
      const audit = await member({ group: "audit" });
      await billing.settle({
        nextId: after(ids[6]),
        records: [
          consumed(ids[0], { result: "failed" }),
          consumed(ids[0], { attempt: 2 }),
          consumed(ids[1], { lastId: ids[4] ?? "", messages: 3 }),
          // By hand, before any attempt: no outcome.
          consumed(ids[6], { result: "redelivered", attempt: -1 }),
        ],
        redeliveries: [again(ids[5], { state: "dead" })],
      });
      await audit.settle({ nextId: after(ids[6]), records: [consumed(ids[6])], redeliveries: [again(ids[6])] });
      const range = { topic, group: "billing", month: OLD, partition: 0, fromId: ids[0] ?? "", toId: ids[6] ?? "" };
      const chunk = await verifying.chunk({ ...range, limit: 100 });
      const own = { round: 0, batch: undefined };
      const batch = { round: 0, batch: { lastId: ids[4], messages: 3 } };
      assert.deepEqual(
        chunk.map(({ id, records, again: comesAgain }) => [
          id,
          new Set(records.map((each) => JSON.stringify(each))),
          comesAgain,
        ]),
        [
          [ids[0], new Set([JSON.stringify(own)]), false],
          [ids[1], new Set([JSON.stringify(batch)]), false],
          [ids[2], new Set(), false],
          [ids[4], new Set(), false],
          [ids[5], new Set(), true],
          [ids[6], new Set(), false],
        ],
      );
      const some = await verifying.chunk({ ...range, fromId: ids[1] ?? "", toId: ids[5] ?? "", limit: 2 });
      assert.deepEqual(
        some.map(({ id }) => id),
        [ids[1], ids[2]],
        "from its first id on, no more than the limit",
      );
      const short = await verifying.chunk({ ...range, toId: ids[2] ?? "", limit: 100 });
      assert.equal(short.length, 3, "up to its last id");
    },
  },
  {
    name: "verify: the message so many places before is found, where there are as many",
    async run({ putOld, verifying, topic }) {
      const ids = await putOld(OLD, [{}, {}, { partition: 1 }, {}, {}]);
      const at = { topic, month: OLD, partition: 0, fromId: ids[4] ?? "" };
      assert.equal(await verifying.before({ ...at, places: 1 }), ids[3]);
      assert.equal(await verifying.before({ ...at, places: 2 }), ids[1]);
      assert.equal(await verifying.before({ ...at, places: 4 }), undefined);
    },
  },
];
