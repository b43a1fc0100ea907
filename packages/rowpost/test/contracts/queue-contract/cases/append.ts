/** What an append writes, what it answers, and what a rollback leaves. */
import assert from "node:assert/strict";
import { infoTable, recordTable } from "../../../../src/databases/sql/queue/names.ts";
import { partitionOfId, queueMonth } from "../../../../src/message/queue-id.ts";
import type { StoredQueueMessage } from "../../../../src/queue/store.ts";
import { compareIds } from "../../../../src/runtime/compare-ids.ts";
import type { QueueContractCase } from "../case.ts";
import { ChangedMind, type QueueCaseContext, rolledBack } from "../context.ts";

/** All that a partition has of this month. */
export async function readAll(context: QueueCaseContext, partition = 0): Promise<StoredQueueMessage[]> {
  const reader = context.consumption("reader");
  const toId = (await reader.counters()).lastIds.get(partition) ?? "0";
  const found = await reader.read({ month: context.month, partition, fromId: "0", toId, limit: 10_000 });
  assert.ok(found !== undefined, "the month has its table");
  return found;
}

export const appendCases: readonly QueueContractCase[] = [
  {
    name: "append: a message is stored with every field, byte for byte",
    async run(context) {
      const message = {
        partition: 1,
        key: "订单 🙂 'quoted' \\",
        type: "order.created",
        body: '{"note":"中文 🙂","amount":1.10,"path":"C:\\\\x","quote":"it\'s"}',
        contentType: "application/json",
        headers: '{"trace":"ä ö"}',
        orderingKey: "Ä ",
      };
      const [id = ""] = await context.append([message]);
      const [found] = await readAll(context, 1);
      const { dueInMs, ...stored } = found ?? { dueInMs: NaN };
      assert.deepEqual(stored, { ...message, id });
      assert.equal(dueInMs, 0, "due at once");
      const detail = await context.searching.detail(context.topic, id);
      assert.ok(detail !== undefined && "message" in detail);
      const { ip, port, producerGroup } = detail.message;
      assert.deepEqual({ ip, port, producerGroup }, { ip: "10.0.0.7", port: 4711, producerGroup: "contract" });
    },
  },
  {
    name: "append: what a message lacks is null",
    async run(context) {
      await context.append([{ body: "" }]);
      const [found] = await readAll(context);
      const { key, type, body, contentType, headers, orderingKey } = found ?? {};
      assert.deepEqual([key, type, body, contentType, headers, orderingKey], [null, null, "", null, null, null]);
    },
  },
  {
    name: "append: ids say their partition and their month, grow in it, and stand in the order of the messages",
    async run(context) {
      const { append, month } = context;
      const all: string[] = [];
      for (let call = 0; call < 3; call += 1) {
        all.push(...(await append([{ partition: 1 }, { partition: 0 }, { partition: 1 }, { partition: 0 }])));
      }
      assert.equal(new Set(all).size, all.length, "no id twice");
      for (const [index, id] of all.entries()) {
        assert.equal(partitionOfId(id), (index + 1) % 2, `partition of ${id}`);
        assert.equal(queueMonth(id), month, `month of ${id}`);
      }
      for (const partition of [0, 1]) {
        const ids = all.filter((id) => partitionOfId(id) === partition);
        assert.deepEqual(ids, [...ids].sort(compareIds), "they grow");
        const stored = (await readAll(context, partition)).map(({ id }) => id);
        assert.deepEqual(stored, ids);
      }
    },
  },
  {
    name: "append: many at once arrive whole and in their order",
    async run(context) {
      const bodies = Array.from({ length: 1_201 }, (_, n) => `"${n} ${"x".repeat(n % 7 === 0 ? 5_000 : 10)}"`);
      await context.append(bodies.map((body) => ({ body })));
      assert.deepEqual(
        (await readAll(context)).map(({ body }) => body),
        bodies,
      );
    },
  },
  {
    name: "append: a transaction that rolls back has appended nothing",
    async run(context) {
      const { database, appendIn, append } = context;
      const before = await context.consumption("reader").counters();
      await rolledBack(database, (tx) => appendIn(tx, [{}, {}, { partition: 1 }]));
      assert.deepEqual(await context.consumption("reader").counters(), before, "counters");
      assert.deepEqual([...(await readAll(context)), ...(await readAll(context, 1))], []);
      const [id] = await append([{}]);
      assert.deepEqual(
        (await readAll(context)).map((found) => found.id),
        [id],
      );
    },
  },
  {
    name: "append: nobody sees it before its transaction has committed",
    needs: ["instances"],
    async run(context) {
      const { database, appendIn, other, consumption, month } = context;
      const reader = consumption("reader", other);
      const seen = async (): Promise<[string | undefined, number | undefined]> => {
        const read = { month, partition: 0, fromId: "0", toId: "9000000000000000000", limit: 10 };
        return [(await reader.counters()).lastIds.get(0), (await reader.read(read))?.length];
      };
      let id: string | undefined;
      await database.transaction(async (tx) => {
        const result = await appendIn(tx, [{}]);
        id = "ids" in result ? result.ids[0] : undefined;
        assert.deepEqual(await seen(), ["0", 0], "before the commit");
      });
      assert.deepEqual(await seen(), [id, 1], "after it");
    },
  },
  {
    name: "append: a topic that is not there is told, and so is a partition that it does not have",
    async run({ database, appendIn, freshTopic }) {
      for (const [messages, options] of [
        [[{}], { topic: freshTopic() }],
        [[{ partition: 7 }], {}],
        [[{ partition: 0 }, { partition: 7 }], {}],
      ] as const) {
        await rolledBack(database, async (tx) => {
          assert.deepEqual(await appendIn(tx, messages, options), { problem: "unknown topic" });
        });
      }
    },
  },
  {
    name: "append: partitions that were chosen by another number of them are told as stale",
    async run(context) {
      const { database, appendIn } = context;
      await rolledBack(database, async (tx) => {
        assert.deepEqual(await appendIn(tx, [{}], { keyedPartitions: 1 }), { problem: "stale partitions" });
      });
      assert.deepEqual(await readAll(context), []);
    },
  },
  {
    name: "append: a month without its table is told",
    async run(context) {
      const { database, appendIn, append, store, sql, topic, month } = context;
      for (const table of [infoTable(topic, month), recordTable(topic, month)]) await sql(`DROP TABLE ${table}`);
      const transaction = database.transaction(async (tx) => {
        assert.deepEqual(await appendIn(tx, [{}]), { problem: "missing month", month });
        throw new ChangedMind();
      });
      await assert.rejects(transaction, ChangedMind);
      await store.topics.makeMonths(topic, [month]);
      await append([{}]);
      assert.equal((await readAll(context)).length, 1);
    },
  },
  {
    name: "append: a delayed message says in how many milliseconds it is due",
    async run(context) {
      const atMs = Date.now() + 7_200_000;
      await context.append([{ delayMs: 3_600_000 }, { deliverAtMs: atMs }, { deliverAtMs: atMs - 86_400_000 }, {}]);
      const due = (await readAll(context)).map(({ dueInMs }) => dueInMs);
      for (const [index, expected] of [3_600_000, 7_200_000].entries()) {
        const actual = due[index] ?? NaN;
        assert.ok(actual <= expected + 2_000 && actual > expected - 20_000, `${actual} ms, expected ${expected}`);
      }
      assert.ok((due[2] ?? NaN) <= 0, "one that was due yesterday is due");
      assert.equal(due[3], 0);
    },
  },
  {
    name: "append: a relay's transaction commits what it did, or takes it back whole",
    async run(context) {
      const { store, request } = context;
      await store.relayed.ready();
      const kept = await store.relayed.transaction(async (tx) =>
        store.beginAppend(tx).append(request([{ body: "1" }])),
      );
      assert.ok("ids" in kept);
      const lost = store.relayed.transaction(async (tx) => {
        await store.beginAppend(tx).append(request([{ body: "2" }]));
        throw new ChangedMind();
      });
      await assert.rejects(lost, ChangedMind);
      assert.deepEqual(
        (await readAll(context)).map(({ body }) => body),
        ["1"],
      );
    },
  },
];
