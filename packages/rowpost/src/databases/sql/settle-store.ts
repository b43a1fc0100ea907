/**
 * Writing outcomes on any SQL database: for all rows at once, and past rows that somebody else
 * holds.
 */
import type { Fence, Outcome, RowNow } from "../../relay/store.ts";
import { describeError, RowRefusedError } from "../../runtime/errors.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { TableLayout } from "./layout.ts";
import { hasClaimToken } from "./layouts.ts";
import { createPastLocks } from "./past-locks.ts";
import { clip, rowNow, text } from "./rows.ts";
import type { SessionSlots } from "./session-slots.ts";
import type { DialectStatements } from "./statements.ts";

/** What is to be written; see `RelayStore.settle`. */
export interface SettleRequest {
  readonly fence: Fence;
  readonly outcomes: readonly Outcome[];
  readonly elapsedMs: number;
  readonly from: "sending" | "pending";
}

export interface SettleParts {
  readonly layout: TableLayout;
  readonly statements: DialectStatements;
  readonly slots: SessionSlots;
  readonly isRowRefused: (error: unknown) => boolean;
}

/** Makes the function that writes outcomes. */
export function createSettle({
  layout,
  statements,
  slots,
  isRowRefused,
}: SettleParts): (request: SettleRequest) => Promise<RowNow[]> {
  const settlePastLocks = createPastLocks();

  /**
   * Returns the ids of outcomes that may not be written; `held` gets those of them whose rows
   * somebody holds.
   */
  async function write(
    outcomes: readonly Outcome[],
    statementFor: (outcomes: readonly Outcome[]) => Statement,
    held: Set<string>,
  ): Promise<readonly Outcome[]> {
    if (outcomes.length === 0) return [];
    try {
      return await settlePastLocks(
        async () => {
          const { affected } = await slots.use("settle", (session) => session.run(statementFor(outcomes)));
          return affected === outcomes.length ? [] : outcomes;
        },
        () => writeUnheld(outcomes, statementFor, held),
      );
    } catch (error) {
      if (!isRowRefused(error)) throw error;
      throw new RowRefusedError(`settle: the table does not take an outcome (${describeError(error)})`, {
        cause: error,
      });
    }
  }

  /**
   * Somebody holds one of the rows, perhaps for minutes: a consumer whose own transaction confirms,
   * a forgotten console. The others must not wait for it. Locks what nobody holds and settles that,
   * in one transaction, so that the statement finds no lock to wait for. The message rows are
   * locked before the lease rows here, and after them everywhere else: a claim of ours that holds
   * the lease rows waits for other rows than these, and a takeover, which wants the lease rows
   * alone, passes over rows that are locked. If we die within it: nothing is written, and the rows
   * are still `sending`.
   */
  async function writeUnheld(
    outcomes: readonly Outcome[],
    statementFor: (outcomes: readonly Outcome[]) => Statement,
    held: Set<string>,
  ): Promise<readonly Outcome[]> {
    return await slots.retry("settle", (session) =>
      session.transaction(async (tx) => {
        const found = await tx.run(statements.relay.lockFreeRows(outcomes.map(({ id }) => id)));
        const ids = new Set(found.rows.map((row) => text(row, "id")));
        const free = outcomes.filter(({ id }) => ids.has(id));
        const affected = free.length === 0 ? 0 : (await tx.run(statementFor(free))).affected;
        const rest = outcomes.filter(({ id }) => !ids.has(id));
        for (const { id } of rest) held.add(id);
        return affected === free.length ? rest : outcomes;
      }),
    );
  }

  return async (request) => {
    const sent: Outcome[] = [];
    const other: Outcome[] = [];
    for (const outcome of request.outcomes) {
      const clean = {
        ...outcome,
        messageId: outcome.messageId === null ? null : clip(outcome.messageId, layout.messageIdLength),
        failReason: outcome.failReason === null ? null : clip(outcome.failReason, layout.failReasonLength),
      };
      (outcome.toState === "sent" ? sent : other).push(clean);
    }
    const held = new Set<string>();
    const { relay } = statements;
    const doubtful = [
      ...(await write(sent, (outcomes) => relay.settleSent({ ...request, outcomes }), held)),
      ...(await write(other, (outcomes) => relay.settleOther({ ...request, outcomes }), held)),
    ];
    if (doubtful.length === 0) return [];
    const { rows } = await slots.use("settle", (session) => session.run(relay.readRows(doubtful.map(({ id }) => id))));
    const now = new Map(rows.map((row) => [text(row, "id"), rowNow(layout, row)]));
    return unsettled(layout, doubtful, { now, held, from: request.from });
  };
}

interface Found {
  readonly now: ReadonlyMap<string, RowNow>;
  readonly held: ReadonlySet<string>;
  readonly from: "sending" | "pending";
}

/**
 * Which of these outcomes do not stand in the table. A row that is gone was archived or deleted
 * after it was settled, or by a person.
 */
function unsettled(layout: TableLayout, outcomes: readonly Outcome[], { now, held, from }: Found): RowNow[] {
  const wrong: RowNow[] = [];
  for (const outcome of outcomes) {
    const row = now.get(outcome.id);
    if (row === undefined) wrong.push({ id: outcome.id, state: "unknown", deliveryCount: 0, lockVersion: 0 });
    else if (held.has(row.id) && isStillOurs(layout, outcome, row, from)) wrong.push({ ...row, isHeld: true });
    else if (!stands(layout, outcome, row)) wrong.push(row);
  }
  return wrong;
}

/**
 * As it was claimed, or overtaken by a confirmation: once nobody holds it any more, the outcome can
 * be written.
 */
function isStillOurs(layout: TableLayout, outcome: Outcome, now: RowNow, from: "sending" | "pending"): boolean {
  if (now.state === "consumed" && outcome.toState === "sent") return sameDelivery(layout, outcome, now);
  if (now.state !== from) return false;
  if (hasClaimToken(layout)) return now.lockVersion === outcome.lockVersion;
  return sameDelivery(layout, outcome, now);
}

function sameDelivery(layout: TableLayout, outcome: Outcome, now: RowNow): boolean {
  return layout.columns.deliveryCount === undefined || now.deliveryCount === outcome.deliveryCount;
}

/**
 * Is the row as this outcome has left it? Then it was written: now, or by an earlier copy of the
 * same settle whose answer was lost (rule: claim-token).
 */
function stands(layout: TableLayout, outcome: Outcome, now: RowNow): boolean {
  if (now.state === "consumed" && outcome.toState === "sent") return sameDelivery(layout, outcome, now);
  if (now.state !== outcome.toState) return false;
  return !hasClaimToken(layout) || now.lockVersion === outcome.lockVersion + 1;
}
