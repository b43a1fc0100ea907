/**
 * Stores messages in this database and settles their rows in one transaction on its own session, so
 * other settles do not wait.
 */
import type { RelayStore, RowToken } from "../../relay/store.ts";
import { PermissionError, RowRefusedError } from "../../runtime/errors.ts";
import type { Executor } from "../../transactions/executor.ts";
import { inKnownTransaction } from "./known-commit.ts";
import { rowNow, text } from "./rows.ts";
import { changes, isAsClaimed, type SettleParts, sorted } from "./settle-store.ts";

type Request = Parameters<RelayStore["settleWithin"]>[0];

export function createSettleWithin({ layout, statements, slots }: SettleParts): RelayStore["settleWithin"] {
  /**
   * Skips rows that may stay locked for minutes. Message rows are locked before lease rows;
   * settle-store.ts explains why that cannot deadlock.
   */
  async function lockClaimed(tx: Executor, rows: readonly RowToken[], from: Request["from"]): Promise<Set<string>> {
    const free = (await tx.run(statements.relay.lockFreeRows(rows.map(({ id }) => id)))).rows;
    if (free.length === 0) return new Set();
    const found = await tx.run(statements.relay.readRows(free.map((row) => text(row, "id"))));
    const now = new Map(found.rows.map((row) => [text(row, "id"), rowNow(layout, row)]));
    const locked = rows.filter((token) => {
      const row = now.get(token.id);
      return row !== undefined && isAsClaimed(layout, token, row, from);
    });
    return new Set(locked.map(({ id }) => id));
  }

  async function work(tx: Executor, request: Request, onSent: Request["onSent"]): Promise<ReadonlySet<string>> {
    const { fence, rows, from, store } = request;
    const claimed = await lockClaimed(tx, rows, from);
    if (claimed.size === 0) return claimed;
    const outcomes = await store(tx, claimed);
    const [kept, removed] = sorted(layout, { outcomes, onSent });
    const { toKeep, toRemove } = changes(statements, { fence, from, onSent, elapsedMs: request.elapsedMs() });
    let affected = 0;
    if (kept.length > 0) affected += await toKeep.run(tx, kept);
    if (removed.length > 0) affected += await toRemove.run(tx, removed);
    // The lease was lost since the claim, and another relay appends them.
    if (affected !== outcomes.length) throw new FencedOut();
    await request.beforeCommit();
    return new Set(outcomes.map(({ id }) => id));
  }

  async function transact(request: Request, onSent: Request["onSent"]): Promise<ReadonlySet<string>> {
    return await slots.use("append", (session) => inKnownTransaction(session, (tx) => work(tx, request, onSent)));
  }

  return async (request) => {
    try {
      return await transact(request, request.onSent);
    } catch (error) {
      if (error instanceof FencedOut) return new Set();
      // Left to housekeeping: another table refers to the row, or this account may not delete.
      const stays = error instanceof RowRefusedError || error instanceof PermissionError;
      if (request.onSent === "keep" || !stays) throw error;
      return await transact(request, "keep");
    }
  };
}

/** Rolls the transaction back. */
class FencedOut extends Error {}
