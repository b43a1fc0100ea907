/** What a settle writes: progress, records and redeliveries, in one transaction. */
import assert from "node:assert/strict";
import { infoTable, recordTable } from "../../../../src/databases/sql/queue/names.ts";
import { MEMBER_SILENT } from "../../../../src/message/member-silent.ts";
import { DatabaseConflictError } from "../../../../src/runtime/errors.ts";
import type { QueueContractCase } from "../case.ts";
import { ChangedMind } from "../context.ts";
import { after, again, consumed, PLACE } from "../member.ts";
import { placeOf, recordsOf, redeliveriesOf } from "../written.ts";

const OLD = 202501;

export const settleCases: readonly QueueContractCase[] = [
  {
    name: "settle: moves the progress of its partition, and writes a record of each attempt",
    async run(context) {
      const ids = await context.append([{ key: "订单" }, {}, {}, { partition: 1 }]);
      const billing = await context.member();
      const settled = await billing.settle({
        nextId: after(ids[2]),
        records: [
          consumed(ids[0], { key: "订单" }),
          consumed(ids[1], { result: "failed", error: "TypeError: 中文" }),
          consumed(ids[2], { result: "dead", attempt: 8, error: "no stock" }),
        ],
      });
      assert.equal(settled, true);
      assert.deepEqual([await placeOf(context), await placeOf(context, "billing", 1)], [after(ids[2]), "0"]);
      const records = await recordsOf(context);
      assert.deepEqual(
        records.map(({ id, attempt, result }) => [id, attempt, result]),
        [
          [ids[0], 1, 0],
          [ids[1], 1, 1],
          [ids[2], 8, 2],
        ],
      );
      const detail = await context.searching.detail(context.topic, ids[1] ?? "");
      assert.ok(detail !== undefined && "entries" in detail);
      const [first] = detail.entries;
      assert.ok(first !== undefined);
      const { at, ...entry } = first;
      const { ip, port } = PLACE;
      assert.deepEqual(entry, {
        group: "billing",
        round: 0,
        attempt: 1,
        result: "failed",
        durationMs: 5,
        error: "TypeError: 中文",
        ip,
        port,
        instance: billing.owner,
        batch: undefined,
      });
      assert.ok(Math.abs(Date.parse(at) - (await context.groups.nowMs())) < 60_000, at);
    },
  },
  {
    name: "settle: the end of an attempt takes the place of its begin, and a group finds its own of a round",
    async run(context) {
      const ids = await context.append([{}, {}, {}, {}]);
      const billing = await context.member();
      const audit = await context.member({ group: "audit" });
      const silent = consumed(ids[1], { result: "failed", error: `${MEMBER_SILENT}: it died` });
      await billing.settle({ records: [consumed(ids[0], { result: "failed", error: "no stock" }), silent] });
      await audit.settle({ records: [consumed(ids[2])] });
      const found = async (group: string, round = 0) =>
        (await context.consumption(group).recorded(round, ids))
          .map(({ id, attempt, isSilent }) => [ids.indexOf(id), attempt, isSilent] as const)
          .toSorted(([left], [right]) => left - right);
      assert.deepEqual(await found("billing"), [
        [0, 1, false],
        [1, 1, true],
      ]);
      assert.deepEqual([await found("audit"), await found("billing", 1)], [[[2, 1, false]], []]);
      await billing.settle({ records: [consumed(ids[1], { durationMs: 7 })] });
      const [, record] = await recordsOf(context);
      assert.deepEqual([record?.result, record?.attempt], [0, 1]);
      assert.deepEqual((await found("billing"))[1], [1, 1, false]);
    },
  },
  {
    name: "settle: one record may be about all messages from one to another",
    async run(context) {
      const ids = await context.append([{}, {}, {}]);
      const billing = await context.member();
      const batch = consumed(ids[0], { lastId: ids[2] ?? "", messages: 3 });
      assert.equal(await billing.settle({ nextId: after(ids[2]), records: [batch] }), true);
      assert.deepEqual(
        (await recordsOf(context)).map(({ id, lastId, messages }) => [id, lastId, messages]),
        [[ids[0], ids[2], 3]],
      );
    },
  },
  {
    name: "settle: puts what the group gets again, and takes out what it has consumed at last",
    async run(context) {
      const ids = await context.append([{}, {}, {}]);
      const billing = await context.member();
      const redeliveries = [
        again(ids[0]),
        again(ids[1], { state: "dead", attempt: 8, failReason: "原因 🙂" }),
        again(ids[2], { attempt: 0, dueInMs: 3_600_000, failReason: null, orderingKey: "k" }),
      ];
      assert.equal(await billing.settle({ nextId: after(ids[2]), redeliveries }), true);
      assert.deepEqual(
        (await redeliveriesOf(context)).map((each) => [
          ...[each.id, each.partition, each.state, each.attempt],
          ...[each.failReason, each.orderingKey],
        ]),
        [
          [ids[0], 0, "waiting", 1, "BUSY", null],
          [ids[1], 0, "dead", 8, "原因 🙂", null],
          [ids[2], 0, "waiting", 0, null, "k"],
        ],
      );
      assert.equal(await billing.settle({ redelivered: [ids[0] ?? "", ids[2] ?? ""] }), true);
      assert.deepEqual(
        (await redeliveriesOf(context)).map(({ id }) => id),
        [ids[1]],
      );
    },
  },
  {
    name: "settle: without a new progress it stays where it is, wherever that is",
    async run(context) {
      const ids = await context.append([{}, {}]);
      const billing = await context.member();
      await billing.settle({ nextId: ids[1] });
      assert.equal(await billing.settle({ fromId: "77", records: [consumed(ids[0])] }), true);
      assert.equal(await placeOf(context), ids[1]);
      assert.equal((await recordsOf(context)).length, 1);
    },
  },
  {
    name: "settle: records go to the tables of their messages' months",
    async run(context) {
      const [old] = await context.putOld(OLD, [{}]);
      const [fresh] = await context.append([{}]);
      const billing = await context.member();
      await billing.settle({ nextId: after(fresh), records: [consumed(old), consumed(fresh)] });
      assert.deepEqual(
        (await recordsOf(context, OLD)).map(({ id }) => id),
        [old],
      );
      assert.deepEqual(
        (await recordsOf(context)).map(({ id }) => id),
        [fresh],
      );
    },
  },
  {
    name: "settle: records of a month whose tables are gone are left out, and the rest is written",
    async run(context) {
      const { putOld, append, member, sql, topic } = context;
      const [old] = await putOld(OLD, [{}]);
      const [fresh] = await append([{}]);
      const billing = await member();
      for (const table of [infoTable(topic, OLD), recordTable(topic, OLD)]) await sql(`DROP TABLE ${table}`);
      const records = [consumed(old), consumed(fresh)];
      assert.equal(await billing.settle({ nextId: after(fresh), records }), true);
      assert.equal(await placeOf(context), after(fresh));
      assert.equal((await recordsOf(context)).length, 1);
    },
  },
  {
    name: "settleIn: is part of the caller's transaction, and rolls back with it",
    async run(context) {
      const { append, member, database } = context;
      const [id] = await append([{}]);
      const billing = await member();
      const work = { nextId: after(id), records: [consumed(id)], redeliveries: [again(id)] };
      const lost = database.transaction(async (tx) => {
        assert.equal(await billing.settleIn(tx, work), true);
        throw new ChangedMind();
      });
      await assert.rejects(lost, ChangedMind);
      assert.deepEqual(
        [await placeOf(context), await recordsOf(context), await redeliveriesOf(context)],
        ["0", [], []],
      );
      await database.transaction((tx) => billing.settleIn(tx, work));
      assert.equal(await placeOf(context), after(id));
      assert.deepEqual([(await recordsOf(context)).length, (await redeliveriesOf(context)).length], [1, 1]);
    },
  },
  {
    name: "settleIn: a month that was dropped meanwhile is a conflict, and no longer one at the next try",
    async run(context) {
      const { putOld, member, database, sql, topic } = context;
      const [old] = await putOld(OLD, [{}]);
      const billing = await member();
      for (const table of [infoTable(topic, OLD), recordTable(topic, OLD)]) await sql(`DROP TABLE ${table}`);
      const work = { nextId: after(old), records: [consumed(old)] };
      await assert.rejects(
        database.transaction((tx) => billing.settleIn(tx, work)),
        DatabaseConflictError,
      );
      assert.equal(await placeOf(context), "0");
      assert.equal(await database.transaction((tx) => billing.settleIn(tx, work)), true);
      assert.equal(await placeOf(context), after(old));
    },
  },
];
