/** Ids have the order of the commits. */
import assert from "node:assert/strict";
import { QUEUE_EPOCH_MS, queueIdMs } from "../../../../src/message/queue-id.ts";
import { compareIds } from "../../../../src/runtime/compare-ids.ts";
import { until } from "../../../../src/testing/contract-run.ts";
import type { QueueContractCase } from "../case.ts";
import { ChangedMind, type QueueCaseContext } from "../context.ts";

const HOUR_MS = 3_600_000;

/** Appends in the second instance while the first has one uncommitted; what became of both. */
async function whileAppending(
  { database, appendIn, append, other, waiting }: QueueCaseContext,
  partition: number,
  commits: boolean,
): Promise<{ readonly first: string; readonly second: string; readonly waited: boolean }> {
  let first = "";
  let ended = false;
  let waited = false;
  let second: Promise<readonly string[]> | undefined;
  await database
    .transaction(async (tx) => {
      const result = await appendIn(tx, [{ partition: 0 }]);
      assert.ok("ids" in result);
      [first = ""] = result.ids;
      second = append([{ partition }], { instance: other });
      void second
        .catch(() => undefined)
        .finally(() => {
          ended = true;
        });
      if (partition === 0) await waiting(1, () => ended);
      else await until("the other partition is free", () => ended, { withinMs: 4_000 });
      waited = !ended;
      if (!commits) throw new ChangedMind();
    })
    .catch((error: unknown) => {
      if (!(error instanceof ChangedMind)) throw error;
    });
  return { first, second: (await second)?.[0] ?? "", waited };
}

/** Sets the counter of a partition by hand, to an instant so far from now. */
async function setCounter({ sql, topic }: QueueCaseContext, aheadMs: number): Promise<bigint> {
  const last = BigInt(Date.now() + aheadMs - QUEUE_EPOCH_MS) << 16n;
  await sql(`UPDATE message_topic_partition SET last_id = ${last} WHERE topic_id = '${topic}' AND partition_no = 0`);
  return last;
}

export const appendOrderCases: readonly QueueContractCase[] = [
  {
    name: "order: whoever gets a later id of a partition has waited for the commit of the one before",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const { first, second, waited } = await whileAppending(context, 0, true);
      assert.ok(waited, "the second append waits until the first transaction ends");
      assert.ok(compareIds(first, second) < 0, `${first} before ${second}`);
    },
  },
  {
    name: "order: an append goes on behind one that is rolled back",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const { second, waited } = await whileAppending(context, 0, false);
      assert.ok(waited, "the second append waits until the first transaction ends");
      const reader = context.consumption("reader");
      const toId = (await reader.counters()).lastIds.get(0) ?? "0";
      const found = await reader.read({ month: context.month, partition: 0, fromId: "0", toId, limit: 10 });
      assert.deepEqual(
        found?.map(({ id }) => id),
        [second],
      );
    },
  },
  {
    name: "order: appends to another partition do not wait",
    needs: ["rowLocks", "instances"],
    async run(context) {
      const { second } = await whileAppending(context, 1, true);
      assert.notEqual(second, "");
    },
  },
  {
    name: "order: ids have the database's time",
    async run({ append, groups }) {
      const beforeMs = await groups.nowMs();
      const [id = ""] = await append([{}]);
      const afterMs = await groups.nowMs();
      assert.ok(queueIdMs(id) >= beforeMs && queueIdMs(id) <= afterMs, `${beforeMs} ${queueIdMs(id)} ${afterMs}`);
    },
  },
  {
    name: "order: when the clock was ahead and is set back, ids go on from the last one",
    async run(context) {
      // Within the months that have tables.
      const last = await setCounter(context, HOUR_MS);
      const ids = await context.append([{}, {}]);
      assert.deepEqual(
        ids.map((id) => BigInt(id) >> 6n),
        [last + 1n, last + 2n],
      );
    },
  },
  {
    name: "order: when the clock has gone ahead of the last id, ids follow the clock",
    async run(context) {
      const last = await setCounter(context, -HOUR_MS);
      const [id = ""] = await context.append([{}]);
      assert.ok((BigInt(id) >> 6n) - last > BigInt(HOUR_MS - 60_000) << 16n, "an hour later");
    },
  },
];
