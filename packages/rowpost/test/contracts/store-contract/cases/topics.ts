/** Scanning by topic, and bodies that a scan leaves out. */
import assert from "node:assert/strict";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { ScanRequest, TopicScan } from "../../../../src/relay/store.ts";
import { STORE_OPTIONS } from "../bench.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutValues, StoreCaseContext } from "../context.ts";

const HOUR_MS = 3_600_000;
/** The request's own limits are ignored when topics are given. */
const REQUEST: ScanRequest = { shards: undefined, afterId: "0", immediateLimit: 0, dueLimit: 0, bodyLimit: 1_000_000 };

function ofTopic(topic: string, change: Partial<TopicScan> = {}): TopicScan {
  return { topic, afterId: "0", immediateLimit: 100, dueLimit: 100, ...change };
}

async function idsOf(context: StoreCaseContext, due: boolean, topics: readonly TopicScan[]): Promise<string[]> {
  const rows = await context.store.scan({ ...REQUEST, topics });
  return rows.filter((row) => row.due === due).map(({ id }) => id);
}

export const topicCases: readonly StoreContractCase[] = [
  {
    name: "topics: a scan of some topics returns their messages and no others, each as a plain scan returns it",
    async run(context) {
      const [a, b] = [{ topic: "a", body: '{"a":1}' }, { topic: "b" }];
      await context.putAll([
        a,
        b,
        { topic: "c" },
        { ...a, nextRetryInMs: -5_000, retryCount: 1 },
        { ...a, nextRetryInMs: HOUR_MS },
      ]);
      await context.putAll(MESSAGE_STATES.filter((state) => state !== "pending").map((state) => ({ ...a, state })));
      const found = await context.store.scan({ ...REQUEST, topics: [ofTopic("b"), ofTopic("a")] });
      const plain = (await context.scan()).filter(({ topic }) => topic !== "c");
      const comparable = (rows: typeof plain) =>
        rows.map((row) => ({ ...row, waitingMs: 0 })).sort((left, right) => Number(left.id) - Number(right.id));
      assert.equal(found.length, 3);
      assert.deepEqual(comparable(found), comparable(plain));
      assert.deepEqual(await context.store.scan({ ...REQUEST, topics: [ofTopic("none")] }), []);
      assert.deepEqual(await context.store.scan({ ...REQUEST, topics: [] }), []);
    },
  },
  {
    name: "topics: each has its own limits, lowest ids and earliest times first",
    async run(context) {
      const rows: PutValues[] = [-9_000, -7_000, -8_000].map((nextRetryInMs) => ({
        topic: "a",
        nextRetryInMs,
        retryCount: 1,
      }));
      const due = await context.putAll(rows);
      const waiting = await context.putAll([
        { topic: "b" },
        { topic: "a" },
        { topic: "b" },
        { topic: "a" },
        { topic: "b" },
      ]);
      const topics = [
        ofTopic("a", { immediateLimit: 1, dueLimit: 2 }),
        ofTopic("b", { immediateLimit: 2, dueLimit: 0 }),
      ];
      assert.deepEqual(await idsOf(context, true, topics), [due[0]?.id, due[2]?.id]);
      assert.deepEqual(
        (await idsOf(context, false, topics)).sort(),
        [waiting[1], waiting[0], waiting[2]].map((row) => row?.id ?? "").sort(),
      );
      assert.deepEqual(await idsOf(context, false, [ofTopic("a", { immediateLimit: 0 })]), []);
    },
  },
  {
    name: "topics: each goes on after its own id, in the branch by id only",
    async run(context) {
      const [a, b, late] = await context.putAll([{ topic: "a" }, { topic: "b" }, { topic: "a" }]);
      const [due] = await context.putAll([{ topic: "a", nextRetryInMs: -5_000, retryCount: 1 }]);
      assert.ok(a && b && late && due);
      const topics = [ofTopic("a", { afterId: a.id }), ofTopic("b")];
      assert.deepEqual((await idsOf(context, false, topics)).sort(), [b.id, late.id].sort());
      assert.deepEqual(await idsOf(context, true, [ofTopic("a", { afterId: due.id })]), [due.id]);
    },
  },
  {
    name: "topics: a scan of some shards returns no body of another shard",
    needs: ["shards"],
    async run(context) {
      const rows = await context.putAll([1, 2, 3].map((shard) => ({ topic: "a", body: "[1]", shard })));
      const found = await context.store.scan({ ...REQUEST, shards: [2], topics: [ofTopic("a")] });
      assert.deepEqual(
        found.map(({ id, body, bodyBytes }) => [id, body, bodyBytes]),
        rows.map(({ id, shard }) => (shard === 2 ? [id, "[1]", 3] : [id, "", 0])),
      );
    },
  },
  {
    name: "bodies: one of more bytes than the limit is left out, told by its size, and read by its id",
    async run(context) {
      const bodies = ["é".repeat(50), `${"é".repeat(50)}x`, "{}"];
      const rows = await context.putAll([
        ...bodies.map((body) => ({ topic: "a", body })),
        { topic: "a", body: bodies[1], nextRetryInMs: -5_000, retryCount: 1 },
      ]);
      const request = { ...REQUEST, immediateLimit: 10, dueLimit: 10, bodyLimit: 100 };
      for (const topics of [undefined, [ofTopic("a")]]) {
        const found = await context.store.scan({ ...request, topics });
        const byId = new Map(found.map(({ id, body, bodyBytes }) => [id, [body, bodyBytes]]));
        assert.deepEqual(
          rows.map(({ id }) => byId.get(id)),
          [
            [bodies[0], 100],
            [null, 101],
            ["{}", 2],
            [null, 101],
          ],
        );
      }
      const ids = rows.map(({ id }) => id);
      assert.deepEqual(
        await context.store.readBodies([...ids.slice(0, 2), "999999999"]),
        new Map([
          [ids[0], bodies[0]],
          [ids[1], bodies[1]],
        ]),
      );
      assert.deepEqual(await context.store.readBodies([]), new Map());
    },
  },
  {
    name: "waitingTopics: names topics that have a waiting row, whenever it is due, except the known ones",
    async run(context) {
      await context.putAll([
        ...["m", "c", "x", "c"].map((topic) => ({ topic })),
        { topic: "later", nextRetryInMs: HOUR_MS, retryCount: 1 },
        { topic: 'it\'s \\ "quoted"' },
        ...MESSAGE_STATES.filter((state) => state !== "pending").map((state) => ({ topic: state, state })),
      ]);
      const ask = async (known: readonly string[], limit = 100): Promise<string[]> =>
        (await context.store.waitingTopics({ known, limit })).sort();
      assert.deepEqual(await ask([]), ["c", 'it\'s \\ "quoted"', "later", "m", "x"]);
      assert.deepEqual(await ask(["m", "c", "none", "zz", "later"]), ['it\'s \\ "quoted"', "x"]);
      assert.deepEqual(await ask(["m", "c", "x", "later", 'it\'s \\ "quoted"']), []);
      assert.equal((await ask([], 2)).length, 2);
    },
  },
  {
    name: "open: says what the table lets a relay do, and which index is missing",
    async run({ database, layout }) {
      const store = database.relayStore({ layout });
      const abilities = await store.open(STORE_OPTIONS);
      await store.close();
      assert.equal(abilities.setsBehind, layout.columns.orderingKey !== undefined);
      assert.equal(abilities.missingIndexes.length, abilities.scansByTopic ? 0 : 1);
      if (layout.name === "default") assert.equal(abilities.scansByTopic, true);
    },
  },
];
