/** Topics: their settings, their months, and over how many partitions keys are spread. */
import assert from "node:assert/strict";
import { monthAfter, queueMonth } from "../../../../src/message/queue-id.ts";
import type { QueueContractCase } from "../case.ts";
import type { QueueCaseContext } from "../context.ts";
import { after, again } from "../member.ts";

/** The case's topic as its row says. */
async function settings({ store, topic }: QueueCaseContext): ReturnType<QueueCaseContext["store"]["topics"]["list"]> {
  return await store.topics.list(topic);
}

export const topicCases: readonly QueueContractCase[] = [
  {
    name: "topics: a new topic has its settings, its counters, and the tables of this month and the next",
    async run({ store, other, freshTopic, append, month }) {
      const topic = freshTopic();
      assert.equal(await store.topics.create({ topic, partitions: 3, retentionMonths: 6 }), true);
      const expected = { topic, partitions: 3, keyedPartitions: 3, retentionMonths: 6 };
      assert.deepEqual(await other.store.topics.list(topic), [expected]);
      assert.deepEqual(await store.topics.months(topic), [month, monthAfter(month)]);
      const ids = await append([{ partition: 0 }, { partition: 2 }], { topic, keyedPartitions: 3 });
      assert.equal(ids.length, 2);
    },
  },
  {
    name: "topics: a topic that is there is not made again, and stays as it is",
    async run(context) {
      const { store, topic } = context;
      const before = await settings(context);
      assert.equal(await store.topics.create({ topic, partitions: 9, retentionMonths: 1 }), false);
      assert.deepEqual(await settings(context), before);
    },
  },
  {
    name: "topics: of two that make one topic at once there is one, with the settings of one of them",
    needs: ["instances"],
    async run({ store, other, freshTopic }) {
      const topic = freshTopic();
      const made = await Promise.all(
        [store, other.store].map((each, n) => each.topics.create({ topic, partitions: n + 2, retentionMonths: null })),
      );
      assert.equal(made.filter((isMine) => isMine).length, 1, "one has made it, and is told so");
      const found = await store.topics.list(topic);
      assert.equal(found.length, 1, "one topic");
      const partitions = found[0]?.partitions ?? 0;
      assert.ok(partitions === 2 || partitions === 3, `${partitions} partitions`);
    },
  },
  {
    name: "topics: are listed in the order of their names, or one alone",
    async run({ store, topic, freshTopic }) {
      const more = [freshTopic(), freshTopic()];
      for (const name of more.toReversed()) {
        await store.topics.create({ topic: name, partitions: 1, retentionMonths: null });
      }
      const names = (await store.topics.list()).map((each) => each.topic);
      assert.deepEqual(names, [...names].sort(), "in order");
      for (const name of [topic, ...more]) assert.ok(names.includes(name), `${name} is listed`);
      const one = await store.topics.list(topic);
      assert.deepEqual(
        one.map((each) => each.topic),
        [topic],
      );
      assert.deepEqual(await store.topics.list(`${topic}x`), []);
    },
  },
  {
    name: "topics: more partitions take keys at once when nobody has unread messages",
    async run(context) {
      const { store, topic, append } = context;
      await store.topics.alter({ topic, partitions: 4, retentionMonths: null });
      assert.deepEqual(await settings(context), [{ topic, partitions: 4, keyedPartitions: 4, retentionMonths: null }]);
      await append([{ partition: 3 }], { keyedPartitions: 4 });
    },
  },
  {
    name: "topics: more partitions take no keys while a group has unread messages, and do by a later call",
    async run(context) {
      const { store, topic, append, member } = context;
      const ids = await append([{}]);
      const billing = await member();
      const wider = { topic, partitions: 4, retentionMonths: null };
      await store.topics.alter(wider);
      assert.deepEqual(await settings(context), [{ ...wider, keyedPartitions: 2 }]);
      assert.equal(await billing.settle({ nextId: after(ids[0]) }), true);
      await store.topics.alter(wider);
      assert.deepEqual(await settings(context), [{ ...wider, keyedPartitions: 4 }]);
    },
  },
  {
    name: "topics: more partitions take no keys while a redelivery holds up its ordering key",
    async run(context) {
      const { store, topic, append, member } = context;
      const [id] = await append([{ orderingKey: "k" }]);
      const billing = await member();
      await billing.settle({ nextId: after(id), redeliveries: [again(id, { orderingKey: "k", dueInMs: 60_000 })] });
      const wider = { topic, partitions: 4, retentionMonths: null };
      await store.topics.alter(wider);
      assert.equal((await settings(context))[0]?.keyedPartitions, 2, "the key waits");
      await billing.settle({ redelivered: [id ?? ""] });
      await store.topics.alter(wider);
      assert.equal((await settings(context))[0]?.keyedPartitions, 4, "nothing waits");
    },
  },
  {
    name: "topics: the retention can be changed, and taken away",
    async run(context) {
      const { store, topic } = context;
      for (const retentionMonths of [3, null]) {
        await store.topics.alter({ topic, partitions: 2, retentionMonths });
        assert.deepEqual(await settings(context), [{ topic, partitions: 2, keyedPartitions: 2, retentionMonths }]);
      }
    },
  },
  {
    name: "topics: removing one takes its groups and all its tables with it",
    async run({ store, topic, append, groups, member, putOld }) {
      await putOld(202501, [{}]);
      await append([{}]);
      await member();
      assert.equal(await store.topics.remove(topic), true);
      assert.deepEqual(await store.topics.list(topic), []);
      assert.deepEqual(await store.topics.months(topic), []);
      assert.deepEqual(await groups.partitions(topic), []);
      assert.equal(await store.topics.remove(topic), false, "there is none any more");
    },
  },
  {
    name: "topics: one whose name is like another's is left alone when that one is removed",
    async run({ store, topic, freshTopic, append }) {
      // An underscore stands for any character in LIKE; and a topic may begin with another's name.
      const one = freshTopic();
      const alike = [one.replace("contract_", "contractx"), `${one}_b`];
      for (const name of [one, ...alike]) {
        await store.topics.create({ topic: name, partitions: 1, retentionMonths: null });
      }
      try {
        assert.equal(await store.topics.remove(one), true);
        for (const name of [topic, ...alike]) {
          assert.equal((await store.topics.months(name)).length, 2, `${name} has its months`);
        }
        for (const name of alike) await append([{}], { topic: name, keyedPartitions: 1 });
      } finally {
        for (const name of alike) await store.topics.remove(name);
      }
    },
  },
  {
    name: "topics: months that are missing are made, those that are there stay, and all come in order",
    async run({ store, topic, month, append, consumption }) {
      const ids = await append([{}]);
      await store.topics.makeMonths(topic, [202503, month, 202501]);
      assert.deepEqual(await store.topics.months(topic), [202501, 202503, month, monthAfter(month)]);
      const read = { month: 202501, partition: 0, fromId: "0", toId: ids[0] ?? "", limit: 10 };
      const billing = consumption("billing");
      assert.deepEqual(await billing.read(read), [], "a month without messages");
      assert.equal((await billing.read({ ...read, month }))?.length, 1, "its message is still there");
    },
  },
  {
    name: "topics: the current month is that of the ids",
    async run({ store, append }) {
      const before = await store.topics.currentMonth();
      const [id = ""] = await append([{}]);
      const months = [before, await store.topics.currentMonth()];
      assert.ok(months.includes(queueMonth(id)), `${queueMonth(id)} is one of ${months.join(", ")}`);
    },
  },
];
