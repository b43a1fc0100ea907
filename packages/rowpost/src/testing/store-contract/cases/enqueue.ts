/** Messages written in the user's transaction: what stands in the row, duplicates, and that nothing is left of a call that throws. */
import assert from "node:assert/strict";
import type { EncodedMessage } from "../../../outbox/message-writer.ts";
import { DuplicateMessageError, InvalidMessageError, TransactionRequiredError } from "../../../runtime/errors.ts";
import type { Executor } from "../../../transactions/executor.ts";
import { until } from "../../contract-run.ts";
import type { StoreContractCase } from "../case.ts";
import type { StoreCaseContext } from "../context.ts";

/** Thrown to roll a transaction back. */
class ChangedMind extends Error {}

export const enqueueCases: readonly StoreContractCase[] = [
  {
    name: "enqueue: a committed message waits with everything that was given",
    async run(context) {
      const { columns } = context.layout;
      const message = context.message({
        topic: "shipping",
        body: '{"order":42}',
        headers: columns.headers === undefined ? null : '{"traceparent":"00-ab-cd-01"}',
        contentType: columns.contentType === undefined ? null : "application/vnd.shop+json",
        orderingKey: columns.orderingKey === undefined ? null : "customer-7",
        createdBy: "shop",
      });
      assert.deepEqual(await context.enqueue([message]), ["enqueued"]);
      const [found] = await context.scan();
      assert.ok(found !== undefined);
      const row = await context.row(found.id);
      const { type, key, topic, body, headers, contentType, orderingKey } = row;
      const { delayMs, deliverAtMs, createdBy, ...written } = message;
      assert.deepEqual({ type, key, topic, body, headers, contentType, orderingKey }, written);
      assert.deepEqual([row.state, row.retryCount, row.deliveryCount, row.lockVersion], ["pending", 0, 0, 0]);
      assert.deepEqual([row.nextRetryInMs, row.deliverInMs, row.failReason, row.messageId], [null, null, null, null]);
      if (columns.createdBy !== undefined) assert.deepEqual([row.createdBy, row.updatedBy], ["shop", "shop"]);
      context.assertInMs(row.createdInMs, 0, "gmt_create");
      context.assertInMs(row.modifiedInMs, 0, "gmt_modified");
    },
  },
  {
    name: "enqueue: a rollback leaves nothing",
    async run(context) {
      await rolledBack(context, (tx) => insert(context, tx, [context.message(), context.message()]));
      assert.equal(await context.table.count(), 0);
    },
  },
  {
    name: "enqueue: outside a transaction nothing is written",
    needs: ["userHandle"],
    async run(context) {
      const user = await context.harness.createUserHandle?.();
      assert.ok(user !== undefined);
      try {
        await assert.rejects(
          async () => await insert(context, context.database.executor(user.handle), [context.message()]),
          TransactionRequiredError,
        );
      } finally {
        await user.close();
      }
      assert.equal(await context.table.count(), 0);
    },
  },
  {
    name: "enqueue: an array is one statement, also with 1,000 messages, and ids stand in its order",
    async run(context) {
      const messages = Array.from({ length: 1_000 }, (_, index) => context.message({ key: `bulk-${index}` }));
      const statements: string[] = [];
      const statuses = await context.database.transaction((tx) => insert(context, counted(tx, statements), messages));
      assert.equal(statements.length, 1, `one statement: ${statements.join(", ")}`);
      assert.deepEqual(new Set(statuses), new Set(["enqueued"]));
      const rows = await context.store.scan({ shards: undefined, afterId: "0", immediateLimit: 2_000, dueLimit: 0 });
      assert.deepEqual(
        rows.map(({ key }) => key),
        messages.map(({ key }) => key),
      );
    },
  },
  {
    name: "enqueue: an empty array runs no statement",
    async run(context) {
      const statements: string[] = [];
      const statuses = await context.database.transaction((tx) => insert(context, counted(tx, statements), []));
      assert.deepEqual([statuses, statements], [[], []]);
    },
  },
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
        rows.map(({ key, body }) => [key, body]).sort(),
        [
          [there.key, '"first"'],
          [before.key, "{}"],
          [after.key, "{}"],
        ].sort(),
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
    name: "enqueue: identities that differ in any byte are different messages (rule R7)",
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
    name: "enqueue: where the table folds identities, a different message is never taken for a duplicate (rule R7)",
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
  {
    name: "enqueue: every character comes back as it was given",
    async run(context) {
      const hostile = `O'Brien "q" \\ \\n {a,NULL} %_ $1 ? :x \u001A \t 消息 🚀 \u2028 end `;
      const { headers, orderingKey } = context.layout.columns;
      const message = context.message({
        type: "t '\"\\ 类型",
        key: `k '"\\ {},NULL 🚀`,
        topic: "t'\"\\主题",
        body: JSON.stringify({ hostile }),
        headers: headers === undefined ? null : JSON.stringify({ x: hostile }),
        orderingKey: orderingKey === undefined ? null : `o '"\\ {},NULL 🚀`,
      });
      await context.enqueue([message, context.message({ body: hostile })]);
      const [first, second] = await context.scan();
      assert.ok(first !== undefined && second !== undefined);
      const { type, key, topic, body } = first;
      assert.deepEqual([type, key, topic, body], [message.type, message.key, message.topic, message.body]);
      assert.deepEqual([first.headers, first.orderingKey], [message.headers, message.orderingKey]);
      assert.equal(second.body, hostile);
    },
  },
  {
    name: "enqueue: a body as large as the layout allows comes back whole",
    async run(context) {
      const bytes = Math.min(context.layout.limits.bodyBytes, 1_048_576);
      const body = "消".repeat(Math.floor(bytes / 3));
      await context.enqueue([context.message({ body })]);
      const [found] = await context.scan();
      assert.ok(found?.body === body, `a body of ${bytes} bytes`);
    },
  },
  {
    name: "enqueue: what the table has no column for is refused, not left out",
    needs: ["noHeaders"],
    async run(context) {
      const call = [context.message(), context.message({ headers: '{"a":"b"}' })];
      await assert.rejects(context.enqueue(call), InvalidMessageError);
      assert.equal(await context.table.count(), 0);
    },
  },
  {
    name: "enqueue: a commit rings the doorbell of another instance that listens, a rollback does not",
    needs: ["notifies", "instances"],
    async run(context) {
      const { database } = context.other;
      const listening = await database.listen(context.layout);
      assert.ok(listening !== undefined);
      let rings = 0;
      const unsubscribe = database.doorbell.subscribe(() => {
        rings += 1;
      });
      try {
        await rolledBack(context, (tx) => insert(context, tx, [context.message()]));
        await context.enqueue([context.message(), context.message()]);
        await until("the doorbell rings", () => rings > 0);
        assert.equal(rings, 1);
      } finally {
        unsubscribe();
        await listening.close();
      }
    },
  },
];

function insert(
  context: StoreCaseContext,
  tx: Executor,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore" = "throw",
): ReturnType<StoreCaseContext["enqueue"]> {
  return context.writer.insert(tx, messages, { duplicates });
}

/** Does the work in a transaction that is then rolled back. */
async function rolledBack(context: StoreCaseContext, work: (tx: Executor) => Promise<unknown>): Promise<void> {
  const transaction = context.database.transaction(async (tx) => {
    await work(tx);
    throw new ChangedMind();
  });
  await assert.rejects(transaction, ChangedMind);
}

/** The executor, with the names of its statements written down. */
function counted(tx: Executor, statements: string[]): Executor {
  return {
    kind: tx.kind,
    run(statement) {
      statements.push(statement.name);
      return tx.run(statement);
    },
  };
}

/** Two transactions enqueue one message; the first ends once the second waits for it. Returns what comes of the second. */
async function contested(
  context: StoreCaseContext,
  end: "commit" | "rollback",
): Promise<{ readonly committed: ReturnType<StoreCaseContext["enqueue"]>; readonly message: EncodedMessage }> {
  const message = context.message();
  let committed: ReturnType<StoreCaseContext["enqueue"]> | undefined;
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
