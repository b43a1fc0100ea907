/** Rewinds: where to, what a dry run counts, and who is fenced out. */

import assert from "node:assert/strict";
import { recordTable } from "../../../../src/databases/sql/queue/names.ts";
import { firstIdOf } from "../../../../src/message/queue-id.ts";
import type { RewindRequest, RewindTarget } from "../../../../src/queue/rewinding/requests.ts";
import { nextVersion } from "../../../../src/runtime/next-version.ts";
import type { QueueContractCase } from "../case.ts";
import type { QueueCaseContext } from "../context.ts";
import { after, consumed, type Member } from "../member.ts";
import { placeOf } from "../written.ts";

const [FIRST, SECOND] = [202501, 202502];

/** A request of the group `billing`; changes replace parts of it. */
export function rewinding(
  { topic }: Pick<QueueCaseContext, "topic">,
  target: RewindTarget,
  changes: Partial<RewindRequest> = {},
): RewindRequest {
  return {
    topic,
    group: "billing",
    target,
    partitions: undefined,
    expected: undefined,
    overDroppedMonths: false,
    author: "王",
    reason: "wrong prices",
    ...changes,
  };
}

interface Read {
  /** Three of the first month, then three of the second; all of partition 0. */
  readonly ids: readonly string[];
  /** The last one of partition 1, which has two of the second month. */
  readonly lastOfOne: string;
  readonly billing: Member;
}

/** A group that has consumed two months of two partitions. */
export async function hasRead(context: QueueCaseContext): Promise<Read> {
  const ids = await context.putOld(FIRST, [{}, {}, {}]);
  const more = await context.putOld(SECOND, [{}, { partition: 1 }, {}, { partition: 1 }, {}]);
  ids.push(...[0, 2, 4].map((n) => more[n] ?? ""));
  const billing = await context.member();
  const records = [consumed(ids[0]), consumed(ids[3], { lastId: ids[5] ?? "", messages: 3 })];
  await billing.settle({ nextId: after(ids[5]), records });
  await billing.settle({ partition: 1, nextId: after(more[3]) });
  return { ids, billing, lastOfOne: more[3] ?? "" };
}

async function placesOf(context: QueueCaseContext): Promise<string[]> {
  return [await placeOf(context), await placeOf(context, "billing", 1)];
}

/** Rewinds, which has to succeed. */
export async function rewound(
  context: QueueCaseContext,
  request: RewindRequest,
): Promise<Exclude<Awaited<ReturnType<typeof context.rewinding.rewind>>, { refused: string }>> {
  const done = await context.rewinding.rewind(request);
  assert.ok(!("refused" in done), `refused: ${JSON.stringify(done)}`);
  return done;
}

export const rewindCases: readonly QueueContractCase[] = [
  {
    name: "rewind: a dry run counts what comes again and what of it was consumed, and moves nothing",
    async run(context) {
      const { ids, lastOfOne } = await hasRead(context);
      const before = await placesOf(context);
      const plan = await context.rewinding.plan(rewinding(context, { kind: "id", id: ids[1] ?? "" }));
      assert.deepEqual(plan, {
        partitions: [
          { partition: 0, from: after(ids[5]), to: ids[1], messages: 5, consumed: 3 },
          { partition: 1, from: after(lastOfOne), to: ids[1], messages: 2, consumed: 0 },
        ],
        droppedMonths: [],
      });
      assert.deepEqual(await placesOf(context), before);
      assert.deepEqual(await context.rewinding.log({ topic: context.topic, group: "billing" }, 10), []);
    },
  },
  {
    name: "rewind: to the start, to an id, to a time and to the end",
    async run(context) {
      const { ids, lastOfOne } = await hasRead(context);
      const ends = [after(ids[5]), after(lastOfOne)];
      const start = firstIdOf(FIRST);
      const goals: readonly (readonly [RewindTarget, readonly (string | undefined)[]])[] = [
        [{ kind: "start" }, [start, start]],
        [{ kind: "id", id: ids[4] ?? "" }, [ids[4], ids[4]]],
        [{ kind: "time", id: firstIdOf(SECOND) }, [firstIdOf(SECOND), firstIdOf(SECOND)]],
        [{ kind: "time", id: firstIdOf(203001) }, ends],
        [{ kind: "start" }, [start, start]],
        [{ kind: "end" }, ends],
      ];
      for (const [target, expected] of goals) {
        await rewound(context, rewinding(context, target));
        assert.deepEqual(await placesOf(context), expected, JSON.stringify(target));
      }
    },
  },
  {
    name: "rewind: so many messages back, over months, in each partition",
    async run(context) {
      const { ids } = await hasRead(context);
      const plan = await context.rewinding.plan(rewinding(context, { kind: "back", messages: 4 }));
      assert.ok(!("refused" in plan));
      assert.deepEqual(
        plan.partitions.map(({ to, messages }) => [to, messages]),
        [
          [ids[2], 4],
          [firstIdOf(SECOND), 2],
        ],
        "where there are fewer, to the first one",
      );
      await rewound(context, rewinding(context, { kind: "back", messages: 1 }, { partitions: [0] }));
      assert.equal(await placeOf(context), ids[5]);
    },
  },
  {
    name: "rewind: to where another group is",
    async run(context) {
      const { ids } = await hasRead(context);
      const audit = await context.member({ group: "audit" });
      await audit.settle({ nextId: ids[4] });
      await rewound(context, rewinding(context, { kind: "group", group: "audit" }));
      assert.deepEqual(await placesOf(context), [ids[4], "0"]);
      const unknown = await context.rewinding.rewind(rewinding(context, { kind: "group", group: "nobody" }));
      assert.deepEqual(unknown, { refused: "unknown group", group: "nobody" });
    },
  },
  {
    name: "rewind: a group that nobody knows is refused, and so is an id ahead of the last message",
    async run(context) {
      const { lastOfOne, ids } = await hasRead(context);
      const nobody = rewinding(context, { kind: "start" }, { group: "nobody" });
      assert.deepEqual(await context.rewinding.rewind(nobody), { refused: "unknown group", group: "nobody" });
      const ahead = await context.rewinding.rewind(rewinding(context, { kind: "id", id: firstIdOf(203001) }));
      const lastId = [ids[5] ?? "", lastOfOne].sort().at(-1);
      assert.deepEqual(ahead, { refused: "ahead", lastId });
      assert.equal(await placeOf(context), after(ids[5]));
    },
  },
  {
    name: "rewind: begins a new round and epoch, and whatever a member writes of before changes nothing",
    async run(context) {
      const { ids, billing } = await hasRead(context);
      const [before] = await billing.consumption.progress([0]);
      await rewound(context, rewinding(context, { kind: "id", id: ids[3] ?? "" }));
      const [now] = await billing.consumption.progress([0]);
      assert.deepEqual(now, {
        partition: 0,
        nextId: ids[3],
        round: 1,
        epoch: nextVersion(before?.epoch ?? "NaN"),
      });
      assert.deepEqual((await billing.heartbeat()).held, [], "it holds nothing any more");
      assert.equal(await billing.settle({ fromId: ids[3] ?? "", nextId: after(ids[3]) }), false);
      const next = await context.member();
      const records = [consumed(ids[3])];
      assert.equal(await next.settle({ fromId: ids[3] ?? "", nextId: ids[4], round: 1, records }), true);
      const rounds = await context.rows(
        `SELECT round FROM ${recordTable(context.topic, SECOND)} WHERE message_id = ${ids[3]} ORDER BY round`,
      );
      assert.deepEqual(
        rounds.map(({ round }) => Number(round)),
        [0, 1],
        "a record of each round",
      );
    },
  },
  {
    name: "rewind: only the partitions that were asked for move",
    async run(context) {
      const { ids } = await hasRead(context);
      const done = await rewound(context, rewinding(context, { kind: "start" }, { partitions: [1] }));
      assert.deepEqual(
        done.partitions.map(({ partition }) => partition),
        [1],
      );
      assert.deepEqual(await placesOf(context), [after(ids[5]), firstIdOf(FIRST)]);
    },
  },
  {
    name: "rewind: a group that has moved since somebody looked is left where it is",
    async run(context) {
      const { ids, billing } = await hasRead(context);
      const expected = [{ partition: 0, from: after(ids[5]) }];
      await billing.settle({ fromId: after(ids[5]), nextId: after(after(ids[5])) });
      const request = rewinding(context, { kind: "start" }, { expected });
      const at = after(after(ids[5]));
      assert.deepEqual(await context.rewinding.rewind(request), {
        refused: "moved",
        partitions: [{ partition: 0, at }],
      });
      assert.equal(await placeOf(context), at);
      await rewound(context, { ...request, expected: [{ partition: 0, from: at }] });
    },
  },
  {
    name: "rewind: one to where the group is already is none",
    async run(context) {
      await hasRead(context);
      const done = await rewound(context, rewinding(context, { kind: "end" }));
      assert.deepEqual(done, { rewind: undefined, partitions: [], droppedMonths: [], setAside: 0, restored: 0 });
    },
  },
  {
    name: "rewind: the log tells each one, the newest first",
    async run(context) {
      const { ids, lastOfOne } = await hasRead(context);
      await rewound(context, rewinding(context, { kind: "id", id: ids[3] ?? "" }));
      await rewound(context, rewinding(context, { kind: "end" }, { partitions: [0], author: "ann", reason: "enough" }));
      const log = await context.rewinding.log({ topic: context.topic, group: "billing" }, 10);
      const entries = log.map(({ at, ...entry }) => {
        assert.ok(Math.abs(Date.parse(at) - Date.now()) < 120_000, at);
        return entry;
      });
      const first = { rewind: 1, round: 1, undoOf: null, author: "王", reason: "wrong prices", to: ids[3] };
      assert.deepEqual(entries, [
        {
          rewind: 2,
          partition: 0,
          round: 2,
          undoOf: null,
          author: "ann",
          reason: "enough",
          from: ids[3],
          to: after(ids[5]),
        },
        { ...first, partition: 1, from: after(lastOfOne) },
        { ...first, partition: 0, from: after(ids[5]) },
      ]);
      assert.equal((await context.rewinding.log({ topic: context.topic, group: "billing" }, 1)).length, 1);
    },
  },
];
