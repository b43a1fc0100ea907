/**
 * Finding waiting messages: both branches, their limits, shards, and that nothing is passed over
 * for good.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { ScanRequest } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutValues, StoreCaseContext } from "../context.ts";
import { unknownState } from "./claim.ts";

const ALL: ScanRequest = {
  shards: undefined,
  afterId: "0",
  bodyLimit: Number.MAX_SAFE_INTEGER,
  immediateLimit: 100,
  dueLimit: 100,
};

/** Ids of one branch, in the order of the answer. */
async function idsOf(context: StoreCaseContext, due: boolean, request: Partial<ScanRequest> = {}): Promise<string[]> {
  const rows = await context.store.scan({ ...ALL, ...request });
  return rows.filter((row) => row.due === due).map(({ id }) => id);
}

export const scanCases: readonly StoreContractCase[] = [
  {
    name: "scan: how long a message waits is counted from when it could first be sent, however often it was tried",
    async run(context) {
      const dayMs = 86_400_000;
      const rows = await context.putAll([
        { createdInMs: -9 * dayMs, retryCount: 8, nextRetryInMs: -1_000 },
        { createdInMs: -9 * dayMs, retryCount: 8 },
        { createdInMs: -9 * dayMs, deliverInMs: -2 * dayMs, nextRetryInMs: -2 * dayMs },
      ]);
      const found = new Map((await context.scan()).map(({ id, waitingMs }) => [id, waitingMs]));
      for (const [index, days] of [9, 9, 2].entries()) {
        context.assertInMs(-(found.get(rows[index]?.id ?? "") ?? 0), -days * dayMs, `waiting of row ${index}`);
      }
    },
  },
  {
    name: "scan: returns a waiting message with all that is known of it",
    async run(context) {
      const { columns } = context.layout;
      const row = await context.put({
        topic: "shipping",
        body: '{"n":1}',
        headers: '{"a":"b"}',
        contentType: "text/plain",
        retryCount: 3,
        deliveryCount: 4,
        lockVersion: 9,
        deliverInMs: -60_000,
        createdInMs: -120_000,
      });
      const [found, ...others] = await context.scan();
      assert.deepEqual(others, []);
      assert.ok(found !== undefined);
      const { waitingMs, ...rest } = found;
      const has = <Value>(column: string | undefined, value: Value, otherwise: Value): Value =>
        column === undefined ? otherwise : value;
      assert.deepEqual(rest, {
        id: row.id,
        shard: row.shard,
        type: "contract.checked",
        key: row.key,
        topic: "shipping",
        body: '{"n":1}',
        bodyBytes: 7,
        isBodyNull: false,
        headers: has(columns.headers, '{"a":"b"}', null),
        contentType: has(columns.contentType, "text/plain", null),
        orderingKey: null,
        retryCount: 3,
        deliveryCount: has(columns.deliveryCount, 4, 0),
        lockVersion: has(columns.lockVersion, "9", "0"),
        identityHash: (await context.token(row)).identityHash,
        resend: false,
        due: false,
      });
      assert.ok(waitingMs >= 50_000 && waitingMs < 150_000, `waits for ${waitingMs} ms`);
    },
  },
  {
    name: "scan: finds rows without a time by id, and rows whose time has come by time, and marks which is which",
    async run(context) {
      const values: PutValues[] = [{}, { nextRetryInMs: -2_000 }, {}, { nextRetryInMs: -90_000 }, {}];
      const ids = (await context.putAll(values)).map(({ id }) => id);
      assert.deepEqual(await idsOf(context, false), [ids[0], ids[2], ids[4]]);
      assert.deepEqual(await idsOf(context, true), [ids[3], ids[1]]);
    },
  },
  {
    name: "scan: leaves rows alone whose time is yet to come",
    async run(context) {
      await context.putAll([{ nextRetryInMs: 3_000 }, { nextRetryInMs: 3_600_000, retryCount: 2 }]);
      await context.enqueue([context.message({ delayMs: 3_600_000 })]);
      assert.deepEqual(await context.scan(), []);
    },
  },
  {
    name: "scan: leaves rows in other states alone, with a time or without",
    async run(context) {
      const others = MESSAGE_STATES.filter((state) => state !== "pending");
      await context.putAll(others.flatMap((state) => [{ state }, { state, nextRetryInMs: -5_000 }]));
      assert.deepEqual(await context.scan(), []);
    },
  },
  {
    name: "scan: leaves rows in an unknown state alone",
    needs: ["takesUnknownStates"],
    async run(context) {
      const rawState = unknownState(context.layout.states.pending);
      await context.putAll([{ rawState }, { rawState, nextRetryInMs: -5_000 }]);
      assert.deepEqual(await context.scan(), []);
    },
  },
  {
    name: "scan: goes on after an id in the branch by id, and in that one only",
    async run(context) {
      const rows = await context.putAll([{}, { nextRetryInMs: -5_000 }, {}, {}]);
      const ids = rows.map(({ id }) => id);
      const afterId = ids[2] ?? "";
      assert.deepEqual(await idsOf(context, false, { afterId }), [ids[3]]);
      assert.deepEqual(await idsOf(context, true, { afterId }), [ids[1]]);
    },
  },
  {
    name: "scan: each branch has its own limit, so that neither starves the other",
    async run(context) {
      await context.putAll([...Array(8).fill({}), ...Array(8).fill({ nextRetryInMs: -5_000 })]);
      const counts = async (request: Partial<ScanRequest>): Promise<number[]> => {
        const rows = await context.store.scan({ ...ALL, ...request });
        return [rows.filter(({ due }) => due).length, rows.filter(({ due }) => !due).length];
      };
      assert.deepEqual(await counts({ dueLimit: 3, immediateLimit: 5 }), [3, 5]);
      assert.deepEqual(await counts({ dueLimit: 0, immediateLimit: 5 }), [0, 5]);
      assert.deepEqual(await counts({ dueLimit: 3, immediateLimit: 0 }), [3, 0]);
      assert.deepEqual(await counts({}), [8, 8]);
    },
  },
  {
    name: "scan: takes the lowest ids and the earliest times first",
    async run(context) {
      const rows = await context.putAll([
        ...[-1_000, -50_000, -9_000, -30_000].map((nextRetryInMs) => ({ nextRetryInMs })),
        ...Array(4).fill({}),
      ]);
      const ids = rows.map(({ id }) => id);
      assert.deepEqual(await idsOf(context, true, { dueLimit: 2 }), [ids[1], ids[3]]);
      assert.deepEqual(await idsOf(context, false, { immediateLimit: 2 }), [ids[4], ids[5]]);
    },
  },
  {
    name: "scan: of some shards returns all their messages whole, and no body of another shard",
    needs: ["shards"],
    async run(context) {
      const shards = Array.from({ length: context.shardCount }, (_, shard) => shard);
      const rows = await context.putAll(
        shards.flatMap((shard): PutValues[] => [
          { shard, body: '"mine"' },
          { shard, body: '"mine"', nextRetryInMs: -5_000 },
        ]),
      );
      const asked = [2, 3, 11];
      const found = await context.store.scan({ ...ALL, shards: asked });
      const whole = found.filter(({ body }) => body === '"mine"');
      const expected = rows.filter(({ shard }) => asked.includes(shard)).map(({ id }) => id);
      assert.deepEqual(whole.map(({ id }) => id).sort(), expected.sort());
      for (const { body, shard } of found) if (!asked.includes(shard)) assert.equal(body, "", `shard ${shard}`);
      assert.deepEqual(
        (await context.store.scan({ ...ALL, shards: [] })).filter(({ body }) => body !== ""),
        [],
      );
    },
  },
  {
    name: "scan: reads past due rows of other shards when told how many they are",
    needs: ["shards"],
    async run(context) {
      const old = (shard: number): PutValues => ({ shard, nextRetryInMs: -5_000 });
      await context.putAll([8, 9, 10, 11, 12, 13].flatMap((shard) => [old(shard), old(shard)]));
      const [own] = await context.putAll([{ shard: 2, nextRetryInMs: -1_000 }]);
      const few = { shards: [2], dueLimit: 2 };
      const ours = async (request: Partial<ScanRequest>): Promise<string[]> =>
        (await context.store.scan({ ...ALL, ...request })).filter(({ shard }) => shard === 2).map(({ id }) => id);
      assert.deepEqual(await ours(few), []);
      assert.deepEqual(await ours({ ...few, foreignDue: 12 }), [own?.id]);
    },
  },
  {
    name: "scan: the shard of a message is that of its ordering key, else of its key, and it stays",
    needs: ["shards", "orderingKey"],
    async run(context) {
      const orderingKey = context.freshKey(5);
      await context.putAll([
        { orderingKey },
        { orderingKey, nextRetryInMs: -1_000 },
        { key: orderingKey },
        { shard: 9 },
      ]);
      const found = await context.scan(context.other.store);
      assert.deepEqual(
        found.map(({ shard }) => shard).sort((one, two) => one - two),
        [5, 5, 5, 9],
      );
    },
  },
  {
    name: "scan: shards are all used, and none of them for most",
    needs: ["shards"],
    async run(context) {
      const count = 800;
      await context.enqueue(Array.from({ length: count }, (_, index) => context.message({ key: `user-${index * 7}` })));
      const found = await context.store.scan({ ...ALL, immediateLimit: count });
      const sizes = new Map<number, number>();
      for (const { shard } of found) sizes.set(shard, (sizes.get(shard) ?? 0) + 1);
      const expected = Array.from({ length: context.shardCount }, (_, shard) => shard);
      assert.deepEqual(
        [...sizes.keys()].sort((one, two) => one - two),
        expected,
      );
      assert.ok(
        Math.max(...sizes.values()) < (count / context.shardCount) * 2,
        `sizes ${[...sizes.values()].join(" ")}`,
      );
    },
  },
  {
    name: "scan: knows a message that was sent before",
    needs: ["messageId"],
    async run(context) {
      await context.putAll([{}, { messageId: "0A1B", sentInMs: -60_000 }]);
      const found = await context.scan();
      assert.deepEqual(
        found.map(({ resend }) => resend),
        [false, true],
      );
    },
  },
  {
    name: "scan: a message that commits after one with a higher id is found all the same",
    needs: ["rowLocks"],
    async run(context) {
      // Never used before: where an earlier case has deleted the same key, InnoDB's duplicate check
      // locks the gap beside it, and `late` would wait.
      const [early, late] = [context.message({ key: randomUUID() }), context.message({ key: randomUUID() })];
      await context.database.transaction(async (tx) => {
        await context.writer.insert(tx, [early], { duplicates: "throw" });
        await context.enqueue([late], { instance: context.other });
        assert.deepEqual(
          (await context.scan()).map(({ key }) => key),
          [late.key],
          "only what is committed",
        );
      });
      assert.deepEqual(
        (await context.scan()).map(({ key }) => key),
        [early.key, late.key],
      );
    },
  },
  {
    name: "scan: waits for nobody's lock",
    needs: ["rowLocks"],
    async run(context) {
      const rows = await context.putAll([{}, { nextRetryInMs: -5_000 }]);
      const found = await context.whileLocked(rows, {
        waiters: 0,
        start: () => context.scan(),
        meanwhile: async () => {
          assert.equal((await context.scan(context.other.store)).length, 2, "while the rows are locked");
        },
      });
      assert.equal(found.length, 2);
    },
  },
];
