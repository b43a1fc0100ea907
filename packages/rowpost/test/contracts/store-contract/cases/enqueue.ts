/**
 * Messages written in the user's transaction: what stands in the row, and that nothing is left of a
 * call that throws.
 */
import assert from "node:assert/strict";
import { InvalidMessageError, TransactionRequiredError } from "../../../../src/runtime/errors.ts";
import { until } from "../../../../src/testing/contract-run.ts";
import type { Executor } from "../../../../src/transactions/executor.ts";
import type { StoreContractCase } from "../case.ts";
import { insert, rolledBack } from "../user-transaction.ts";
import { duplicateCases } from "./duplicates.ts";

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
      assert.deepEqual([type, key, topic, body], [message.type, message.key, message.topic, message.body]);
      const given = [message.headers, message.contentType, message.orderingKey];
      assert.deepEqual([headers, contentType, orderingKey], given);
      assert.deepEqual([row.state, row.retryCount, row.deliveryCount], ["pending", 0, 0]);
      assert.ok(row.lockVersion >= 0 && row.lockVersion < 1_000_000, `lock_version begins at ${row.lockVersion}`);
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
      const rows = await context.store.scan({
        shards: undefined,
        afterId: "0",
        bodyLimit: Number.MAX_SAFE_INTEGER,
        immediateLimit: 2_000,
        dueLimit: 0,
      });
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
  ...duplicateCases,
];

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
