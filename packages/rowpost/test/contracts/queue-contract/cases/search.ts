/** Searching: what is found, in which order, and how far the answer can be believed. */
import assert from "node:assert/strict";
import { infoTable, recordTable } from "../../../../src/databases/sql/queue/names.ts";
import { LAST_QUEUE_ID, monthsBetween } from "../../../../src/message/queue-id.ts";
import type { SearchRequest, SearchResult } from "../../../../src/queue/searching/requests.ts";
import type { QueueContractCase } from "../case.ts";
import type { QueueCaseContext } from "../context.ts";
import { after, again, consumed } from "../member.ts";
import { oldId } from "../old-months.ts";
import { dropping } from "./retention.ts";

const [FIRST, SECOND] = [202501, 202502];
/** Behind all messages of the second month. */
const END = oldId(SECOND, 100_000_000);

/** Searches the case's topic, which has to be there. */
async function search(context: QueueCaseContext, changes: Partial<SearchRequest> = {}): Promise<SearchResult> {
  const found = await context.searching.search({
    topic: context.topic,
    fromId: "0",
    toId: END,
    key: undefined,
    matches: () => true,
    limit: 1_000,
    timeLimitMs: 10_000,
    ...changes,
  });
  assert.ok(found !== undefined, "the topic is there");
  return found;
}

/** Seven messages of two months and two partitions, the newest first. */
async function twoMonths({ putOld }: QueueCaseContext): Promise<string[]> {
  const first = await putOld(FIRST, [{ key: "a" }, { key: "b", partition: 1 }, { key: "a", partition: 1 }, {}]);
  const second = await putOld(SECOND, [{ key: "a" }, { partition: 1 }, { key: "A" }]);
  return [...first, ...second].toReversed();
}

export const searchCases: readonly QueueContractCase[] = [
  {
    name: "search: finds all messages of a range, the newest first, over months and partitions",
    async run(context) {
      const ids = await twoMonths(context);
      const all = await search(context);
      assert.deepEqual(
        all.messages.map(({ id }) => id),
        ids,
      );
      const { stopped, nextId, rows, months } = all;
      assert.deepEqual([stopped, nextId, rows, months], ["end", undefined, 7, [SECOND, FIRST]]);
      const some = await search(context, { fromId: ids[4] ?? "", toId: ids[1] ?? "" });
      assert.deepEqual(
        some.messages.map(({ id }) => id),
        ids.slice(1, 5),
        "with both ends",
      );
    },
  },
  {
    name: "search: finds the messages of a key, byte for byte",
    async run(context) {
      const ids = await twoMonths(context);
      const found = await search(context, { key: "a" });
      assert.deepEqual(
        found.messages.map(({ id, key }) => [id, key]),
        [ids[2], ids[4], ids[6]].map((id) => [id, "a"]),
      );
      assert.equal(found.rows, 3, "it looks at no other");
      assert.deepEqual((await search(context, { key: "a " })).messages, []);
    },
  },
  {
    name: "search: a page is full at the limit, and the next one goes on where it ended",
    async run(context) {
      const ids = await twoMonths(context);
      for (const key of [undefined, "a"]) {
        const wanted = key === undefined ? ids : [ids[2], ids[4], ids[6]];
        const found: string[] = [];
        let toId = END;
        for (let page = 0; page < wanted.length; page += 1) {
          const { messages, stopped, nextId } = await search(context, { key, toId, limit: 1 });
          assert.deepEqual([messages.length, stopped, nextId], [1, "limit", messages[0]?.id]);
          found.push(messages[0]?.id ?? "");
          toId = String(BigInt(nextId ?? 0) - 1n);
        }
        assert.deepEqual(found, wanted);
        assert.equal((await search(context, { key, toId, limit: 1 })).stopped, "end");
      }
    },
  },
  {
    name: "search: what matches is picked out of more than one step, and all that was looked at is counted",
    async run(context) {
      const ids = await context.putOld(
        FIRST,
        Array.from({ length: 901 }, (_, n) => ({ partition: n % 5 === 0 ? 1 : 0 })),
      );
      const wanted = [ids[3], ids[450], ids[455], ids[900]].map(String);
      const found = await search(context, { matches: ({ id }) => wanted.includes(id) });
      assert.deepEqual(
        found.messages.map(({ id }) => id),
        wanted.toReversed(),
      );
      assert.deepEqual([found.rows, found.stopped], [901, "end"]);
    },
  },
  {
    name: "search: one whose time is over says from where on it has searched, and can be gone on with",
    async run(context) {
      const ids = await context.putOld(
        FIRST,
        Array.from({ length: 901 }, () => ({})),
      );
      await context.putOld(SECOND, [{}]);
      const seen = new Set<string>();
      let toId = END;
      let pages = 0;
      for (; pages < 100; pages += 1) {
        const { messages, stopped, nextId } = await search(context, { toId, timeLimitMs: 0 });
        for (const { id } of messages) seen.add(id);
        assert.ok(stopped === "time" || stopped === "end", stopped);
        if (stopped === "end") break;
        assert.ok(
          nextId !== undefined && messages.every(({ id }) => BigInt(id) >= BigInt(nextId)),
          "searched from there",
        );
        toId = String(BigInt(nextId) - 1n);
      }
      assert.ok(pages > 1, "it took several");
      assert.equal(seen.size, ids.length + 1, "nothing is left out");
    },
  },
  {
    name: "search: tells of the range which months were dropped, by whom, and which have no table",
    async run(context) {
      await twoMonths(context);
      await context.putOld(202505, [{}]);
      await context.member();
      await dropping(context, FIRST);
      const found = await search(context, { toId: LAST_QUEUE_ID });
      assert.deepEqual(
        found.dropped.map(({ month, messages, author, reason, archive }) => [month, messages, author, reason, archive]),
        [[FIRST, 4, "王", "no room", "/archive/x.gz"]],
      );
      const tables = [FIRST, SECOND, 202505, ...(await context.store.topics.months(context.topic))];
      const absent = monthsBetween(FIRST, context.month).filter((month) => !tables.includes(month));
      assert.deepEqual([found.absent, found.months.includes(FIRST)], [absent, false]);
      const within = await search(context, { fromId: oldId(SECOND, 0) });
      assert.deepEqual([within.dropped, within.absent], [[], []], "only those of the range");
    },
  },
  {
    name: "search: a topic that is not there is told",
    async run(context) {
      const topic = context.freshTopic();
      const request = { topic, fromId: "0", toId: END, key: undefined, limit: 1, timeLimitMs: 1_000 };
      assert.equal(await context.searching.search({ ...request, matches: () => true }), undefined);
    },
  },
  {
    name: "detail: tells of a message every attempt of every group, and where each group is",
    async run(context) {
      const ids = await context.putOld(SECOND, [{}, { key: "k", body: '"中文"' }, {}]);
      const billing = await context.member();
      const audit = await context.member({ group: "audit" });
      const records = [consumed(ids[1], { result: "failed", error: "busy" }), consumed(ids[1], { attempt: 2 })];
      await billing.settle({ nextId: after(ids[2]), records });
      await audit.settle({ nextId: after(ids[1]), redeliveries: [again(ids[1], { dueInMs: null, orderingKey: "k" })] });
      const detail = await context.searching.detail(context.topic, ids[1] ?? "");
      assert.ok(detail !== undefined && "message" in detail);
      assert.deepEqual([detail.message.id, detail.message.key, detail.message.body], [ids[1], "k", '"中文"']);
      assert.deepEqual(
        detail.entries.map(({ group, attempt, result, error }) => [group, attempt, result, error]),
        [
          ["billing", 1, "failed", "busy"],
          ["billing", 2, "consumed", null],
        ],
      );
      const redelivery = { state: "waiting", attempt: 1, nextAttemptAt: null, failReason: "BUSY" };
      assert.deepEqual(detail.groups, [
        { group: "audit", nextId: after(ids[1]), round: 0, redelivery },
        { group: "billing", nextId: after(ids[2]), round: 0, redelivery: undefined },
      ]);
    },
  },
  {
    name: "detail: a batch's record is about the messages between its ends, but for those that failed",
    async run(context) {
      const ids = await context.putOld(SECOND, [{}, {}, {}, {}, {}]);
      const billing = await context.member();
      const records = [
        consumed(ids[0], { lastId: ids[3] ?? "", messages: 3 }),
        consumed(ids[2], { result: "failed", error: "busy" }),
      ];
      await billing.settle({ nextId: after(ids[3]), records, redeliveries: [again(ids[2])] });
      const batch = { firstId: ids[0], lastId: ids[3], messages: 3 };
      const entries = async (index: number): Promise<unknown[]> => {
        const detail = await context.searching.detail(context.topic, ids[index] ?? "");
        assert.ok(detail !== undefined && "entries" in detail);
        return detail.entries.map((entry) => [entry.result, entry.batch]);
      };
      assert.deepEqual(await entries(1), [["consumed", batch]]);
      assert.deepEqual(await entries(2), [["failed", undefined]]);
      assert.deepEqual(await entries(4), [], "behind it");
    },
  },
  {
    name: "detail: tells a message of a dropped month, and one that there is not",
    async run(context) {
      const [id = ""] = await context.putOld(FIRST, [{}]);
      await context.putOld(SECOND, [{}]);
      assert.equal(await context.searching.detail(context.topic, oldId(SECOND, 5)), undefined);
      const { sql, topic } = context;
      for (const table of [infoTable(topic, SECOND), recordTable(topic, SECOND)]) await sql(`DROP TABLE ${table}`);
      assert.equal(await context.searching.detail(topic, oldId(SECOND, 0)), undefined, "its table is gone");
      await dropping(context, FIRST);
      const dropped = await context.searching.detail(topic, id);
      assert.ok(dropped !== undefined && "month" in dropped);
      assert.deepEqual([dropped.month, dropped.messages, dropped.author], [FIRST, 1, "王"]);
    },
  },
];
