/** Looking at groups: how far they are, what they have not read, what they get again. */
import assert from "node:assert/strict";
import type { QueueContractCase } from "../case.ts";
import { after, again, nextOfPartition } from "../member.ts";
import { redeliveriesOf } from "../written.ts";

const BY = { author: "王", reason: "wrong prices" };

export const groupCases: readonly QueueContractCase[] = [
  {
    name: "groups: each partition tells its place, its last id and who holds it",
    async run({ append, member, groups, topic, other, sql, dialect }) {
      const ids = await append([{}, {}, { partition: 1 }]);
      const billing = await member();
      await member({ group: "audit", instance: other });
      await billing.settle({ nextId: ids[1] });
      const found = await groups.partitions(topic, "billing");
      assert.deepEqual(
        found.map(({ group, partition, nextId, lastId, round, owner, label }) => [
          ...[group, partition, nextId, lastId, round],
          ...[owner, label],
        ]),
        [
          ["billing", 0, ids[1], ids[1], 0, billing.owner, `host:${billing.owner}`],
          ["billing", 1, "0", ids[2], 0, billing.owner, `host:${billing.owner}`],
        ],
      );
      const [moved, still] = found;
      assert.ok(moved?.movedMs !== null && (moved?.movedMs ?? NaN) < 60_000, "it has just moved");
      assert.equal(still?.movedMs, null, "nothing was settled there");
      assert.ok(moved?.seenMs !== null && (moved?.seenMs ?? NaN) < 60_000, "its owner has just been seen");
      await sql(`UPDATE message_consumer SET seen_at = ${dialect.ownAt(-120_000)} WHERE topic_id = '${topic}'`);
      const [silent] = await groups.partitions(topic, "billing");
      assert.ok((silent?.seenMs ?? 0) >= 100_000, "its owner is silent");
      const heldMs = (await groups.nowMs()) - Date.parse(moved?.heldSince ?? "");
      assert.ok(heldMs >= 0 && heldMs < 60_000, `held since ${heldMs} ms`);
      assert.deepEqual(
        (await groups.partitions(topic)).map(({ group, partition }) => [group, partition]),
        [
          ["audit", 0],
          ["audit", 1],
          ["billing", 0],
          ["billing", 1],
        ],
      );
    },
  },
  {
    name: "groups: what is unread is counted over months, up to the limit, with the first message",
    async run({ putOld, groups, topic }) {
      const old = await putOld(202501, [{ key: "a" }, { key: "b" }, { partition: 1 }, { key: "c" }]);
      const later = await putOld(202502, [{}, {}]);
      const months = await groups.months(topic);
      assert.deepEqual(months.slice(0, 2), [202501, 202502]);
      const unread = (fromId = "0", toId = "0", limit = 100): ReturnType<typeof groups.unread> =>
        groups.unread(topic, months, { partition: 0, fromId, toId }, limit);
      const last = later[1];
      assert.deepEqual(await unread("0", last), { messages: 5, first: { id: old[0], key: "a", type: null } });
      assert.deepEqual(await unread(old[1], last, 3), { messages: 3, first: { id: old[1], key: "b", type: null } });
      assert.deepEqual(await unread(after(old[3]), last), {
        messages: 2,
        first: { id: later[0], key: null, type: null },
      });
      assert.deepEqual(await unread(after(last), last), { messages: 0, first: undefined });
    },
  },
  {
    name: "groups: redeliveries are counted by what they wait for",
    async run({ append, member, groups, topic }) {
      const ids = await append([{}, {}, {}, {}, {}]);
      const billing = await member();
      const redeliveries = [
        again(ids[0], { state: "dead" }),
        again(ids[1], { orderingKey: "k", dueInMs: 60_000 }),
        again(ids[2], { orderingKey: "k", dueInMs: null }),
        again(ids[3]),
        again(ids[4], { state: "dead" }),
      ];
      await billing.settle({ nextId: after(ids[4]), redeliveries });
      const key = { topic, group: "billing" };
      const all = { waiting: 3, behind: 1, dead: 2, oldest: ids[1] };
      assert.deepEqual(await groups.redeliveries(key, 0, 100), all);
      assert.deepEqual(await groups.redeliveries(key, 0, 2), { waiting: 1, behind: 0, dead: 1, oldest: ids[1] });
      assert.deepEqual(await groups.redeliveries(key, 1, 100), { waiting: 0, behind: 0, dead: 0, oldest: null });
    },
  },
  {
    name: "groups: redeliveries come in pages, in order of partitions and ids",
    async run(context) {
      const { append, member, groups, topic } = context;
      const ids = await append([{ partition: 1 }, {}, { partition: 1 }, {}]);
      const billing = await member();
      for (const partition of [0, 1]) {
        const own = ids.filter((_id, index) => (index + 1) % 2 === partition);
        await billing.settle({ partition, redeliveries: own.map((id) => again(id)) });
      }
      const expected = [ids[1], ids[3], ids[0], ids[2]];
      assert.deepEqual(
        (await redeliveriesOf(context)).map(({ id }) => id),
        expected,
      );
      const paged: string[] = [];
      let place = { partition: 0, id: "0" };
      for (let page = 0; page < 4; page += 1) {
        const [found, ...more] = await groups.page({ topic, group: "billing" }, place, 1);
        assert.ok(found !== undefined && more.length === 0, "one on a page");
        paged.push(found.id);
        place = found;
      }
      assert.deepEqual(paged, expected);
      assert.deepEqual(await groups.page({ topic, group: "billing" }, place, 1), []);
    },
  },
  {
    name: "groups: a pause is told with who and why, and is over when somebody says so",
    async run({ member, groups, topic }) {
      await member();
      const key = { topic, group: "billing" };
      assert.equal(await groups.setPause(key, BY), true);
      assert.equal(await groups.setPause(key, { author: "ann", reason: "later" }), false, "it was paused");
      const [paused] = await groups.partitions(topic, "billing");
      assert.deepEqual([paused?.pausedBy, paused?.pauseReason], [BY.author, BY.reason]);
      const pausedMs = (await groups.nowMs()) - Date.parse(paused?.pausedAt ?? "");
      assert.ok(pausedMs >= 0 && pausedMs < 60_000, `paused for ${pausedMs} ms`);
      assert.equal(await groups.setPause(key, undefined), true);
      assert.equal(await groups.setPause(key, undefined), false, "it was not paused");
      const [resumed] = await groups.partitions(topic, "billing");
      assert.deepEqual([resumed?.pausedAt, resumed?.pausedBy, resumed?.pauseReason], [null, null, null]);
    },
  },
  {
    name: "groups: one that somebody pauses stays paused when members join",
    async run({ member, groups, topic, consumption }) {
      await member();
      await groups.setPause({ topic, group: "billing" }, BY);
      await consumption("billing").join("start");
      assert.equal((await consumption("billing").counters()).paused, true);
    },
  },
  {
    name: "deleteGroup: is refused with the labels of members that were seen, and deletes nothing then",
    async run({ append, member, groups, topic }) {
      const [id] = await append([{}]);
      const billing = await member();
      await billing.settle({ nextId: after(id) });
      const before = await groups.partitions(topic, "billing");
      const answer = await groups.deleteGroup({ topic, group: "billing" }, 30_000);
      assert.deepEqual(answer, [`host:${billing.owner}`]);
      assert.deepEqual(
        (await groups.partitions(topic, "billing")).map(({ nextId }) => nextId),
        before.map(({ nextId }) => nextId),
      );
      assert.equal(await billing.settle({ fromId: after(id), nextId: after(after(id)) }), true);
    },
  },
  {
    name: "deleteGroup: takes progress and redeliveries of a silent group, and fences out who comes late",
    async run(context) {
      const { append, member, groups, topic } = context;
      const [id] = await append([{}]);
      const billing = await member();
      const audit = await member({ group: "audit" });
      await billing.settle({ nextId: after(id), redeliveries: [again(id)] });
      await audit.settle({ nextId: after(id), redeliveries: [again(id)] });
      await billing.consumption.leases.leave(billing.owner);
      assert.equal(await groups.deleteGroup({ topic, group: "billing" }, 30_000), "deleted");
      assert.deepEqual(
        (await groups.partitions(topic)).map(({ group }) => group),
        ["audit", "audit"],
      );
      assert.deepEqual(
        [(await redeliveriesOf(context)).length, (await redeliveriesOf(context, "audit")).length],
        [0, 1],
      );
      assert.equal(await billing.settle({ fromId: after(id), nextId: after(after(id)) }), false);
      assert.equal(await groups.deleteGroup({ topic, group: "billing" }, 30_000), "absent");
    },
  },
  {
    name: "deleteGroup: a group of its name begins anew, unpaused, in a round of its own",
    async run({ append, member, groups, topic }) {
      const [id] = await append([{}]);
      const key = { topic, group: "billing" };
      const billing = await member();
      await billing.settle({ nextId: after(id) });
      await groups.setPause(key, BY);
      await billing.consumption.leases.leave(billing.owner);
      await groups.deleteGroup(key, 30_000);
      await member({ start: "end" });
      const found = await groups.partitions(topic, "billing");
      assert.deepEqual(
        found.map(({ nextId, round, pausedAt }) => [nextId, round, pausedAt]),
        [
          [nextOfPartition(id), 1, null],
          // Behind the counter 0 of partition 1.
          ["65", 1, null],
        ],
      );
    },
  },
];
