/** Enqueue in a transaction of the user's, which commits or rolls back. */
import assert from "node:assert/strict";
import type { EncodedMessage, EnqueueStatus } from "../../../src/outbox/message-writer.ts";
import type { Executor } from "../../../src/transactions/executor.ts";
import type { StoreCaseContext } from "./context.ts";

/** Thrown to roll a transaction back. */
class ChangedMind extends Error {}

export function insert(
  context: StoreCaseContext,
  tx: Executor,
  messages: readonly EncodedMessage[],
  duplicates: "throw" | "ignore" = "throw",
): Promise<EnqueueStatus[]> {
  return context.writer.insert(tx, messages, { duplicates });
}

/** Does the work in a transaction that is then rolled back. */
export async function rolledBack(context: StoreCaseContext, work: (tx: Executor) => Promise<unknown>): Promise<void> {
  const transaction = context.database.transaction(async (tx) => {
    await work(tx);
    throw new ChangedMind();
  });
  await assert.rejects(transaction, ChangedMind);
}
