/** Rewinds: taking one back, redeliveries that come again anyway, and months that were dropped. */
import assert from "node:assert/strict";
import { firstIdOf } from "../../../../src/message/queue-id.ts";
import type { QueueContractCase } from "../case.ts";
import { after, again } from "../member.ts";
import { placeOf, redeliveriesOf } from "../written.ts";
import { dropping } from "./retention.ts";
import { hasRead, rewinding, rewound } from "./rewind.ts";

export const rewindRedeliveryCases: readonly QueueContractCase[] = [
  {
    name: "undo: takes the last rewind back, once",
    async run(context) {
      const { ids } = await hasRead(context);
      const undo = rewinding(context, { kind: "undo" });
      assert.deepEqual(await context.rewinding.rewind(undo), { refused: "nothing to undo" });
      await rewound(context, rewinding(context, { kind: "id", id: ids[1] ?? "" }));
      await rewound(context, undo);
      assert.equal(await placeOf(context), after(ids[5]));
      const [entry] = await context.rewinding.log({ topic: context.topic, group: "billing" }, 1);
      assert.deepEqual([entry?.rewind, entry?.undoOf], [2, 1]);
      assert.deepEqual(await context.rewinding.rewind(undo), { refused: "nothing to undo" });
    },
  },
  {
    name: "undo: what has been replayed already is not passed over again, nor replayed once more",
    async run(context) {
      const { ids } = await hasRead(context);
      await rewound(context, rewinding(context, { kind: "id", id: ids[3] ?? "" }, { partitions: [0] }));
      const further = await context.append([{}]);
      const next = await context.member();
      await next.settle({ fromId: ids[3] ?? "", nextId: after(further[0]), round: 1 });
      await rewound(context, rewinding(context, { kind: "undo" }));
      assert.equal(await placeOf(context), after(further[0]));
    },
  },
  {
    name: "rewind: redeliveries behind the new place are set aside, and those before it stay",
    async run(context) {
      const { ids, billing } = await hasRead(context);
      const redeliveries = [again(ids[1]), again(ids[3]), again(ids[4], { state: "dead" })];
      await billing.settle({ redeliveries });
      const done = await rewound(context, rewinding(context, { kind: "id", id: ids[3] ?? "" }));
      assert.deepEqual([done.setAside, done.restored], [2, 0]);
      assert.deepEqual(
        (await redeliveriesOf(context)).map(({ id, state }) => [id, state]),
        [
          [ids[1], "waiting"],
          [ids[3], "aside"],
          [ids[4], "aside"],
        ],
      );
      assert.deepEqual(
        (await billing.consumption.due(0, 10)).map(({ id }) => id),
        [ids[1]],
      );
    },
  },
  {
    name: "rewind: what was set aside and is not replayed after all is there again, as it was",
    async run(context) {
      const { ids, billing } = await hasRead(context);
      await billing.settle({ redeliveries: [again(ids[3]), again(ids[4], { state: "dead", attempt: 8 })] });
      await rewound(context, rewinding(context, { kind: "id", id: ids[3] ?? "" }));
      const done = await rewound(context, rewinding(context, { kind: "undo" }));
      assert.deepEqual([done.setAside, done.restored], [0, 2]);
      assert.deepEqual(
        (await redeliveriesOf(context)).map(({ id, state, attempt }) => [id, state, attempt]),
        [
          [ids[3], "waiting", 1],
          [ids[4], "dead", 8],
        ],
      );
    },
  },
  {
    name: "rewind: what was set aside and has been replayed is forgotten by the next rewind",
    async run(context) {
      const { ids, billing } = await hasRead(context);
      await billing.settle({ redeliveries: [again(ids[3])] });
      await rewound(context, rewinding(context, { kind: "id", id: ids[3] ?? "" }));
      const next = await context.member();
      await next.settle({ fromId: ids[3] ?? "", nextId: ids[5], round: 1 });
      const done = await rewound(context, rewinding(context, { kind: "end" }));
      assert.equal(done.restored, 0);
      assert.deepEqual(await redeliveriesOf(context), []);
    },
  },
  {
    name: "rewind: over dropped months is refused with their names, unless that is wanted",
    async run(context) {
      const { ids } = await hasRead(context);
      await dropping(context, 202501);
      const before = rewinding(context, { kind: "id", id: ids[1] ?? "" });
      assert.deepEqual(await context.rewinding.rewind(before), { refused: "dropped months", months: [202501] });
      assert.deepEqual(await context.rewinding.plan(before), { refused: "dropped months", months: [202501] });
      assert.equal(await placeOf(context), after(ids[5]));
      const done = await rewound(context, { ...before, overDroppedMonths: true });
      assert.deepEqual(done.droppedMonths, [202501]);
      assert.equal(await placeOf(context), firstIdOf(202502), "the first month that is there");
    },
  },
  {
    name: "rewind: to the start begins at the first month that is there",
    async run(context) {
      await hasRead(context);
      await dropping(context, 202501);
      await rewound(context, rewinding(context, { kind: "start" }));
      assert.equal(await placeOf(context), firstIdOf(202502));
    },
  },
];
