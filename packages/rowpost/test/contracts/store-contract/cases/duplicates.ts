/**
 * A message that is there already: which ones are duplicates, and what becomes of the rest of the
 * call (rule: exact-bytes).
 */
import assert from "node:assert/strict";
import type { EncodedMessage, EnqueueStatus } from "../../../../src/outbox/message-writer.ts";
import { DuplicateMessageError } from "../../../../src/runtime/errors.ts";
import type { Executor } from "../../../../src/transactions/executor.ts";
import type { StoreContractCase } from "../case.ts";
import type { StoreCaseContext } from "../context.ts";
import { insert, rolledBack } from "../user-transaction.ts";

export const duplicateCases: readonly StoreContractCase[] = [
  {
    name: "enqueue: a duplicate throws, leaves nothing of its call, and leaves the transaction usable",
    async run(context) {
      const there = context.message({ body: '"first"' });
      await context.enqueue([there]);
      const [before, between, after] = [context.message(), context.message(), context.message()];
      await context.database.transaction(async (tx) => {
        await insert(context, tx, [before]);
        const again = { ...there, body: '"second"' };
        await assert.rejects(insert(context, tx, [between, again]), (error) => {
          assert.ok(error instanceof DuplicateMessageError, String(error));
          assert.deepEqual(
            error.duplicates.map(({ type, key }) => [type, key]),
            [[there.type, there.key]],
          );
          return true;
        });
        await insert(context, tx, [after]);
      });
      const rows = await context.scan();
      assert.deepEqual(
        new Map(rows.map(({ key, body }) => [key, body])),
        new Map([
          [there.key, '"first"'],
          [before.key, "{}"],
          [after.key, "{}"],
        ]),
      );
    },
  },
  {
    name: "enqueue: with ignore, duplicates are reported in the order of the call, and the others are written",
    async run(context) {
      const [old, older] = [context.message(), context.message()];
      await context.enqueue([older, old]);
      const before = await context.scan();
      const fresh = [context.message(), context.message()] as const;
      const call = [fresh[0], { ...old, body: '"other"' }, fresh[1], { ...older, topic: "other" }];
      const statuses = await context.enqueue(call, { duplicates: "ignore" });
      assert.deepEqual(statuses, ["enqueued", "duplicate", "enqueued", "duplicate"]);
      const rows = await context.scan();
      assert.equal(rows.length, 4);
      for (const { id, key, body, topic } of before) {
        const now = rows.find((row) => row.id === id);
        assert.deepEqual([now?.key, now?.body, now?.topic], [key, body, topic], "what was there stays");
      }
    },
  },
  {
    name: "enqueue: a message twice in one call is a duplicate of itself",
    async run(context) {
      const [one, two] = [context.message(), context.message()];
      const call = [one, two, { ...one, body: '"again"' }];
      await context.database.transaction(async (tx) => {
        await assert.rejects(insert(context, tx, call), DuplicateMessageError);
      });
      assert.equal(await context.table.count(), 0);
      assert.deepEqual(await context.enqueue(call, { duplicates: "ignore" }), ["enqueued", "enqueued", "duplicate"]);
      assert.equal((await context.scan()).find(({ key }) => key === one.key)?.body, "{}", "the first one counts");
    },
  },
  {
    name: "enqueue: the same key under another type, or the same type with another key, is another message",
    async run(context) {
      const one = context.message();
      const statuses = await context.enqueue([
        one,
        { ...one, type: "contract.other" },
        { ...one, key: `${one.key}-b` },
      ]);
      assert.deepEqual(statuses, ["enqueued", "enqueued", "enqueued"]);
    },
  },
  {
    name: "enqueue: a duplicate that was committed after this transaction first read is found",
    needs: ["rowLocks"],
    async run(context) {
      const message = context.message();
      await context.database.transaction(async (tx) => {
        // In REPEATABLE READ this fixes what plain reads see from now on.
        await tx.query(`SELECT COUNT(*) AS n FROM ${context.own.messages}`);
        await context.enqueue([message], { instance: context.other });
        await assert.rejects(insert(context, tx, [message]), DuplicateMessageError);
        assert.deepEqual(await insert(context, tx, [message], "ignore"), ["duplicate"]);
      });
      assert.equal(await context.table.count(), 1);
    },
  },
  {
    name: "enqueue: waits for another transaction with the same message, whose end decides",
    needs: ["rowLocks"],
    async run(context) {
      const { committed, message: lost } = await contested(context, "commit");
      await assert.rejects(committed, DuplicateMessageError);
      const { committed: second } = await contested(context, "rollback");
      assert.deepEqual(await second, ["enqueued"]);
      assert.deepEqual((await context.scan()).filter(({ key }) => key === lost.key).length, 1);
    },
  },
  {
    name: "enqueue: identities that differ in any byte are different messages (rule: exact-bytes)",
    needs: ["comparesBytes"],
    async run(context) {
      const keys = [
        "order-1",
        "Order-1",
        "order-1 ",
        "órder-1",
        "o\u0301rder-1",
        "ｏrder-1",
        "straße",
        "strasse",
        "İ",
        "i",
      ];
      const messages = keys.map((key) => context.message({ key }));
      const types = ["T.a", "t.a", "t.á"].map((type) => context.message({ type, key: "order-1" }));
      const statuses = await context.enqueue([...messages, ...types], { duplicates: "ignore" });
      assert.deepEqual(new Set(statuses), new Set(["enqueued"]));
      assert.equal(await context.table.count(), keys.length + types.length);
      assert.deepEqual(
        await context.enqueue(messages, { duplicates: "ignore" }),
        keys.map(() => "duplicate"),
      );
    },
  },
  {
    name: "enqueue: where the table folds identities, a different message is never taken for a duplicate (rule: exact-bytes)",
    needs: ["foldsIdentities"],
    async run(context) {
      const there = await context.put({ key: "Order-1" });
      for (const key of ["order-1", "Órder-1"]) {
        await assert.rejects(
          context.enqueue([context.message({ key })], { duplicates: "ignore" }),
          DuplicateMessageError,
          `${key} is not Order-1`,
        );
      }
      assert.deepEqual(await context.enqueue([context.message({ key: "Order-1" })], { duplicates: "ignore" }), [
        "duplicate",
      ]);
      // Two of one call that the table takes for one.
      const both = [context.message({ key: "pair" }), context.message({ key: "PAIR" })];
      await assert.rejects(context.enqueue(both, { duplicates: "ignore" }), DuplicateMessageError);
      assert.equal(await context.table.count(), 1);
      assert.equal((await context.row(there)).key, "Order-1");
    },
  },
];

/**
 * Two transactions enqueue one message; the first ends once the second waits for it. Returns what
 * comes of the second.
 */
async function contested(
  context: StoreCaseContext,
  end: "commit" | "rollback",
): Promise<{ readonly committed: Promise<EnqueueStatus[]>; readonly message: EncodedMessage }> {
  const message = context.message();
  let committed: Promise<EnqueueStatus[]> | undefined;
  const work = async (tx: Executor): Promise<void> => {
    await insert(context, tx, [message]);
    committed = context.enqueue([message], { instance: context.other });
    committed.catch(() => undefined);
    await context.waiting(1);
  };
  if (end === "commit") await context.database.transaction(work);
  else await rolledBack(context, work);
  assert.ok(committed !== undefined);
  return { committed, message };
}
