/**
 * Tables as they are: other names, other words for states, columns that are not there, and several
 * message tables side by side.
 */
import assert from "node:assert/strict";
import type { TableLayout } from "../../../../src/databases/database.ts";
import type { LayoutColumns } from "../../../../src/databases/sql/layout.ts";
import { createLayout, defaultLayout } from "../../../../src/databases/sql/layouts.ts";
import { migrate } from "../../../../src/databases/sql/migrate.ts";
import { ConfigurationError, SchemaError } from "../../../../src/runtime/errors.ts";
import { STORE_OPTIONS } from "../bench.ts";
import type { StoreContractCase } from "../case.ts";
import type { StoreCaseContext } from "../context.ts";
import { fenceOf, freshOwner } from "../context.ts";
import { failed, retried, sent } from "../outcome.ts";

/** The columns without which there is no local message table. */
const NEEDED: readonly string[] = [
  ...["id", "messageType", "messageKey", "topic", "messageBody", "state", "retryCount", "nextRetryAt"],
  ...["failReason", "gmtCreate", "gmtModified"],
];

/** The others, which a table may do without. */
export const NO_OPTIONAL_COLUMNS: Partial<LayoutColumns> = Object.fromEntries(
  Object.keys(defaultLayout.columns)
    .filter((name) => !NEEDED.includes(name))
    .map((name) => [name, undefined]),
);

/**
 * A table of somebody's own: Chinese words, names that have to be quoted, and nothing that is not
 * needed.
 */
const wordsLayout: TableLayout = createLayout({
  base: defaultLayout,
  table: "order",
  columns: { ...NO_OPTIONAL_COLUMNS, topic: "group", messageKey: "Key", messageBody: "消息内容", state: "状态" },
  states: {
    pending: "待发送",
    sending: "发送中",
    sent: "已发送",
    failed: "发送失败",
    consumed: "已消费",
    suspended: "已挂起",
  },
});

/** Makes the table of {@link wordsLayout} by hand. */
async function makeWordsTable(context: StoreCaseContext): Promise<void> {
  const { dialect } = context;
  const { columns, table } = wordsLayout;
  const column = (name: keyof LayoutColumns, type: string): string => `${dialect.name(String(columns[name]))} ${type}`;
  await context.sql(`CREATE TABLE ${dialect.name(table)} (
  ${column("id", dialect.idColumn)},
  ${column("messageType", "VARCHAR(64) NOT NULL")},
  ${column("messageKey", "VARCHAR(128) NOT NULL")},
  ${column("topic", "VARCHAR(128) NOT NULL")},
  ${column("messageBody", "TEXT NOT NULL")},
  ${column("state", "VARCHAR(16) NOT NULL")},
  ${column("retryCount", "INT")},
  ${column("nextRetryAt", `${dialect.instantType} NULL`)},
  ${column("failReason", "VARCHAR(1024)")},
  ${column("gmtCreate", `${dialect.instantType} NOT NULL`)},
  ${column("gmtModified", `${dialect.instantType} NOT NULL`)},
  UNIQUE (${dialect.name(columns.messageType)}, ${dialect.name(columns.messageKey)})
)`);
}

export const layoutCases: readonly StoreContractCase[] = [
  {
    name: "layouts: a table of one's own, with other names and words, serves a message from enqueue to archive",
    async run(context) {
      await makeWordsTable(context);
      const { database } = context;
      await migrate(database, { layout: wordsLayout });
      const [store, admin] = [
        database.relayStore({ layout: wordsLayout }),
        database.messageAdmin({ layout: wordsLayout }),
      ];
      try {
        await store.open(STORE_OPTIONS);
        const messages = ["k-1", "k-2", "k-3"].map((key) => context.message({ key }));
        const writer = database.messageWriter({ layout: wordsLayout });
        await database.transaction((tx) => writer.insert(tx, messages, { duplicates: "throw" }));
        const owner = freshOwner();
        const { leases } = await store.leases.heartbeat({
          owner,
          label: "h:1",
          leaseMs: 60_000,
          instanceTimeoutMs: 1_000,
          held: [],
        });
        const { acquired } = await store.leases.acquire({ owner, leaseMs: 60_000, observed: leases });
        const fence = fenceOf(owner, acquired, leases.length);
        const found = await store.scan({
          shards: undefined,
          afterId: "0",
          bodyLimit: Number.MAX_SAFE_INTEGER,
          immediateLimit: 10,
          dueLimit: 10,
        });
        assert.deepEqual(
          found.map(({ key, lockVersion, retryCount }) => [key, lockVersion, retryCount]),
          [
            ["k-1", "0", 0],
            ["k-2", "0", 0],
            ["k-3", "0", 0],
          ],
        );
        assert.equal(await store.claim({ fence, rows: found }), 3);
        const [one, two, three] = found;
        assert.ok(one && two && three);
        const outcomes = [sent(one), retried(two), failed(three)];
        assert.deepEqual(await store.settle({ fence, outcomes, elapsedMs: 5, from: "sending" }), []);
        const listed = (await admin.list({ filter: {}, limit: 10 })).messages;
        const shown = listed.map(({ key, rawState, retryCount, state }) => [key, state, rawState, retryCount]);
        assert.deepEqual(shown, [
          ["k-3", "failed", "发送失败", 1],
          ["k-2", "pending", "待发送", 1],
          ["k-1", "sent", "已发送", 0],
        ]);
        const request = { mode: "archive", states: ["sent"], olderThanMs: 0, limit: 10 } as const;
        assert.equal(await store.housekeeping.removeFinished(request), 1);
        assert.equal((await admin.show({ type: "contract.checked", key: "k-1" }))?.archived, true);
      } finally {
        await store.close();
        await admin.close();
        await context.sql(`DROP TABLE ${context.dialect.name(wordsLayout.table)}`);
      }
    },
  },
  {
    name: "layouts: two message tables with the same tables beside them do not touch each other's rows, leases or rules",
    async run(context) {
      const layout = createLayout({
        base: context.layout,
        table: "another_message",
        companion: context.layout.companion,
        columns: { settlePad: context.layout.columns.settlePad },
      });
      await migrate(context.database, { layout });
      const store = context.database.relayStore({ layout });
      const admin = context.database.messageAdmin({ layout });
      try {
        await store.open(STORE_OPTIONS);
        const ours = await context.acquire();
        const row = await context.put({ state: "sending", deliveryCount: 1, lockVersion: 1 });
        const theirs = await context.assertUnchanged([row], () => context.acquire({ store }));
        assert.equal(theirs.recovered, 0);
        assert.ok(
          (await context.leases()).every(({ owner }) => owner === ours.owner),
          "our leases",
        );
        assert.ok(
          (await context.leases(store)).every(({ owner }) => owner === theirs.owner),
          "theirs",
        );
        await admin.suspendScope({ scope: "relay", value: "*", reason: "r", author: "a", endsInMs: null });
        const beat = { owner: ours.owner, label: "h:1", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: ours.held };
        const view = await context.store.leases.heartbeat(beat);
        assert.deepEqual([view.suspensions, view.instances.length, view.held.length], [[], 1, ours.held.length]);
        await store.leases.release({ owner: ours.owner, shards: ours.held });
        await store.leases.leave(ours.owner);
        assert.equal((await context.store.leases.heartbeat({ ...beat, held: [] })).instances.length, 1);
        await admin.resumeScope({ scope: "relay", value: "*", action: { author: "a", reason: "r" } });
      } finally {
        await store.close();
        await admin.close();
      }
    },
  },
  {
    name: "layouts: a count that is NULL is zero",
    needs: ["nullableCounts"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([
        { retryCount: null, lockVersion: null },
        { retryCount: null, lockVersion: null },
      ]);
      const found = await context.scan();
      assert.deepEqual(
        found.map(({ lockVersion, retryCount }) => [retryCount, lockVersion]),
        [
          [0, "0"],
          [0, "0"],
        ],
      );
      assert.equal(await context.store.claim({ fence, rows: found }), 2);
      const [first, second] = await context.tokens(rows);
      assert.ok(first && second);
      assert.deepEqual([first.lockVersion, second.lockVersion], ["1", "1"]);
      const outcomes = [retried(first), failed(second)];
      assert.deepEqual(await context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }), []);
      for (const row of rows) assert.equal((await context.row(row)).retryCount, 1);
    },
  },
  {
    name: "layouts: a table that is missing, or lacks a column, is named when a relay or a tool opens",
    async run(context) {
      const absent = createLayout({
        base: context.layout,
        table: "absent_message",
        companion: context.layout.companion,
      });
      const renamed = createLayout({
        base: context.layout,
        table: context.layout.table,
        companion: context.layout.companion,
        columns: { topic: "absent_column" },
      });
      for (const [layout, name] of [
        [absent, "absent_message"],
        [renamed, "absent_column"],
      ] as const) {
        const store = context.database.relayStore({ layout });
        const admin = context.database.messageAdmin({ layout });
        const named = (error: unknown): boolean => error instanceof SchemaError && error.message.includes(name);
        await assert.rejects(store.open(STORE_OPTIONS), named, name);
        await assert.rejects(admin.list({ filter: {}, limit: 1 }), named, name);
        await store.close();
        await admin.close();
      }
    },
  },
  {
    name: "layouts: to run without a sending mark is refused where nothing tells a claim",
    needs: ["noClaimToken"],
    async run(context) {
      await assert.rejects(context.openStore({ sendingMark: "off" }), ConfigurationError);
    },
  },
  {
    name: "layouts: where a claim can be told, a relay opens without a sending mark",
    needs: ["claimToken", "runsUnmarked"],
    async run(context) {
      await context.openStore({ sendingMark: "off" });
    },
  },
  {
    name: "layouts: to run without a sending mark is refused where it would be slower",
    async run(context) {
      if (context.harness.features.runsUnmarked) return;
      await assert.rejects(context.openStore({ sendingMark: "off" }), ConfigurationError);
    },
  },
  {
    name: "layouts: the migration can be run again, and changes nothing",
    async run(context) {
      const { applied } = await migrate(context.database, { layout: context.layout });
      assert.deepEqual(applied, []);
    },
  },
];
