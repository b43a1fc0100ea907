/** What people do with redeliveries, dead letters and the first unfinished message. */
import assert from "node:assert/strict";
import type { Removal } from "../../../../src/queue/groups/requests.ts";
import type { QueueContractCase } from "../case.ts";
import { type QueueCaseContext, rolledBack } from "../context.ts";
import { after, again, consumed, type Member } from "../member.ts";
import { placeOf, recordsOf, redeliveriesOf } from "../written.ts";

const NOTE = { author: "王", reason: "wrong prices", ip: "10.0.0.9" };

interface Letters {
  readonly ids: readonly string[];
  readonly billing: Member;
  readonly key: { readonly topic: string; readonly group: string };
}

/** One dead letter, one that waits an hour, and two of a key, the second behind the first. */
async function letters(context: QueueCaseContext): Promise<Letters> {
  const ids = await context.append([{}, {}, {}, {}]);
  const billing = await context.member();
  const redeliveries = [
    again(ids[0], { state: "dead", attempt: 8 }),
    again(ids[1], { dueInMs: 3_600_000, attempt: 2 }),
    again(ids[2], { orderingKey: "k", dueInMs: 3_600_000 }),
    again(ids[3], { orderingKey: "k", dueInMs: null, attempt: 0 }),
  ];
  assert.equal(await billing.settle({ nextId: after(ids[3]), redeliveries }), true);
  return { ids, billing, key: { topic: context.topic, group: "billing" } };
}

/** Three messages, of which the first is consumed. */
async function atSecond(context: QueueCaseContext): Promise<Letters> {
  const ids = await context.append([{}, {}, {}]);
  const billing = await context.member();
  await billing.settle({ nextId: ids[1] });
  return { ids, billing, key: { topic: context.topic, group: "billing" } };
}

function removal(ids: readonly (string | undefined)[], changes: Partial<Removal> = {}): Removal {
  return { ids: ids.map(String), from: "waiting or dead", result: "skipped", note: NOTE, ...changes };
}

async function left(context: QueueCaseContext): Promise<string[]> {
  return (await redeliveriesOf(context)).map(({ id }) => id);
}

export const byHandCases: readonly QueueContractCase[] = [
  {
    name: "redeliver: dead letters and waiting ones are due now, a dead one with all its attempts",
    async run(context) {
      const { ids, billing, key } = await letters(context);
      const wanted = [ids[0], ids[1], ids[3], "77"].map(String);
      assert.deepEqual(await context.groups.redeliver(key, 0, wanted, NOTE), [
        { id: ids[0], result: "changed" },
        { id: ids[1], result: "changed" },
        { id: ids[3], result: "waiting" },
        { id: "77", result: "absent" },
      ]);
      const due = await billing.consumption.due(0, 10);
      assert.deepEqual(
        due
          .map(({ id, attempt, firstAttempt }) => [id, attempt, firstAttempt])
          .toSorted(([left], [right]) => (String(left) < String(right) ? -1 : 1)),
        [
          [ids[0], 8, 8],
          [ids[1], 2, 0],
        ],
        "what waits behind its key goes on waiting",
      );
    },
  },
  {
    name: "redeliver: a record says who and why, beside that of a later decision",
    async run(context) {
      const { ids, key } = await letters(context);
      const [id = ""] = ids;
      await context.groups.redeliver(key, 0, [id], NOTE);
      await context.groups.remove(key, 0, removal([id]));
      const detail = await context.searching.detail(context.topic, id);
      assert.ok(detail !== undefined && "entries" in detail);
      assert.deepEqual(
        detail.entries.map(({ attempt, result, error, ip }) => [attempt, result, error, ip]),
        [
          [-9, "redelivered", "王: wrong prices", "10.0.0.9"],
          [0, "skipped", "王: wrong prices", "10.0.0.9"],
        ],
      );
    },
  },
  {
    name: "remove: takes messages out of the group's hands, with a record that says who and why",
    async run(context) {
      const { ids, key } = await letters(context);
      const results = await context.groups.remove(key, 0, removal([ids[0], ids[1], "77"], { result: "discarded" }));
      assert.deepEqual(results, [
        { id: ids[0], result: "changed" },
        { id: ids[1], result: "changed" },
        { id: "77", result: "absent" },
      ]);
      assert.deepEqual(await left(context), [ids[2], ids[3]]);
      assert.deepEqual(
        (await recordsOf(context)).map(({ id, attempt, result }) => [id, attempt, result]),
        [
          [ids[0], 0, 4],
          [ids[1], 0, 4],
        ],
      );
      const detail = await context.searching.detail(context.topic, ids[0] ?? "");
      assert.ok(detail !== undefined && "entries" in detail);
      const [entry] = detail.entries;
      assert.deepEqual([entry?.result, entry?.error, entry?.ip], ["discarded", "王: wrong prices", "10.0.0.9"]);
    },
  },
  {
    name: "remove: where only dead letters are meant, a waiting one stays",
    async run(context) {
      const { ids, key } = await letters(context);
      const results = await context.groups.remove(key, 0, removal([ids[0], ids[1]], { from: "dead" }));
      assert.deepEqual(
        results.map(({ result }) => result),
        ["changed", "waiting"],
      );
      assert.deepEqual(await left(context), ids.slice(1));
    },
  },
  {
    name: "remove: the next one of its ordering key is due",
    async run(context) {
      const { ids, billing, key } = await letters(context);
      await context.groups.remove(key, 0, removal([ids[2]]));
      assert.deepEqual(
        (await billing.consumption.due(0, 10)).map(({ id }) => id),
        [ids[3]],
      );
    },
  },
  {
    name: "removeIn: rolls back with the caller's transaction",
    async run(context) {
      const { ids, key } = await letters(context);
      const { database, groups } = context;
      await rolledBack(database, async (tx) => {
        const [result] = await groups.removeIn(tx, key, 0, removal([ids[0]]));
        assert.equal(result?.result, "changed");
      });
      assert.deepEqual(await left(context), ids);
      assert.deepEqual(await recordsOf(context), []);
    },
  },
  {
    name: "remove: waits for a settle of the partition that is under way, and sees what it wrote",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const { ids, billing, key } = await letters(context);
      const late = context.other.rooms.groups;
      let removing: ReturnType<typeof late.remove> | undefined;
      await context.database.transaction(async (tx) => {
        assert.equal(await billing.settleIn(tx, { redelivered: [ids[1] ?? ""] }), true);
        let ended = false;
        removing = late.remove(key, 0, removal([ids[1]]));
        void removing
          .catch(() => undefined)
          .finally(() => {
            ended = true;
          });
        await context.waiting(1, () => ended);
      });
      assert.deepEqual(await removing, [{ id: ids[1], result: "absent" }]);
      assert.deepEqual(await recordsOf(context), []);
    },
  },
  {
    name: "skipHead: moves the progress behind the first unfinished message, and fences out who holds it",
    async run(context) {
      const { ids, billing, key } = await atSecond(context);
      assert.equal(await context.groups.skipHead(key, ids[1] ?? "", NOTE), "skipped");
      assert.equal(await placeOf(context), after(ids[1]));
      const [record, ...more] = await recordsOf(context);
      assert.deepEqual([record?.id, record?.attempt, record?.result, more], [ids[1], 0, 3, []]);
      const late = { fromId: after(ids[1]), nextId: after(ids[2]), records: [consumed(ids[2])] };
      assert.equal(await billing.settle(late), false, "what was under way comes again");
      assert.equal(await (await context.member()).settle(late), true);
    },
  },
  {
    name: "skipHead: skips nothing but the first that the group has not finished",
    async run(context) {
      const { ids, billing, key } = await atSecond(context);
      const answers = [];
      for (const id of [ids[0], ids[2]]) answers.push(await context.groups.skipHead(key, id ?? "", NOTE));
      assert.deepEqual(answers, ["finished", "not the first"]);
      await billing.settle({ fromId: ids[1] ?? "", nextId: after(ids[2]) });
      const ahead = String(BigInt(ids[2] ?? 0) + (1n << 40n));
      assert.equal(await context.groups.skipHead(key, ahead, NOTE), "no message");
      assert.equal(await placeOf(context), after(ids[2]));
      assert.deepEqual(await recordsOf(context), []);
    },
  },
];
