/** Looking at messages: pages, filters, and what is shown of each. */
import assert from "node:assert/strict";
import type { MessageFilter } from "../../../../src/admin/message-admin.ts";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import { ConfigurationError } from "../../../../src/runtime/errors.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues, StoreCaseContext } from "../context.ts";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const HOUR_MS = 3_600_000;
const ACTION = { author: "ann", reason: "ticket 7" };

async function idsOf(context: StoreCaseContext, filter: MessageFilter): Promise<string[]> {
  return (await context.admin.list({ filter, limit: 100 })).messages.map(({ id }) => id);
}

/** Each filter, with the row that it means; every other row differs in just that. */
async function assertMeans(context: StoreCaseContext, row: PutRow, filters: readonly MessageFilter[]): Promise<void> {
  for (const filter of filters) assert.deepEqual(await idsOf(context, filter), [row.id], JSON.stringify(filter));
}

export const listCases: readonly StoreContractCase[] = [
  {
    name: "list: pages through all messages, newest first, each once",
    async run(context) {
      const ids = (await context.putAll(Array(7).fill({}))).map(({ id }) => id).reverse();
      const seen: string[] = [];
      let beforeId: string | undefined;
      do {
        const page = await context.admin.list({
          filter: {},
          limit: 3,
          ...(beforeId === undefined ? {} : { beforeId }),
        });
        assert.ok(page.messages.length <= 3);
        seen.push(...page.messages.map(({ id }) => id));
        beforeId = page.nextBeforeId;
      } while (beforeId !== undefined && seen.length <= ids.length);
      assert.deepEqual(seen, ids);
    },
  },
  {
    name: "list: finds keys that begin alike, byte for byte, and no others",
    async run(context) {
      const keys = ["order-1", "order-2", "order-消", "order", "ordes", "order.", "order_3", "order-🚀x"];
      await context.putAll(keys.map((key) => ({ key })));
      const keysOf = async (keyPrefix: string): Promise<string[]> =>
        (await context.admin.list({ filter: { keyPrefix }, limit: 100 })).messages.map(({ key }) => key).sort();
      for (const prefix of ["order-", "order-1", "order-消", "order-🚀", "order_", "order", "x"]) {
        assert.deepEqual(await keysOf(prefix), keys.filter((key) => key.startsWith(prefix)).sort(), prefix);
      }
    },
  },
  {
    name: "list: shows a message with every column that the table has, and nothing of those that it lacks",
    async run(context) {
      const row = await context.put({
        topic: "shipping",
        body: '{"消":"🚀"}',
        headers: '{"a":"b"}',
        contentType: "text/plain",
        orderingKey: "customer-7",
        state: "failed",
        retryCount: 3,
        deliveryCount: 4,
        lockVersion: 6,
        deliverInMs: -HOUR_MS,
        nextRetryInMs: HOUR_MS,
        lastRetryInMs: -HOUR_MS,
        failReason: "BUSY 'x' \\",
        messageId: "0A1B",
        sentInMs: -HOUR_MS,
        createdBy: "shop",
        updatedBy: "ann",
      });
      const [listed] = (await context.admin.list({ filter: {}, limit: 10 })).messages;
      const found = await context.admin.show({ id: row.id });
      assert.ok(listed !== undefined && found !== undefined);
      const { body: _body, headers: _headers, ...summary } = found;
      assert.deepEqual(listed, summary, "a list carries no bodies and no headers");
      const { columns, states } = context.layout;
      const has = <Value>(column: string | undefined, value: Value): Value | undefined =>
        column === undefined ? undefined : value;
      const { gmtCreate, gmtModified, deliverAt, nextRetryAt, lastRetryAt, sentAt, ...rest } = found;
      assert.deepEqual(rest, {
        id: row.id,
        type: "contract.checked",
        key: row.key,
        topic: "shipping",
        state: "failed",
        rawState: String(states.failed),
        behindId: undefined,
        body: '{"消":"🚀"}',
        headers: has(columns.headers, '{"a":"b"}'),
        contentType: has(columns.contentType, "text/plain"),
        orderingKey: has(columns.orderingKey, "customer-7"),
        retryCount: 3,
        deliveryCount: has(columns.deliveryCount, 4),
        failReason: "BUSY 'x' \\",
        messageId: has(columns.messageId, "0A1B"),
        lockVersion: has(columns.lockVersion, "6"),
        consumedAt: has(columns.consumedAt, null),
        createdBy: has(columns.createdBy, "shop"),
        updatedBy: has(columns.updatedBy, "ann"),
        archived: false,
      });
      for (const instant of [gmtCreate, gmtModified, nextRetryAt]) assert.match(instant ?? "", ISO);
      const optional = { deliverAt, lastRetryAt, sentAt } as const;
      for (const [property, instant] of Object.entries(optional)) {
        if (columns[property as keyof typeof optional] === undefined) assert.equal(instant, undefined, property);
        else assert.match(instant ?? "", ISO, property);
      }
    },
  },
  {
    name: "list: each filter means its own rows, and together they mean rows that all of them mean",
    async run(context) {
      const mine: PutValues = { type: "contract.mine", topic: "mine", state: "failed", failReason: "BUSY: now" };
      const other: PutValues = { type: "contract.other", topic: "other", state: "sent", failReason: "REFUSED" };
      const [row] = await context.putAll([mine, other, {}]);
      assert.ok(row);
      await assertMeans(context, row, [
        { ids: [row.id] },
        { ids: [row.id, "999999999"] },
        { type: "contract.mine" },
        { key: row.key },
        { type: "contract.mine", key: row.key },
        { topic: "mine" },
        { states: ["failed"] },
        { topic: "mine", states: ["failed", "failed"] },
        { states: ["failed", "consumed"] },
        { failReasonContains: "BUSY" },
        { topic: "mine", states: ["failed"], type: "contract.mine" },
      ]);
      const nothing: MessageFilter[] = [
        { ids: [] },
        { ids: ["999999999"] },
        { states: [] },
        { topic: "mine", states: ["sent"] },
        { type: "contract.other", key: row.key },
        { failReasonContains: "NOW AND THEN" },
      ];
      for (const filter of nothing) assert.deepEqual(await idsOf(context, filter), [], JSON.stringify(filter));
    },
  },
  {
    name: "list: an ordering key means its own rows; a table without one has none",
    async run(context) {
      const [row] = await context.putAll([{ orderingKey: "customer-7" }, { orderingKey: "customer-8" }, {}]);
      assert.ok(row);
      const expected = context.layout.columns.orderingKey === undefined ? [] : [row.id];
      assert.deepEqual(await idsOf(context, { orderingKey: "customer-7" }), expected);
    },
  },
  {
    name: "list: a part of the reason is taken literally",
    async run(context) {
      const reasons = ["100% of it", "100 of it", "a_b", "axb", "O'Brien", "back\\slash"];
      const rows = await context.putAll(reasons.map((failReason) => ({ failReason, state: "failed" as const })));
      for (const [part, index] of [
        ["0% of", 0],
        ["a_b", 2],
        ["O'B", 4],
        ["k\\s", 5],
      ] as const) {
        assert.deepEqual(await idsOf(context, { failReasonContains: part }), [rows[index]?.id], part);
      }
    },
  },
  {
    name: "list: by time of creation, told as ISO 8601 with a zone",
    async run(context) {
      const rows = await context.putAll([-5 * HOUR_MS, -3 * HOUR_MS, -HOUR_MS].map((createdInMs) => ({ createdInMs })));
      const ids = rows.map(({ id }) => id);
      const shown = await Promise.all(ids.map((id) => context.admin.show({ id })));
      const at = (index: number, plusMs: number): string =>
        new Date(Date.parse(shown[index]?.gmtCreate ?? "") + plusMs).toISOString();
      assert.deepEqual(await idsOf(context, { createdAfter: at(1, -60_000) }), [ids[2], ids[1]]);
      assert.deepEqual(await idsOf(context, { createdBefore: at(1, 60_000) }), [ids[1], ids[0]]);
      const between = { createdAfter: at(0, 60_000), createdBefore: at(2, -60_000) };
      assert.deepEqual(await idsOf(context, between), [ids[1]]);
      const inChina = at(1, -60_000 + 8 * HOUR_MS).replace("Z", "+08:00");
      assert.deepEqual(await idsOf(context, { createdAfter: inChina }), [ids[2], ids[1]]);
    },
  },
  {
    name: "list: a window of time is found among many messages, also where ids are far apart",
    async run(context) {
      const rows = await context.putAll(
        Array.from({ length: 200 }, (_, index) => ({ createdInMs: (index - 200) * 600_000 })),
      );
      const [last] = rows.slice(-1);
      assert.ok(last);
      const ids = rows.map(({ id }) => id);
      const first = await context.admin.show({ id: ids[100] ?? "" });
      const at = (minutes: number): string =>
        new Date(Date.parse(first?.gmtCreate ?? "") + minutes * 60_000).toISOString();
      const filter = { createdAfter: at(-1), createdBefore: at(21) };
      assert.deepEqual(await idsOf(context, filter), ids.slice(100, 103).reverse());
      await context.sql(`UPDATE ${context.own.messages} SET id = 8000000000000000000 WHERE id = ${last.id}`);
      assert.deepEqual(await idsOf(context, filter), ids.slice(100, 103).reverse());
      assert.deepEqual(await idsOf(context, { createdAfter: at(985) }), ["8000000000000000000"]);
      assert.deepEqual(await idsOf(context, { createdAfter: at(2_000) }), []);
      assert.deepEqual(await idsOf(context, { createdBefore: at(-2_000) }), []);
    },
  },
  {
    name: "list: a window of time misses no message where ids and times have nothing to do with each other",
    async run(context) {
      const rows = await context.putAll(
        Array.from({ length: 120 }, (_, index) => ({ createdInMs: -((index * 37) % 120) * 3 * HOUR_MS })),
      );
      const shown = await Promise.all(rows.map(({ id }) => context.admin.show({ id })));
      const bound = new Date(Date.now() - 100 * HOUR_MS).toISOString();
      const expected = shown.flatMap((one) => (one !== undefined && one.gmtCreate > bound ? [one.id] : [])).reverse();
      assert.deepEqual(await idsOf(context, { createdAfter: bound }), expected);
    },
  },
  {
    name: "list: a key is found without its type, whatever types there are, and in the archive",
    async run(context) {
      const types = ["contract.a", "contract.b", "contract.b2", "contract.c"];
      const rows = await context.putAll(types.map((type) => ({ type, state: "sent" as const })));
      const [, second] = rows;
      assert.ok(second);
      assert.deepEqual(await idsOf(context, { key: second.key }), [second.id]);
      assert.deepEqual(await idsOf(context, { key: "nobody's" }), []);
      const request = { filter: { ids: [second.id] }, mode: "archive", action: ACTION, limit: 1 } as const;
      await context.admin.remove(request);
      const archived = await context.admin.list({ filter: { key: second.key }, limit: 10, archived: true });
      assert.deepEqual(
        archived.messages.map(({ id }) => id),
        [second.id],
      );
    },
  },
  {
    name: "list: when the time is over it says how far it came, and goes on from there",
    async run(context) {
      const rows = await context.putAll(Array.from({ length: 2_100 }, (_, index) => ({ key: `many-${index}` })));
      const [lowest] = rows;
      assert.ok(lowest);
      const failReason = "found at last";
      await context.sql(`UPDATE ${context.own.messages} SET fail_reason = '${failReason}' WHERE id = ${lowest.id}`);
      const filter = { failReasonContains: failReason };
      const first = await context.admin.list({ filter, limit: 10, timeLimitMs: 0 });
      assert.deepEqual([first.messages, first.timeIsUp], [[], true]);
      assert.equal(first.nextBeforeId, rows.at(-2_000)?.id);
      const rest = await context.admin.list({ filter, limit: 10, beforeId: first.nextBeforeId });
      assert.deepEqual(
        rest.messages.map(({ id }) => id),
        [lowest.id],
      );
      assert.deepEqual([rest.timeIsUp, rest.nextBeforeId], [false, undefined]);
    },
  },
  {
    name: "list: what is no id or no instant is refused",
    async run(context) {
      const wrong: MessageFilter[] = [
        { ids: ["1 OR 1=1"] },
        { createdAfter: "yesterday" },
        { createdBefore: "2026-01-31" },
      ];
      for (const filter of wrong) {
        await assert.rejects(async () => await idsOf(context, filter), ConfigurationError, JSON.stringify(filter));
      }
    },
  },
  {
    name: "list: an unknown state is shown with what stands in the column",
    needs: ["takesUnknownStates"],
    async run(context) {
      const rawState = typeof context.layout.states.pending === "number" ? 99 : "nonsense";
      await context.put({ rawState });
      const [found] = (await context.admin.list({ filter: {}, limit: 1 })).messages;
      assert.deepEqual([found?.state, found?.rawState], ["unknown", String(rawState)]);
    },
  },
  {
    name: "show: finds a message by id, by type and key, in the table and in the archive",
    async run(context) {
      const [row, old] = await context.putAll([{ body: '"here"' }, { state: "sent", body: '"old"' }]);
      assert.ok(row && old);
      const archived = await context.store.housekeeping.removeFinished({
        mode: "archive",
        states: MESSAGE_STATES.filter((state) => state === "sent" || state === "consumed"),
        olderThanMs: 0,
        limit: 10,
      });
      assert.equal(archived, 1);
      const type = "contract.checked";
      for (const [id, key, body] of [
        [row.id, row.key, '"here"'],
        [old.id, old.key, '"old"'],
      ] as const) {
        assert.equal((await context.admin.show({ id }))?.body, body);
        assert.equal((await context.admin.show({ type, key }))?.body, body);
      }
      assert.equal((await context.admin.show({ id: old.id }))?.archived, true);
      assert.equal(await context.admin.show({ id: "999999999" }), undefined);
      assert.equal(await context.admin.show({ type, key: "nobody's" }), undefined);
      assert.equal(await context.admin.show({ type: "contract.other", key: row.key }), undefined);
    },
  },
];
