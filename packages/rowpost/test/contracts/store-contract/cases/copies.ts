/** A message that is sent anew with something changed, and what becomes of the original. */
import assert from "node:assert/strict";
import type { CopyRequest } from "../../../../src/admin/message-admin.ts";
import { ConfigurationError, DuplicateMessageError, InvalidMessageError } from "../../../../src/runtime/errors.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, StoreCaseContext } from "../context.ts";

const ACTION = { author: "ann", reason: "ticket 9: 地址 'wrong'" };

async function request(
  context: StoreCaseContext,
  row: PutRow,
  more: Partial<CopyRequest> & Pick<CopyRequest, "change">,
): Promise<CopyRequest> {
  const { lockVersion } = await context.token(row);
  return { seen: { id: row.id, lockVersion }, original: "keep", action: ACTION, ...more };
}

/** Nothing of it is left: no row, and no entry in the audit. */
async function assertRefused(context: StoreCaseContext, row: PutRow, work: () => Promise<unknown>): Promise<void> {
  const rows = await context.table.count();
  await context.assertUnchanged([row], work);
  assert.equal(await context.table.count(), rows, "rows of the table");
  assert.deepEqual(await context.admin.changes(row.id), []);
}

export const copyCases: readonly StoreContractCase[] = [
  {
    name: "copy: waits with what was changed, and with all else as it was stored",
    async run(context) {
      const { columns } = context.layout;
      const row = await context.put({
        state: "failed",
        topic: "shipping",
        body: '{ "order": 42 }',
        headers: '{"a":"b","rowpost-copy-of":"1"}',
        contentType: "application/vnd.shop+json",
        orderingKey: "customer-7",
        retryCount: 5,
        failReason: "HTTP_422",
      });
      const key = context.freshKey();
      const { copyId } = await context.admin.copy(await request(context, row, { change: { key } }));
      assert.ok(copyId !== undefined && copyId !== row.id);
      const copy = await context.row(copyId);
      const original = await context.row(row);
      assert.deepEqual(
        [copy.type, copy.key, copy.topic, copy.body],
        ["contract.checked", key, "shipping", original.body],
      );
      assert.deepEqual([copy.contentType, copy.orderingKey], [original.contentType, original.orderingKey]);
      assert.deepEqual([copy.state, copy.retryCount, copy.nextRetryInMs, copy.failReason], ["pending", 0, null, null]);
      if (columns.createdBy !== undefined) assert.equal(copy.createdBy, "ann");
      if (columns.headers !== undefined)
        assert.deepEqual(JSON.parse(copy.headers ?? ""), { a: "b", "rowpost-copy-of": row.id });
      assert.deepEqual(
        (await context.scan()).map(({ id }) => id),
        [copyId],
        "the copy alone is due",
      );
    },
  },
  {
    name: "copy: a changed topic, body and headers are those of the copy, and the original keeps its own",
    async run(context) {
      const row = await context.put({ state: "sent", body: '{"price":1}' });
      const headers = context.layout.columns.headers === undefined ? undefined : { tenant: "acme" };
      const change = { key: context.freshKey(), topic: "refunds", body: '{"price": 2}', headers };
      const made = await request(context, row, { change });
      await context.assertUnchanged([row], async () => {
        const { copyId } = await context.admin.copy(made);
        const copy = await context.row(copyId ?? "");
        assert.deepEqual([copy.topic, copy.body], ["refunds", '{"price": 2}']);
        if (headers !== undefined)
          assert.deepEqual(JSON.parse(copy.headers ?? ""), { tenant: "acme", "rowpost-copy-of": row.id });
      });
    },
  },
  {
    name: "copy: each of both is found by the other, with who made it and why",
    async run(context) {
      const row = await context.put({ state: "failed" });
      const made = await request(context, row, { change: { key: context.freshKey() }, original: "suspend" });
      const { copyId } = await context.admin.copy(made);
      assert.ok(copyId !== undefined);
      const { author, reason } = ACTION;
      const of = async (id: string) => (await context.other.admin.changes(id)).map((change) => ({ ...change, at: "" }));
      assert.deepEqual(await of(row.id), [{ at: "", author, reason, action: "copy", copyId }]);
      assert.deepEqual(await of(copyId), [{ at: "", author, reason, action: "copied", copyOf: row.id }]);
      assert.equal((await context.row(row)).state, "suspended");
    },
  },
  {
    name: "copy: the original goes into the archive with it, and can be copied once more from there",
    async run(context) {
      const row = await context.put({ state: "failed", body: '{"price":1}' });
      const made = await request(context, row, { change: { key: context.freshKey() }, original: "archive" });
      await context.admin.copy(made);
      assert.equal(await context.table.find(row.id), undefined);
      assert.equal((await context.archive.row(row.id)).body, '{"price":1}');
      const again = await context.admin.copy({ ...made, change: { key: context.freshKey() }, original: "keep" });
      assert.equal((await context.row(again.copyId ?? "")).body, '{"price":1}');
      assert.equal((await context.admin.changes(row.id)).length, 2);
      assert.deepEqual(await context.admin.copy({ ...made, change: { key: context.freshKey() } }), {
        copyId: undefined,
        conflicts: [],
      });
    },
  },
  {
    name: "copy: of the failed head of an ordering key is due once the head is in the archive",
    async run(context) {
      const row = await context.put({ state: "failed", orderingKey: "customer-7" });
      const made = await request(context, row, { change: { key: context.freshKey() }, original: "archive" });
      const { copyId } = await context.admin.copy(made);
      const explained = await context.admin.explain((await context.admin.show({ id: copyId ?? "" })) ?? assert.fail());
      assert.notEqual(explained.heldBy, "ordering key");
    },
  },
  {
    name: "copy: what is neither kept nor set aside is refused, and nothing is taken away",
    async run(context) {
      const row = await context.put({ state: "sent" });
      const made = await request(context, row, { change: { key: context.freshKey() } });
      for (const original of [undefined, "delete"] as unknown as CopyRequest["original"][]) {
        await assertRefused(context, row, () =>
          assert.rejects(context.admin.copy({ ...made, original }), ConfigurationError),
        );
      }
    },
  },
  {
    name: "copy: is not made of a message that has changed since it was seen",
    async run(context) {
      const row = await context.put({ state: "failed" });
      const made = await request(context, row, { change: { key: context.freshKey() }, original: "suspend" });
      const target = { filter: { ids: [row.id] }, action: ACTION, limit: 1 };
      await context.other.admin.suspend(target);
      const { copyId, conflicts } = await context.admin.copy(made);
      assert.equal(copyId, undefined);
      assert.deepEqual(
        conflicts.map(({ id, state }) => [id, state]),
        [[row.id, "suspended"]],
      );
      assert.equal(await context.table.count(), 1);
    },
  },
  {
    name: "copy: of two that copy one message at once and set it aside, one is told",
    async run(context) {
      const row = await context.put({ state: "failed" });
      const made = await request(context, row, { change: { key: context.freshKey() }, original: "suspend" });
      const change = { key: context.freshKey() };
      const reports = await Promise.all([context.admin.copy(made), context.other.admin.copy({ ...made, change })]);
      const copies = reports.filter(({ copyId }) => copyId !== undefined);
      assert.deepEqual([copies.length, await context.table.count()], [1, 2]);
      assert.deepEqual(
        reports.flatMap(({ conflicts }) => conflicts.map(({ state }) => state)),
        ["suspended"],
      );
    },
  },
  {
    name: "copy: a state that does not allow what shall become of the original allows no copy",
    async run(context) {
      for (const [state, original] of [
        ["sent", "suspend"],
        ["pending", "archive"],
        ["sending", "suspend"],
      ] as const) {
        const row = await context.put({ state });
        const made = await request(context, row, { change: { key: context.freshKey() }, original });
        await assertRefused(context, row, async () => {
          const { copyId, conflicts } = await context.admin.copy(made);
          assert.deepEqual([copyId, conflicts.map((each) => each.state)], [undefined, [state]]);
        });
      }
    },
  },
  {
    name: "copy: a key that is taken, by another message or the original, is refused, and nothing is left of it",
    async run(context) {
      const row = await context.put({ state: "failed" });
      const taken = await context.put({ state: "sent" });
      const other = await request(context, row, { change: { key: taken.key }, original: "archive" });
      await assertRefused(context, row, () => assert.rejects(context.admin.copy(other), DuplicateMessageError));
      const same = await request(context, row, { change: { key: row.key }, original: "archive" });
      await assertRefused(context, row, () => assert.rejects(context.admin.copy(same), InvalidMessageError));
    },
  },
  {
    name: "copy: what could not be sent is refused in words, and mended by the change",
    async run(context) {
      const { contentType, headers } = context.layout.columns;
      const row = await context.put({
        state: "failed",
        contentType: "application/json",
        ...(contentType === undefined ? {} : { body: "{broken" }),
        ...(headers === undefined ? {} : { headers: "[1]" }),
      });
      const key = context.freshKey();
      const refused = async (change: CopyRequest["change"], words: RegExp): Promise<void> => {
        const made = await request(context, row, { change });
        await assertRefused(context, row, () => assert.rejects(context.admin.copy(made), words));
      };
      const mended = { key, body: '{"fine":true}', ...(headers === undefined ? {} : { headers: {} }) };
      if (contentType !== undefined) await refused({ ...mended, body: undefined }, /body is not JSON/);
      if (headers !== undefined) await refused({ ...mended, headers: undefined }, /headers are not a JSON object/);
      else await refused({ ...mended, headers: { a: "b" } }, /no column for/);
      await refused({ ...mended, key: "" }, /key is empty/);
      await refused({ ...mended, topic: "" }, /topic is empty/);
      await refused({ ...mended, body: '"half \ud800"' }, /half a surrogate pair/);
      const { copyId } = await context.admin.copy(await request(context, row, { change: mended }));
      assert.equal((await context.row(copyId ?? "")).body, '{"fine":true}');
    },
  },
  {
    name: "copy: of a binary message has its bytes, or those that it is given",
    async run(context) {
      if (context.layout.columns.contentType === undefined) return;
      const row = await context.put({ state: "failed", body: "AP8=", contentType: "image/png;base64" });
      const bytes = async (body: string | undefined): Promise<unknown> => {
        const change = { key: context.freshKey(), body };
        const { copyId } = await context.admin.copy(await request(context, row, { change }));
        const copy = await context.row(copyId ?? "");
        return [copy.body, copy.contentType];
      };
      assert.deepEqual(await bytes(undefined), ["AP8=", "image/png;base64"]);
      assert.deepEqual(await bytes("AAAA"), ["AAAA", "image/png;base64"]);
      const broken = await request(context, row, { change: { key: context.freshKey(), body: "no base64!" } });
      await assert.rejects(context.admin.copy(broken), /is not base64/);
    },
  },
];
