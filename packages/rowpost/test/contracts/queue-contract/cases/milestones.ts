/** What messages are counted by: the counts are the same with and without. */
import assert from "node:assert/strict";
import { firstIdOf } from "../../../../src/message/queue-id.ts";
import type { QueueContractCase } from "../case.ts";
import type { QueueCaseContext } from "../context.ts";
import { after, type Member } from "../member.ts";
import { oldId } from "../old-months.ts";
import { dropping } from "./retention.ts";
import { rewinding } from "./rewind.ts";

const [FIRST, SECOND] = [202501, 202502];
const EVERY = 5_000;

interface Read {
  /** Of partition 0: two milestones and a few, then one and a few in the second month. */
  readonly ids: readonly string[];
  readonly billing: Member;
}

/** A group that has passed the messages of two months, most of them in one partition. */
async function hasReadMany(context: QueueCaseContext): Promise<Read> {
  const ids: string[] = [];
  for (const [month, messages] of [
    [FIRST, 2 * EVERY + 3],
    [SECOND, EVERY + 1],
  ] as const) {
    const all = Array.from({ length: messages }, (_, n) => ({ partition: n % EVERY === 1 ? 1 : 0 }));
    const put = await context.putOld(month, [...all, {}, {}, {}]);
    ids.push(...put.filter((_, n) => all[n]?.partition !== 1));
  }
  const billing = await context.member();
  await billing.settle({ nextId: after(ids.at(-1)) });
  return { ids, billing };
}

async function milestonesOf({ dialect, rows, topic }: QueueCaseContext): Promise<string[]> {
  const id = `CAST(message_id AS ${dialect.textType})`;
  const found = await rows(
    `SELECT ${id} AS id FROM message_milestone WHERE topic_id = '${topic}' ORDER BY partition_no, message_id`,
  );
  return found.map((row) => String(row["id"]));
}

const setAll = (context: QueueCaseContext, fromMonth: number | undefined = 0): Promise<number> =>
  context.rewinding.setMilestones({ topic: context.topic, fromMonth, isOver: () => false });

/** Where the group goes from the end, and how many messages come again. */
async function backFrom(context: QueueCaseContext, messages: number): Promise<[string | undefined, number]> {
  const target = { kind: "back", messages } as const;
  const plan = await context.rewinding.plan(rewinding(context, target, { partitions: [0] }));
  assert.ok(!("refused" in plan));
  const [moved] = plan.partitions;
  return [moved?.to, moved?.messages ?? 0];
}

export const milestoneCases: readonly QueueContractCase[] = [
  {
    name: "milestones: so many messages back are the same with them as without, over months",
    async run(context) {
      const { ids } = await hasReadMany(context);
      const near = (place: number): number[] => [place - 1, place, place + 1];
      const inSecond = ids.filter((id) => BigInt(id) >= BigInt(firstIdOf(SECOND))).length;
      const places = [
        1,
        ...near(inSecond - EVERY),
        ...near(inSecond),
        ...near(inSecond + 3),
        ...near(ids.length - EVERY),
      ];
      const expected = places.map((place) => [ids.at(-place), place]);
      const found = async (): Promise<unknown> => {
        const all: unknown[] = [];
        for (const place of places) all.push(await backFrom(context, place));
        return all;
      };
      assert.deepEqual(await found(), expected, "without");
      await setAll(context);
      assert.deepEqual(await found(), expected, "with");
      assert.deepEqual(await backFrom(context, ids.length + 1), [firstIdOf(FIRST), ids.length], "fewer: to the first");
    },
  },
  {
    name: "milestones: every 5,000th message of a partition in a month, once, whoever sets them",
    async run(context) {
      const { ids } = await hasReadMany(context);
      const inFirst = ids.filter((id) => BigInt(id) < BigInt(firstIdOf(SECOND)));
      const expected = [ids[EVERY - 1], ids[2 * EVERY - 1], ids[inFirst.length + EVERY - 1]];
      await Promise.all([setAll(context), setAll(context)]);
      await setAll(context);
      assert.deepEqual(await milestonesOf(context), expected);
      const rest = Array.from({ length: EVERY }, (_, n) => ({ key: String(n) }));
      const more = await context.append(rest);
      await setAll(context, SECOND);
      assert.deepEqual(await milestonesOf(context), [...expected, more.at(-1)]);
    },
  },
  {
    name: "milestones: what is over goes on in the month where it stood",
    async run(context) {
      await hasReadMany(context);
      let left = 2;
      const isOver = (): boolean => {
        left -= 1;
        return left < 0;
      };
      assert.equal(await context.rewinding.setMilestones({ topic: context.topic, fromMonth: FIRST, isOver }), FIRST);
      assert.equal((await milestonesOf(context)).length, 2);
      await setAll(context, FIRST);
      assert.equal((await milestonesOf(context)).length, 3);
    },
  },
  {
    name: "milestones: what a deleted topic of the same name has left counts nothing",
    async run(context) {
      const ids = await context.append([{}, {}, {}]);
      const before = BigInt(ids[0] ?? 0) - 64n;
      await context.sql(
        `INSERT INTO message_milestone (topic_id, partition_no, message_id) VALUES ('${context.topic}', 0, ${before})`,
      );
      const billing = await context.member();
      await billing.settle({ nextId: after(ids[2]) });
      const plan = await context.rewinding.plan(rewinding(context, { kind: "start" }, { partitions: [0] }));
      assert.ok(!("refused" in plan));
      assert.deepEqual(
        plan.partitions.map(({ messages }) => messages),
        [3],
      );
    },
  },
  {
    name: "milestones: go with their month, and with their topic",
    async run(context) {
      const { ids } = await hasReadMany(context);
      await setAll(context);
      await dropping(context, FIRST);
      assert.deepEqual(await milestonesOf(context), [ids.filter((id) => id >= oldId(SECOND, 0))[EVERY - 1]]);
      await context.store.topics.remove(context.topic);
      assert.deepEqual(await milestonesOf(context), []);
    },
  },
];
