/** Reading an archive in which ids repeat, as after a TRUNCATE of the message table. */
import assert from "node:assert/strict";
import type { StoreContractCase } from "../case.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Finished two days ago. */
const OLD = { modifiedInMs: -2 * DAY_MS, sentInMs: -2 * DAY_MS, consumedInMs: -2 * DAY_MS };
const ALL = { mode: "archive", states: ["sent", "consumed"], olderThanMs: 0, limit: 100 } as const;

export const archivePageCases: readonly StoreContractCase[] = [
  {
    name: "list: pages through the archive where ids repeat show each row once, and a filter means rows, not ids",
    async run(context) {
      const { archive, dialect, layout, own } = context;
      const id = dialect.name(layout.columns.id);
      const topicIs = `${dialect.name(layout.columns.topic)} =`;
      const topics = ["first", "second", "third"];
      let ids: string[] = [];
      for (const [round, topic] of topics.entries()) {
        const rows = await context.putAll(Array(3).fill({ ...OLD, state: "sent", topic }));
        if (round === 0) ids = rows.map((row) => row.id);
        for (const [index, row] of rows.entries())
          await context.sql(`UPDATE ${own.messages} SET ${id} = ${ids[index]} WHERE ${id} = ${row.id}`);
        assert.equal(await context.store.housekeeping.removeFinished(ALL), 3);
        const at = dialect.ownAt((round - topics.length) * HOUR_MS);
        await context.sql(`UPDATE ${own.archive} SET archived_at = ${at} WHERE ${topicIs} '${topic}'`);
      }
      assert.equal(await archive.count(), 9);
      const newestFirst = ids.flatMap((each) => topics.map((topic) => `${each} ${topic}`)).reverse();
      for (const limit of [1, 2, 4, 100]) {
        const seen: string[] = [];
        let beforeId: string | undefined;
        do {
          const page = await context.admin.list({ filter: {}, limit, archived: true, beforeId });
          seen.push(...page.messages.map((message) => `${message.id} ${message.topic}`));
          beforeId = page.nextBeforeId;
        } while (beforeId !== undefined && seen.length <= 9);
        assert.deepEqual(seen, newestFirst, `pages of ${limit}`);
      }
      const filter = { topic: "second" };
      const found = await context.admin.list({ filter, limit: 2, archived: true });
      assert.deepEqual(
        found.messages.map(({ topic }) => topic),
        ["second", "second"],
      );
      const reconcile = context.database.reconcileStore({ layout });
      const window = { fromMs: 0, toMs: Date.now() + DAY_MS };
      const walked: string[] = [];
      try {
        await reconcile.view((view) =>
          view.messages(window, undefined, (batch) =>
            walked.push(...batch.map((message) => `${message.id} ${message.key}`)),
          ),
        );
      } finally {
        await reconcile.close();
      }
      assert.equal(new Set(walked).size, 9);
      assert.equal(walked.length, 9);
    },
  },
  {
    name: "list: a window of time shows what was archived after ids began again",
    async run(context) {
      const { dialect, layout, own } = context;
      const id = dialect.name(layout.columns.id);
      const archived = async (topic: string, days: number, idOf: (index: number) => number): Promise<void> => {
        const rows = await context.putAll(Array(12).fill({ ...OLD, state: "sent", topic, createdInMs: days * DAY_MS }));
        for (const [index, row] of rows.entries())
          await context.sql(`UPDATE ${own.messages} SET ${id} = ${idOf(index)} WHERE ${id} = ${row.id}`);
        assert.equal(await context.store.housekeeping.removeFinished(ALL), 12);
        const at = dialect.ownAt((days + 0.5) * DAY_MS);
        await context.sql(
          `UPDATE ${own.archive} SET archived_at = ${at} WHERE ${dialect.name(layout.columns.topic)} = '${topic}'`,
        );
      };
      // The new row 1 is not in the archive yet: its lowest id says nothing.
      await archived("before", -60, (index) => 1 + index * 1_000);
      await archived("after", -2, (index) => 2 + index);
      const window = { createdAfter: daysAgo(3), createdBefore: daysAgo(1) };
      const found = await context.admin.list({ filter: window, limit: 100, archived: true });
      assert.deepEqual(found.messages.map(({ topic }) => topic).sort(), Array(12).fill("after"));
    },
  },
];

function daysAgo(days: number): string {
  return new Date(Date.now() - days * DAY_MS).toISOString();
}
