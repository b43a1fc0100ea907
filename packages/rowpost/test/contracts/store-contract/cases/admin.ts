/** What operators see and change by hand. */
import assert from "node:assert/strict";
import type { ChangeReport, MessageAdmin, MessageFilter } from "../../../../src/admin/message-admin.ts";
import { MESSAGE_STATES, type MessageState } from "../../../../src/message/states.ts";
import { ConfigurationError } from "../../../../src/runtime/errors.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues } from "../context.ts";
import { listCases } from "./list.ts";
import { seenCases } from "./seen.ts";

const HOUR_MS = 3_600_000;
const ACTION = { author: "ann", reason: "ticket 7" };
const COUNTED: PutValues = {
  retryCount: 3,
  deliveryCount: 4,
  lockVersion: 6,
  failReason: "earlier",
  nextRetryInMs: -5_000,
};

/** The changes by hand, in one shape. */
const CHANGES = {
  retry: {
    from: ["failed"],
    to: "pending",
    run: (admin: MessageAdmin, filter: MessageFilter, limit = 100) => admin.retry({ filter, action: ACTION, limit }),
  },
  "retry with resend": {
    from: ["failed", "sent"],
    to: "pending",
    run: (admin: MessageAdmin, filter: MessageFilter, limit = 100) =>
      admin.retry({ filter, action: ACTION, resend: true, limit }),
  },
  suspend: {
    from: ["pending", "failed"],
    to: "suspended",
    run: (admin: MessageAdmin, filter: MessageFilter, limit = 100) => admin.suspend({ filter, action: ACTION, limit }),
  },
  resume: {
    from: ["suspended"],
    to: "pending",
    run: (admin: MessageAdmin, filter: MessageFilter, limit = 100) => admin.resume({ filter, action: ACTION, limit }),
  },
} as const satisfies Record<
  string,
  {
    readonly from: readonly MessageState[];
    readonly to: MessageState;
    run(admin: MessageAdmin, filter: MessageFilter, limit?: number): Promise<ChangeReport>;
  }
>;

type ChangeName = keyof typeof CHANGES;
const CHANGE_NAMES = Object.keys(CHANGES) as ChangeName[];

export const adminCases: readonly StoreContractCase[] = [
  ...listCases,
  ...seenCases,
  ...CHANGE_NAMES.map(
    (name): StoreContractCase => ({
      name: `admin: ${name} changes rows in its states, and names the others with their real state`,
      async run(context) {
        const { from, run, to } = CHANGES[name];
        const rows = await context.putAll(MESSAGE_STATES.map((state) => ({ ...COUNTED, state })));
        const allowed = (row: PutRow): boolean => (from as readonly string[]).includes(stateOf(rows, row));
        const others = rows.filter((row) => !allowed(row));
        const report = await context.assertUnchanged(others, () =>
          run(context.admin, { ids: rows.map(({ id }) => id) }),
        );
        assert.equal(report.changed, from.length);
        const conflicts = report.conflicts.map(({ id, state }) => `${id} ${state}`).sort();
        assert.deepEqual(conflicts, others.map((row) => `${row.id} ${stateOf(rows, row)}`).sort());
        for (const row of rows.filter(allowed)) assert.equal((await context.row(row)).state, to);
      },
    }),
  ),
  ...CHANGE_NAMES.map(
    (name): StoreContractCase => ({
      name: `admin: ${name} takes no more rows than its limit, and only those that the filter means`,
      async run(context) {
        const { from, run, to } = CHANGES[name];
        const state = from[0];
        const rows = await context.putAll([
          ...Array(3).fill({ ...COUNTED, state, topic: "mine" }),
          { ...COUNTED, state, topic: "other" },
        ]);
        const [foreign] = rows.slice(3);
        assert.ok(foreign);
        const filter = { topic: "mine" };
        assert.equal((await context.assertUnchanged([foreign], () => run(context.admin, filter, 2))).changed, 2);
        const { changed, conflicts } = await context.assertUnchanged([foreign], () => run(context.admin, filter, 10));
        assert.deepEqual([changed, conflicts], [1, []], "rows that were not named are no conflicts");
        for (const row of rows.slice(0, 3)) assert.equal((await context.row(row)).state, to);
      },
    }),
  ),
  {
    name: "admin: an empty filter changes nothing, and is refused",
    async run(context) {
      const rows = await context.putAll(MESSAGE_STATES.map((state) => ({ ...COUNTED, state })));
      await context.assertUnchanged(rows, async () => {
        for (const name of CHANGE_NAMES) {
          await assert.rejects(async () => await CHANGES[name].run(context.admin, {}), ConfigurationError, name);
        }
        const request = { filter: {}, mode: "delete", action: ACTION, limit: 10 } as const;
        await assert.rejects(async () => await context.admin.remove(request), ConfigurationError, "remove");
      });
    },
  },
  {
    name: "admin: a retry by hand begins anew, with the name of who did it",
    async run(context) {
      const row = await context.put({ ...COUNTED, state: "failed", updatedBy: "shop" });
      await CHANGES.retry.run(context.admin, { ids: [row.id] });
      const now = await context.row(row);
      assert.deepEqual([now.state, now.retryCount, now.deliveryCount, now.nextRetryInMs], ["pending", 0, 0, null]);
      assert.equal(now.failReason, "earlier", "what happened to it is still to be read");
      const { lockVersion, updatedBy } = context.layout.columns;
      if (lockVersion !== undefined) assert.equal(now.lockVersion, 7);
      if (updatedBy !== undefined) assert.equal(now.updatedBy, ACTION.author);
      context.assertInMs(now.modifiedInMs, 0, "gmt_modified");
    },
  },
  {
    name: "admin: a message that was sent and is retried is known as sent before",
    needs: ["messageId"],
    async run(context) {
      const row = await context.put({ ...COUNTED, state: "sent", messageId: "0A1B", sentInMs: -60_000 });
      await CHANGES["retry with resend"].run(context.admin, { ids: [row.id] });
      const [found] = await context.scan();
      assert.deepEqual([found?.id, found?.resend], [row.id, true]);
    },
  },
  {
    name: "admin: a suspended row keeps its last error, and rests until it is resumed or its time comes",
    async run(context) {
      const rows = await context.putAll([
        { ...COUNTED, state: "failed" },
        { ...COUNTED, state: "failed" },
      ]);
      const [forEver, forAnHour] = rows;
      assert.ok(forEver && forAnHour);
      await CHANGES.suspend.run(context.admin, { ids: [forEver.id] });
      const request = { filter: { ids: [forAnHour.id] }, action: ACTION, limit: 1 };
      await context.admin.suspend({ ...request, untilMs: HOUR_MS });
      const [first, second] = await Promise.all(rows.map((row) => context.row(row)));
      assert.deepEqual(
        [first?.state, first?.nextRetryInMs, first?.retryCount, first?.failReason],
        ["suspended", null, 3, "earlier"],
      );
      context.assertInMs(second?.nextRetryInMs ?? null, HOUR_MS, "end of the suspension");
      assert.deepEqual(await context.scan(), []);
      await CHANGES.resume.run(context.admin, { ids: [forEver.id, forAnHour.id] });
      assert.equal((await context.scan()).length, 2);
    },
  },
  {
    name: "admin: nothing done by hand sends a message before its own time (rule: delay-is-not-retry)",
    needs: ["deliverAt"],
    async run(context) {
      const delayed: PutValues = { ...COUNTED, deliverInMs: HOUR_MS, nextRetryInMs: HOUR_MS };
      const rows = await context.putAll([
        { ...delayed, state: "failed" },
        { ...delayed, state: "suspended" },
        { ...delayed, state: "pending" },
      ]);
      const ids = rows.map(({ id }) => id);
      await CHANGES.suspend.run(context.admin, { ids: ids.slice(2) });
      await CHANGES.retry.run(context.admin, { ids: ids.slice(0, 1) });
      await CHANGES.resume.run(context.admin, { ids: ids.slice(1) });
      for (const row of rows) context.assertInMs((await context.row(row)).nextRetryInMs, HOUR_MS, `message ${row.id}`);
    },
  },
  {
    name: "admin: where the only time is a delay, a delayed row is not suspended (rule: delay-is-not-retry)",
    needs: ["noDeliverAt"],
    async run(context) {
      const row = await context.put({ nextRetryInMs: HOUR_MS });
      const report = await context.assertUnchanged([row], () => CHANGES.suspend.run(context.admin, { ids: [row.id] }));
      assert.equal(report.changed, 0);
    },
  },
  {
    name: "admin: an unknown state is a conflict, named as unknown",
    needs: ["takesUnknownStates"],
    async run(context) {
      const row = await context.put({ rawState: typeof context.layout.states.pending === "number" ? 99 : "nonsense" });
      for (const name of CHANGE_NAMES) {
        const report = await context.assertUnchanged([row], () => CHANGES[name].run(context.admin, { ids: [row.id] }));
        assert.deepEqual(
          [report.changed, report.conflicts.map(({ id, state }) => [id, state])],
          [0, [[row.id, "unknown"]]],
          name,
        );
      }
    },
  },
  {
    name: "admin: a row that changes while somebody waits for it is judged as it is then",
    needs: ["rowLocks"],
    async run(context) {
      const row = await context.put({ ...COUNTED, state: "failed" });
      const report = await context.whileLocked([row], {
        start: () => CHANGES.retry.run(context.admin, { ids: [row.id] }),
        meanwhile: (edit) => edit(row, { state: "sending", lockVersion: 9 }),
      });
      const lockVersion = context.layout.columns.lockVersion === undefined ? undefined : "9";
      assert.deepEqual(report.conflicts, [{ id: row.id, state: "sending", lockVersion }]);
      assert.equal(report.changed, 0);
      assert.equal((await context.row(row)).state, "sending");
    },
  },
  {
    name: "admin: a change by hand makes what a relay has scanned or claimed stale",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ retryCount: 1 });
      const rows = [await context.token(row)];
      await CHANGES.suspend.run(context.admin, { ids: [row.id] });
      await CHANGES.resume.run(context.admin, { ids: [row.id] });
      assert.equal(await context.assertUnchanged([row], () => context.store.claim({ fence, rows })), 0);
    },
  },
  {
    name: "admin: removes finished rows, and failed ones that are named; never one that is still to be sent",
    async run(context) {
      const removed = async (filter: MessageFilter, mode: "archive" | "delete"): Promise<MessageState[]> => {
        const rows = await context.putAll(MESSAGE_STATES.map((state) => ({ state, topic: "old" })));
        const ids = rows.map(({ id }) => id);
        const named = filter.ids === undefined ? filter : { ids };
        const { changed: count } = await context.admin.remove({ filter: named, mode, action: ACTION, limit: 100 });
        const gone: MessageState[] = [];
        for (const row of rows) if ((await context.table.find(row.id)) === undefined) gone.push(stateOf(rows, row));
        assert.equal(gone.length, count);
        await context.sql(`DELETE FROM ${context.own.messages}`);
        return gone.sort();
      };
      assert.deepEqual(await removed({ topic: "old" }, "delete"), ["consumed", "sent"]);
      assert.equal(await context.archive.count(), 0);
      assert.deepEqual(await removed({ ids: [] }, "delete"), ["consumed", "failed", "sent"]);
      assert.deepEqual(await removed({ ids: [] }, "archive"), ["consumed", "failed", "sent"]);
      assert.equal(await context.archive.count(), 3);
      assert.deepEqual(await removed({ topic: "old", states: ["failed"] }, "delete"), ["failed"]);
    },
  },
  {
    name: "admin: the status counts every state, unknown ones too, and shows leases, instances and rules",
    needs: ["takesUnknownStates"],
    async run(context) {
      const { owner } = await context.acquire();
      await context.putAll([
        ...MESSAGE_STATES.map((state) => ({ state, createdInMs: -90_000 })),
        { rawState: typeof context.layout.states.pending === "number" ? 99 : "nonsense" },
        { topic: "other" },
      ]);
      const beat = { owner, label: "host:1", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] };
      await context.store.leases.heartbeat(beat);
      await context.admin.suspendScope({ scope: "topic", value: "other", reason: "r", author: "a", endsInMs: null });
      const status = await context.other.admin.status({ exact: true });
      const counts = status.counts.map(({ count, state, topic }) => `${topic} ${state} ${count}`).sort();
      const all = [...MESSAGE_STATES, "unknown"].map((state) => `orders ${state} 1`);
      assert.deepEqual(counts, [...all, "other pending 1"].sort());
      const oldest =
        status.counts.find(({ state, topic }) => topic === "orders" && state === "failed")?.oldestAgeMs ?? 0;
      assert.ok(oldest >= 85_000 && oldest < 120_000, `oldest for ${oldest} ms`);
      assert.ok(status.leases.every((lease) => lease.owner === owner));
      assert.deepEqual(
        status.instances.map(({ alive, label, owner: who, report }) => [who, label, alive, report]),
        [[owner, "host:1", true, undefined]],
      );
      assert.deepEqual(
        status.suspensions.map(({ scope, value }) => [scope, value]),
        [["topic", "other"]],
      );
    },
  },
];

/** The state that a row was put with: rows stand in the order of MESSAGE_STATES. */
function stateOf(rows: readonly PutRow[], row: PutRow): MessageState {
  return MESSAGE_STATES[rows.indexOf(row)] ?? assert.fail("a row of another case");
}
