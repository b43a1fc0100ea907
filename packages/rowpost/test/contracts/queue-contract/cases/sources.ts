/** Source ids: what was appended under one is not appended again. */
import assert from "node:assert/strict";
import type { QueueContractCase } from "../case.ts";
import { rolledBack } from "../context.ts";
import { readAll } from "./append.ts";

export const sourceCases: readonly QueueContractCase[] = [
  {
    name: "sources: a second append of a source id appends nothing and brings the first id",
    async run(context) {
      const [first] = await context.append([{ sourceId: "a", body: "1" }]);
      const ids = await context.append([
        { sourceId: "b", body: "2" },
        { sourceId: "a", body: "3" },
        { body: "4" },
        { sourceId: "a", body: "5", partition: 1 },
      ]);
      assert.equal(ids[1], first);
      assert.equal(ids[3], first);
      assert.deepEqual(
        [...(await readAll(context)), ...(await readAll(context, 1))].map(({ id, body }) => [id, body]),
        [
          [first, "1"],
          [ids[0], "2"],
          [ids[2], "4"],
        ],
      );
    },
  },
  {
    name: "sources: one that stands twice in a call is appended once",
    async run(context) {
      const ids = await context.append([{ sourceId: "a" }, { sourceId: "A" }, { sourceId: "a" }]);
      assert.equal(ids[0], ids[2]);
      assert.notEqual(ids[0], ids[1], "letters are compared as they are");
      assert.equal((await readAll(context)).length, 2);
    },
  },
  {
    name: "sources: one of an append that was rolled back is not known",
    async run(context) {
      await rolledBack(context.database, (tx) => context.appendIn(tx, [{ sourceId: "a", body: "1" }]));
      const [id] = await context.append([{ sourceId: "a", body: "2" }]);
      assert.deepEqual(
        (await readAll(context)).map((found) => [found.id, found.body]),
        [[id, "2"]],
      );
    },
  },
  {
    name: "sources: of two that append one source id at once, the second gets the id of the first",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const { database, appendIn, append, other, waiting } = context;
      let second: Promise<readonly string[]> | undefined;
      const first = await database.transaction(async (tx) => {
        const result = await appendIn(tx, [{ sourceId: "a" }]);
        // In another partition: so only the source id is in its way.
        second = append([{ sourceId: "a", partition: 1 }], { instance: other });
        let ended = false;
        void second
          .catch(() => undefined)
          .finally(() => {
            ended = true;
          });
        await waiting(1, () => ended);
        return "ids" in result ? result.ids : [];
      });
      assert.deepEqual(await second, first);
      assert.deepEqual(await readAll(context, 1), []);
    },
  },
  {
    name: "sources: another topic knows nothing of them",
    async run(context) {
      const { append, freshTopic, store } = context;
      const topic = freshTopic();
      await store.topics.create({ topic, partitions: 1, retentionMonths: null });
      await append([{ sourceId: "a" }], { topic, keyedPartitions: 1 });
      const ids = await append([{ sourceId: "a" }]);
      assert.deepEqual(
        (await readAll(context)).map(({ id }) => id),
        ids,
      );
    },
  },
  {
    name: "sources: those that are old enough are forgotten, some at a time",
    async run(context) {
      const { append, store, sql, dialect, topic } = context;
      await append(["a", "b", "c", "new"].map((sourceId) => ({ sourceId })));
      const old = `topic_id = '${topic}' AND source_id <> 'new'`;
      // Older than all that others may have left in this database.
      await sql(`UPDATE message_source SET gmt_create = ${dialect.ownAt(-900_000_000)} WHERE ${old}`);
      const request = { olderThanMs: 899_000_000, limit: 2 };
      const counts = [];
      for (let call = 0; call < 3; call += 1) counts.push(await store.relayed.forgetSources(request));
      assert.deepEqual(counts, [2, 1, 0]);
      const ids = await append(["a", "new"].map((sourceId) => ({ sourceId, body: "again" })));
      const again = (await readAll(context)).filter(({ body }) => body === "again");
      assert.deepEqual(
        again.map(({ id }) => id),
        [ids[0]],
        "a forgotten one is appended again, a young one is not",
      );
    },
  },
];
