/** Dropping months: who still needs one, who is at it, and what is left of it. */
import assert from "node:assert/strict";
import { recordTable } from "../../../../src/databases/sql/queue/names.ts";
import type { ArchiveRow, DropRequest } from "../../../../src/queue/retention/requests.ts";
import type { QueueContractCase } from "../case.ts";
import type { QueueCaseContext } from "../context.ts";
import { after, again, consumed } from "../member.ts";
import { redeliveriesOf } from "../written.ts";

const OLD = 202501;
let droppers = 0;

/** A call that drops the month; changes replace parts of it. */
function request({ topic }: QueueCaseContext, changes: Partial<DropRequest> = {}): DropRequest {
  droppers += 1;
  const who = { owner: `dropper-${droppers}`, author: "王", reason: "no room" };
  return { topic, month: OLD, force: false, ...who, ...changes };
}

/** Drops a month, whoever needs it, as `queue.dropMonth` does. */
export async function dropping(context: QueueCaseContext, month: number): Promise<{ readonly redeliveries: number }> {
  const { retention, topic } = context;
  const call = request(context, { month, force: true });
  assert.deepEqual(await retention.begin(call), { begun: true, isThere: true });
  assert.equal(await retention.touch(call, await retention.count(topic, month), "/archive/x.gz"), true);
  assert.equal(await retention.drop(topic, month), undefined);
  return await retention.finish(call);
}

/** Makes the mark as old as one that nobody is at any more. */
async function silence({ sql, dialect, topic }: QueueCaseContext): Promise<void> {
  await sql(`UPDATE message_dropped_month SET gmt_modified = ${dialect.ownAt(-120_000)} WHERE topic_id = '${topic}'`);
}

export const retentionCases: readonly QueueContractCase[] = [
  {
    name: "retention: a month that groups have not read, or get messages of again, is refused with their names",
    async run(context) {
      const ids = await context.putOld(OLD, [{}, {}, { partition: 1 }]);
      const billing = await context.member();
      const audit = await context.member({ group: "audit" });
      await billing.settle({ nextId: ids[1] });
      await audit.settle({ nextId: after(ids[1]), redeliveries: [again(ids[0]), again(ids[1], { state: "dead" })] });
      await audit.settle({ partition: 1, nextId: after(ids[2]) });
      const groups = [
        { group: "audit", partitions: [], waiting: 1 },
        {
          group: "billing",
          partitions: [
            { partition: 0, nextId: ids[1] },
            { partition: 1, nextId: "0" },
          ],
          waiting: 0,
        },
      ];
      const answer = await context.retention.begin(request(context));
      assert.ok("refused" in answer && answer.refused === "needed");
      const found = answer.groups.toSorted((left, right) => (left.group < right.group ? -1 : 1));
      assert.deepEqual(found, groups);
      assert.ok((await context.store.topics.months(context.topic)).includes(OLD));
      const forced = await context.retention.begin(request(context, { force: true }));
      assert.deepEqual(forced, { begun: true, isThere: true });
    },
  },
  {
    name: "retention: a month that everybody has read may be dropped, dead letters or not",
    async run(context) {
      const ids = await context.putOld(OLD, [{}]);
      const billing = await context.member();
      await billing.settle({ nextId: after(ids[0]), redeliveries: [again(ids[0], { state: "dead" })] });
      assert.deepEqual(await context.retention.begin(request(context)), { begun: true, isThere: true });
    },
  },
  {
    name: "retention: the current month is refused, and so is one that there is not",
    async run(context) {
      const { retention, month } = context;
      const current = await retention.begin(request(context, { month, force: true }));
      assert.deepEqual(current, { refused: "not over", currentMonth: month });
      assert.deepEqual(await retention.begin(request(context)), { refused: "no such month" });
    },
  },
  {
    name: "retention: while somebody is at a month it is refused to others, until he is silent or releases it",
    async run(context) {
      const { retention, putOld } = context;
      await putOld(OLD, [{}]);
      const [first, second, third] = [request(context), request(context), request(context)];
      await retention.begin(first);
      assert.deepEqual(await retention.begin(second), { refused: "busy" });
      assert.equal(await retention.touch(first), true);
      await silence(context);
      assert.deepEqual(await retention.begin(second), { begun: true, isThere: true });
      assert.equal(await retention.touch(first), false, "the second one has taken over");
      await retention.release(first);
      assert.deepEqual(await retention.begin(third), { refused: "busy" }, "it is not the first one's to release");
      await retention.release(second);
      assert.deepEqual(await retention.begin(third), { begun: true, isThere: true });
    },
  },
  {
    name: "retention: a month that is marked is closed for rewinds and searches",
    async run(context) {
      const { retention, putOld, member, rewinding, searching, topic } = context;
      const ids = await putOld(OLD, [{}]);
      const billing = await member();
      await billing.settle({ nextId: after(ids[0]) });
      await billing.settle({ partition: 1, nextId: after(ids[0]) });
      await retention.begin(request(context));
      const who = { partitions: undefined, expected: undefined, author: "ann", reason: "x" };
      const target = { kind: "id", id: ids[0] ?? "" } as const;
      const plan = { topic, group: "billing", target, overDroppedMonths: false, ...who };
      assert.deepEqual(await rewinding.rewind(plan), { refused: "dropped months", months: [OLD] });
      const found = await searching.detail(topic, ids[0] ?? "");
      assert.ok(found !== undefined && "droppedAt" in found, "it is told as dropped");
    },
  },
  {
    name: "retention: a mark that is taken back leaves the month as it was",
    async run(context) {
      const { retention, putOld, searching, topic } = context;
      const ids = await putOld(OLD, [{}]);
      const call = request(context);
      await retention.begin(call);
      await retention.takeBack(request(context));
      assert.equal(await retention.touch(call), true, "somebody else cannot take it back");
      await retention.takeBack(call);
      const detail = await searching.detail(topic, ids[0] ?? "");
      assert.ok(detail !== undefined && "message" in detail);
      assert.deepEqual(await retention.begin(request(context)), { begun: true, isThere: true });
    },
  },
  {
    name: "retention: dropping takes the tables and what would come again of them, and keeps other months",
    async run(context) {
      const { putOld, member, store, topic, consumption } = context;
      const ids = await putOld(OLD, [{}, {}]);
      const later = await putOld(202502, [{}]);
      const billing = await member();
      const redeliveries = [again(ids[0]), again(ids[1], { state: "dead" }), again(later[0])];
      await billing.settle({ nextId: after(later[0]), redeliveries });
      assert.deepEqual(await dropping(context, OLD), { redeliveries: 2 });
      assert.deepEqual((await store.topics.months(topic))[0], 202502);
      assert.deepEqual(
        (await redeliveriesOf(context)).map(({ id }) => id),
        later,
      );
      const read = { month: OLD, partition: 0, fromId: "0", toId: later[0] ?? "", limit: 10 };
      assert.equal(await consumption("billing").read(read), undefined);
      await assert.rejects(context.sql(`SELECT 1 FROM ${recordTable(topic, OLD)}`));
      assert.deepEqual(await context.retention.begin(request(context)), { refused: "gone" });
    },
  },
  {
    name: "retention: whoever goes on behind a call that died after the drop finds the tables gone",
    async run(context) {
      const { retention, putOld, topic } = context;
      await putOld(OLD, [{}]);
      await retention.begin(request(context));
      assert.equal(await retention.drop(topic, OLD), undefined);
      assert.equal(await retention.drop(topic, OLD), undefined, "a second time");
      await silence(context);
      const second = request(context);
      assert.deepEqual(await retention.begin(second), { begun: true, isThere: false });
      await retention.finish(second);
      assert.deepEqual(await retention.begin(request(context)), { refused: "gone" });
    },
  },
  {
    name: "retention: all rows of a month are counted, and come in order, whole",
    async run(context) {
      const { retention, putOld, member, topic } = context;
      const ids = await putOld(
        OLD,
        Array.from({ length: 1_101 }, (_, n) => ({ partition: n % 2, key: `键${n}`, body: `"${n}"` })),
      );
      const billing = await member();
      const own = ids.filter((_id, n) => n % 2 === 0);
      const records = own.flatMap((id) => [1, 2].map((attempt) => consumed(id, { attempt, key: "键" })));
      await billing.settle({ nextId: after(ids.at(-1)), records });
      assert.deepEqual(await retention.count(topic, OLD), { messages: 1_101, records: 1_102 });
      const read = async (of: "messages" | "records"): Promise<ArchiveRow[]> => {
        const rows: ArchiveRow[] = [];
        for await (const some of retention.rows(topic, OLD, of)) rows.push(...some);
        return rows;
      };
      const messages = await read("messages");
      assert.deepEqual(
        messages.map(({ id }) => id),
        [...own, ...ids.filter((_id, n) => n % 2 === 1)],
      );
      const { partition, key, data, deliverAt } = messages[1] ?? {};
      assert.deepEqual([partition, key, data, deliverAt], [0, "键2", '"2"', null]);
      assert.deepEqual(
        (await read("records")).map(({ id, attempt }) => [id, attempt]),
        records.map(({ id, attempt }) => [id, attempt]),
      );
    },
  },
  {
    name: "retention: of those that look after a topic one is elected in so long",
    async run({ retention, topic, sql, dialect, freshTopic, store }) {
      assert.deepEqual([await retention.elect(topic, 60_000), await retention.elect(topic, 60_000)], [true, false]);
      const another = freshTopic();
      await store.topics.create({ topic: another, partitions: 1, retentionMonths: null });
      assert.equal(await retention.elect(another, 60_000), true, "each topic has its own");
      for (const [atMs, what] of [
        [-61_000, "the time is over"],
        [3_600_000, "the clock was ahead, and is set back"],
      ] as const) {
        await sql(`UPDATE message_topic SET housekept_at = ${dialect.ownAt(atMs)} WHERE topic_id = '${topic}'`);
        assert.equal(await retention.elect(topic, 60_000), true, what);
      }
    },
  },
  {
    name: "retention: whoever is about to drop a month waits for a settle under way, and sees what it wrote",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const { putOld, member, database, other, waiting } = context;
      const ids = await putOld(OLD, [{}]);
      const billing = await member();
      await billing.settle({ partition: 1, nextId: after(ids[0]) });
      const late = other.rooms.retention;
      let beginning: ReturnType<typeof late.begin> | undefined;
      await database.transaction(async (tx) => {
        await billing.settleIn(tx, { nextId: after(ids[0]), records: [consumed(ids[0])] });
        let ended = false;
        beginning = late.begin(request(context));
        void beginning
          .catch(() => undefined)
          .finally(() => {
            ended = true;
          });
        await waiting(1, () => ended);
      });
      assert.deepEqual(await beginning, { begun: true, isThere: true });
    },
  },
];
