/**
 * Moving finished messages away: only those that are finished, and never one that changes meanwhile
 * (rule: checked-move).
 */
import assert from "node:assert/strict";
import { ENGINE_COLUMNS } from "../../../../src/databases/sql/layouts.ts";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues, StoreCaseContext } from "../context.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Finished two days ago. */
const OLD: PutValues = { modifiedInMs: -2 * DAY_MS, sentInMs: -2 * DAY_MS, consumedInMs: -2 * DAY_MS };

/** Removes sent and consumed rows of any age, unless the changes say otherwise. */
function remove(
  context: StoreCaseContext,
  changes: Partial<Parameters<typeof context.store.housekeeping.removeFinished>[0]> = {},
): Promise<number> {
  return context.store.housekeeping.removeFinished({
    mode: "archive",
    states: ["sent", "consumed"],
    olderThanMs: 0,
    limit: 100,
    ...changes,
  });
}

/** Copies a row into the archive by hand. */
function copyText({ dialect, layout, own }: StoreCaseContext, row: PutRow): string {
  const columns = Object.entries(layout.columns).filter(
    ([property, name]) => name !== undefined && !ENGINE_COLUMNS.has(property),
  );
  const names = columns.map(([, name]) => dialect.name(String(name))).join(", ");
  return `INSERT INTO ${own.archive} (${names}, archived_at) SELECT ${names}, ${dialect.ownAt(0)} FROM ${own.messages} WHERE ${dialect.name(layout.columns.id)} = ${row.id}`;
}

/**
 * Runs `work` while the archive takes no id twice, so that a copy can be made to fail or wait. On
 * MySQL by the primary key: behind another unique index the copy would hold what its blocker
 * deletes.
 */
async function whileIdsAreUnique(context: StoreCaseContext, work: () => Promise<void>): Promise<void> {
  const { archive } = context.own;
  const id = context.dialect.name(context.layout.columns.id);
  const isMysql = context.database.dialect === "mysql";
  const key = (columns: string): string => `ALTER TABLE ${archive} DROP PRIMARY KEY, ADD PRIMARY KEY (${columns})`;
  await context.sql(isMysql ? key(id) : `CREATE UNIQUE INDEX one_place ON ${archive} (${id})`);
  try {
    await work();
  } finally {
    await context.sql(isMysql ? key(`${id}, archived_at`) : "DROP INDEX one_place");
  }
}

export const archiveCases: readonly StoreContractCase[] = [
  {
    name: "removeFinished: an archived row stands in the archive as it was, with the time, and nowhere else",
    async run(context) {
      const { dialect, own } = context;
      const row = await context.put({
        ...OLD,
        state: "sent",
        topic: "shipping",
        body: '{"消":"🚀"}',
        headers: '{"a":"b"}',
        contentType: "text/plain",
        retryCount: 2,
        deliveryCount: 3,
        lockVersion: 7,
        deliverInMs: -3 * DAY_MS,
        lastRetryInMs: -2 * DAY_MS,
        messageId: "0A1B",
      });
      const before = await context.table.exact(row.id);
      assert.equal(await remove(context), 1);
      assert.equal(await context.table.find(row.id), undefined);
      assert.deepEqual(await context.archive.exact(row.id), before);
      const { rows } = await context.sql(`SELECT ${dialect.ownMsUntil("archived_at")} AS in_ms FROM ${own.archive}`);
      context.assertInMs(Number(rows[0]?.["in_ms"]), 0, "archived_at");
      const [listed] = (await context.admin.list({ filter: { ids: [row.id] }, limit: 10, archived: true })).messages;
      assert.deepEqual([listed?.id, listed?.state, listed?.archived], [row.id, "sent", true]);
    },
  },
  {
    name: "removeFinished: a deleted row is gone, also from the archive",
    async run(context) {
      await context.putAll([
        { ...OLD, state: "sent" },
        { ...OLD, state: "consumed" },
      ]);
      assert.equal(await remove(context, { mode: "delete" }), 2);
      assert.deepEqual([await context.table.count(), await context.archive.count()], [0, 0]);
    },
  },
  {
    name: "removeFinished: rows that are not finished stay, however old they are",
    async run(context) {
      const states = MESSAGE_STATES.filter((state) => state !== "sent" && state !== "consumed");
      const rows = await context.putAll(states.map((state) => ({ ...OLD, state })));
      for (const mode of ["archive", "delete"] as const) {
        assert.equal(await context.assertUnchanged(rows, () => remove(context, { mode })), 0);
      }
    },
  },
  {
    name: "removeFinished: only the states that were asked for",
    async run(context) {
      const [sent, consumed] = await context.putAll([
        { ...OLD, state: "sent" },
        { ...OLD, state: "consumed" },
      ]);
      assert.ok(sent && consumed);
      assert.equal(await context.assertUnchanged([sent], () => remove(context, { states: ["consumed"] })), 1);
      assert.equal(await remove(context, { states: ["sent"] }), 1);
      assert.equal(await remove(context, { states: [] }), 0);
    },
  },
  {
    name: "removeFinished: a sent row that waits for its confirmation stays, before its deadline and after",
    async run(context) {
      const rows = await context.putAll([
        { ...OLD, state: "sent", nextRetryInMs: HOUR_MS },
        { ...OLD, state: "sent", nextRetryInMs: -HOUR_MS },
      ]);
      assert.equal(await context.assertUnchanged(rows, () => remove(context)), 0);
    },
  },
  {
    name: "removeFinished: rows stay until they are old enough, by the time when they got into their state",
    async run(context) {
      const rows = await context.putAll([
        { ...OLD, state: "sent" },
        { state: "sent", sentInMs: -HOUR_MS, modifiedInMs: -HOUR_MS, createdInMs: -3 * DAY_MS },
        { state: "consumed", consumedInMs: -HOUR_MS, modifiedInMs: -HOUR_MS, sentInMs: -3 * DAY_MS },
        { ...OLD, state: "consumed" },
      ]);
      const [, young, youngToo] = rows;
      assert.ok(young && youngToo);
      const removed = await context.assertUnchanged([young, youngToo], () => remove(context, { olderThanMs: DAY_MS }));
      assert.equal(removed, 2);
      assert.equal(await remove(context, { olderThanMs: HOUR_MS / 2 }), 2);
    },
  },
  {
    name: "removeFinished: takes no more rows than its limit, over all states",
    async run(context) {
      await context.putAll([
        ...Array(3).fill({ ...OLD, state: "sent" }),
        ...Array(3).fill({ ...OLD, state: "consumed" }),
      ]);
      assert.equal(await remove(context, { limit: 4 }), 4);
      assert.equal(await context.table.count(), 2);
      assert.equal(await remove(context, { limit: 4 }), 2);
      assert.equal(await context.archive.count(), 6);
    },
  },
  {
    name: "removeFinished: an archived message's type and key can be used and archived again",
    async run(context) {
      const key = context.freshKey();
      for (let round = 1; round <= 2; round += 1) {
        await context.put({ ...OLD, state: "sent", key });
        assert.equal(await remove(context), 1);
        assert.equal(await context.archive.count(), round);
      }
    },
  },
  {
    name: "removeFinished: a row that the archive does not take stays, and the others go",
    async run(context) {
      const rows = await context.putAll([
        { ...OLD, state: "sent" },
        { ...OLD, state: "sent" },
      ]);
      const [, second] = rows;
      assert.ok(second);
      await context.sql(copyText(context, second));
      await whileIdsAreUnique(context, async () => {
        assert.equal(await context.assertUnchanged([second], () => remove(context)), 1);
      });
      assert.equal(await context.archive.count(), 2);
    },
  },
  {
    name: "removeFinished: a row that somebody holds is left, or looked at again after the wait (rule: checked-move)",
    needs: ["rowLocks"],
    async run(context) {
      const rows = await context.putAll([
        { ...OLD, state: "sent" },
        { ...OLD, state: "sent" },
      ]);
      const [changing, quiet] = rows;
      assert.ok(changing && quiet);
      const removed = await context.whileLocked([changing], {
        start: () => remove(context),
        meanwhile: (edit) => edit(changing, { state: "pending", lockVersion: 1 }),
      });
      assert.equal(removed, 1);
      assert.equal((await context.row(changing)).state, "pending");
      assert.equal(await context.archive.count(), 1, "only the quiet row");
    },
  },
  {
    name: "removeFinished: a row that is being moved cannot be changed before it is gone (rule: checked-move)",
    needs: ["rowLocks"],
    async run(context) {
      const row = await context.put({ ...OLD, state: "sent" });
      const action = { author: "ops", reason: "again" };
      await whileIdsAreUnique(context, async () => {
        let retried = false;
        // The copy waits, because the row's place in the archive is taken for a while: the moment
        // between copy and delete.
        const [removed, report] = await context.whileOpen((run) => run(copyText(context, row)), {
          waiters: 0,
          async start() {
            const removing = remove(context);
            removing.catch(() => undefined);
            await context.waiting(1);
            const retrying = context.other.admin
              .retry({ filter: { ids: [row.id] }, action, resend: true, limit: 1 })
              .finally(() => {
                retried = true;
              });
            return await Promise.all([removing, retrying]);
          },
          async meanwhile(_edit, run) {
            await context.waiting(2, () => retried);
            await run(
              `DELETE FROM ${context.own.archive} WHERE ${context.dialect.name(context.layout.columns.id)} = ${row.id}`,
            );
          },
        });
        const left = await context.table.find(row.id);
        const archived = await context.archive.find(row.id);
        const moved = removed === 1 && report.changed === 0 && left === undefined && archived?.state === "sent";
        const kept = removed === 0 && report.changed === 1 && left?.state === "pending" && archived === undefined;
        assert.ok(
          moved || kept,
          `removed ${removed}, retried ${report.changed}, now ${left?.state}, archived ${archived?.state}`,
        );
      });
    },
  },
  {
    name: "removeFinished: young rows with the lowest ids keep no old one behind them",
    async run(context) {
      const young = await context.putAll(
        Array(7).fill({ state: "sent", sentInMs: -HOUR_MS, modifiedInMs: -HOUR_MS, createdInMs: -3 * DAY_MS }),
      );
      await context.putAll([
        { ...OLD, state: "sent" },
        { state: "sent", sentInMs: -HOUR_MS, modifiedInMs: -HOUR_MS },
        ...Array(5).fill({ ...OLD, state: "sent" }),
      ]);
      const store = await context.openStore();
      let removed = 0;
      // 14 rows, two or three at a look: a walk over all of them and one to find its end.
      await context.assertUnchanged(young, async () => {
        for (let call = 0; call < 14; call += 1)
          removed += await remove({ ...context, store }, { olderThanMs: DAY_MS, limit: 3 });
      });
      assert.deepEqual([removed, await context.table.count()], [6, 8]);
      // The walk begins again.
      await context.table.edit(young[6]?.id ?? "", OLD);
      for (let call = 0; call < 14; call += 1)
        removed += await remove({ ...context, store }, { olderThanMs: DAY_MS, limit: 3 });
      assert.deepEqual([removed, await context.table.count()], [7, 7]);
    },
  },
  {
    name: "removeFinished: an id that begins again after a TRUNCATE is archived beside the earlier one",
    async run(context) {
      const { archive, dialect, layout, own, table } = context;
      const id = dialect.name(layout.columns.id);
      const first = await context.put({ ...OLD, state: "sent" });
      assert.equal(await remove(context), 1);
      await context.sql(`UPDATE ${own.archive} SET archived_at = ${dialect.ownAt(-HOUR_MS)}`);
      const again = await context.put({ ...OLD, state: "sent" });
      await context.sql(`UPDATE ${own.messages} SET ${id} = ${first.id} WHERE ${id} = ${again.id}`);
      assert.equal(await remove(context), 1);
      assert.deepEqual([await table.count(), await archive.count()], [0, 2]);
      assert.equal(await context.store.housekeeping.purgeArchive({ olderThanMs: 0, limit: 1 }), 1);
      assert.equal(await archive.count(), 1);
    },
  },
  {
    name: "purgeArchive: deletes what was archived long enough ago, the oldest first, up to its limit",
    async run(context) {
      const { dialect, layout, own } = context;
      const rows = await context.putAll(Array(4).fill({ ...OLD, state: "sent" }));
      await remove(context);
      const agesMs = [3 * DAY_MS, 5 * DAY_MS, HOUR_MS, 4 * DAY_MS];
      for (const [index, row] of rows.entries()) {
        const at = dialect.ownAt(-(agesMs[index] ?? 0));
        await context.sql(
          `UPDATE ${own.archive} SET archived_at = ${at} WHERE ${dialect.name(layout.columns.id)} = ${row.id}`,
        );
      }
      const { housekeeping } = context.store;
      const left = async (): Promise<boolean[]> =>
        await Promise.all(rows.map(async ({ id }) => (await context.archive.find(id)) !== undefined));
      assert.equal(await housekeeping.purgeArchive({ olderThanMs: 2 * DAY_MS, limit: 2 }), 2);
      assert.deepEqual(await left(), [true, false, true, false]);
      assert.equal(await housekeeping.purgeArchive({ olderThanMs: 2 * DAY_MS, limit: 10 }), 1);
      assert.deepEqual(await left(), [false, false, true, false]);
    },
  },
];
