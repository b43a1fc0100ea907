/** Writes outcomes on any SQL database, for all rows at once, skipping rows that others hold. */

import type { Outcome, RelayStore, RowNow, RowToken } from "../../relay/store.ts";
import { PermissionError, RowRefusedError } from "../../runtime/errors.ts";
import { nextVersion } from "../../runtime/next-version.ts";
import type { Session } from "../database.ts";
import { moveRows } from "./housekeeping-store.ts";
import type { TableLayout } from "./layout.ts";
import { hasClaimToken } from "./layouts.ts";
import { createPastLocks } from "./past-locks.ts";
import { clip, rowNow, text } from "./rows.ts";
import type { SessionSlots } from "./session-slots.ts";
import type { DialectStatements } from "./statements.ts";

export type SettleRequest = Parameters<RelayStore["settle"]>[0];

export interface SettleParts {
  readonly layout: TableLayout;
  readonly statements: DialectStatements;
  readonly slots: SessionSlots;
}

export function createSettle({
  layout,
  statements,
  slots,
}: SettleParts): (request: SettleRequest) => Promise<RowNow[]> {
  const settlePastLocks = createPastLocks();

  /** Returns the outcomes that may not be written; adds those with locked rows to `held`. */
  async function write(outcomes: readonly Outcome[], change: Change, held: Set<string>): Promise<readonly Outcome[]> {
    if (outcomes.length === 0) return [];
    try {
      return await settlePastLocks(
        async () => {
          const affected = await slots.use("settle", (session) =>
            change.severalStatements === true
              ? session.transaction((tx) => change.run(tx, outcomes))
              : change.run(session, outcomes),
          );
          return affected === outcomes.length ? [] : outcomes;
        },
        () => writeUnheld(outcomes, change, held),
      );
    } catch (error) {
      // Refused as one of several: the caller halves until it is alone.
      const isAlone = error instanceof RowRefusedError && outcomes.length === 1;
      if (change.otherwise !== undefined && (isAlone || error instanceof PermissionError))
        return await write(outcomes, change.otherwise, held);
      throw error;
    }
  }

  /**
   * A row may stay locked for minutes, by a consumer's transaction or a forgotten console. Locks
   * the free rows and settles them in one transaction, so the others do not wait. Only here message
   * rows are locked before lease rows. That cannot deadlock: our claims that hold the lease rows
   * wait for other rows, and a takeover skips locked rows. If we die within it, nothing is written,
   * and the rows are still `sending`.
   */
  async function writeUnheld(
    outcomes: readonly Outcome[],
    change: Change,
    held: Set<string>,
  ): Promise<readonly Outcome[]> {
    return await slots.retry("settle", (session) =>
      session.transaction(async (tx) => {
        const found = await tx.run(statements.relay.lockFreeRows(outcomes.map(({ id }) => id)));
        const ids = new Set(found.rows.map((row) => text(row, "id")));
        const free = outcomes.filter(({ id }) => ids.has(id));
        const affected = free.length === 0 ? 0 : await change.run(tx, free);
        const rest = outcomes.filter(({ id }) => !ids.has(id));
        for (const { id } of rest) held.add(id);
        return affected === free.length ? rest : outcomes;
      }),
    );
  }

  return async (request) => {
    const [kept, removed, other] = sorted(layout, request);
    const held = new Set<string>();
    const { toKeep, toRemove, toOther } = changes(statements, request);
    const doubtful = [
      ...(await write(kept, toKeep, held)),
      ...(await write(removed, toRemove, held)),
      ...(await write(other, toOther, held)),
    ];
    if (doubtful.length === 0) return [];
    const ids = doubtful.map(({ id }) => id);
    const { rows } = await slots.use("settle", (session) => session.run(statements.relay.readRows(ids)));
    const now = new Map(rows.map((row) => [text(row, "id"), rowNow(layout, row)]));
    const gone = new Set(removed.flatMap(({ id }) => (now.has(id) ? [] : [id])));
    return unsettled(
      layout,
      doubtful.filter(({ id }) => !gone.has(id)),
      { now, held, from: request.from },
    );
  };
}

export interface Change {
  /** Returns how many rows were as claimed. */
  run(tx: Pick<Session, "run">, outcomes: readonly Outcome[]): Promise<number>;
  readonly severalStatements?: boolean;
  /** Fallback if the table refuses it. */
  readonly otherwise?: Change;
}

/**
 * Removes a row that need not be kept, by one DELETE, or by the settle and the move in one
 * transaction. Left to housekeeping if not every row is as claimed, the table refuses (another one
 * refers to the row), or the account lacks the privilege.
 */
export function changes(
  { relay, housekeeping }: DialectStatements,
  { onSent, ...request }: Omit<SettleRequest, "outcomes">,
): Readonly<Record<"toKeep" | "toRemove" | "toOther", Change>> {
  const toKeep: Change = {
    run: async (tx, outcomes) => (await tx.run(relay.settleSent({ ...request, outcomes }))).affected,
  };
  const toDelete: Change = {
    run: async (tx, rows) => (await tx.run(relay.deleteSent({ ...request, rows }))).affected,
    otherwise: toKeep,
  };
  const toArchive: Change = {
    async run(tx, outcomes) {
      const affected = await toKeep.run(tx, outcomes);
      const ids = outcomes.map(({ id }) => id);
      if (affected === outcomes.length) await moveRows(tx, housekeeping, "archive", ids);
      return affected;
    },
    severalStatements: true,
    otherwise: toKeep,
  };
  return {
    toKeep,
    toRemove: onSent === "archive" ? toArchive : toDelete,
    toOther: { run: async (tx, outcomes) => (await tx.run(relay.settleOther({ ...request, outcomes }))).affected },
  };
}

/** Outcomes with fitting texts: sent and kept, sent and removed, all others. */
export function sorted(
  layout: TableLayout,
  { outcomes, onSent = "keep" }: Pick<SettleRequest, "outcomes" | "onSent">,
): readonly [readonly Outcome[], readonly Outcome[], readonly Outcome[]] {
  const kept: Outcome[] = [];
  const removed: Outcome[] = [];
  const other: Outcome[] = [];
  for (const outcome of outcomes) {
    const clean = {
      ...outcome,
      messageId: outcome.messageId === null ? null : clip(outcome.messageId, layout.messageIdLength),
      failReason: outcome.failReason === null ? null : clip(outcome.failReason, layout.failReasonLength),
    };
    if (outcome.toState !== "sent") other.push(clean);
    // With a deadline it awaits its confirmation.
    else if (onSent === "keep" || outcome.nextRetryInMs !== null) kept.push(clean);
    else removed.push(clean);
  }
  return [kept, removed, other];
}

interface Found {
  readonly now: ReadonlyMap<string, RowNow>;
  readonly held: ReadonlySet<string>;
  readonly from: "sending" | "pending";
}

/**
 * Outcomes not in the table. A missing row was archived or deleted after its settle, or by a
 * person.
 */
function unsettled(layout: TableLayout, outcomes: readonly Outcome[], { now, held, from }: Found): RowNow[] {
  const wrong: RowNow[] = [];
  for (const outcome of outcomes) {
    const row = now.get(outcome.id);
    if (row === undefined) wrong.push({ ...outcome, state: "unknown", deliveryCount: 0, lockVersion: "0" });
    else if (held.has(row.id) && isStillOurs(layout, outcome, row, from)) wrong.push({ ...row, isHeld: true });
    else if (!stands(layout, outcome, row)) wrong.push(row);
  }
  return wrong;
}

/** As claimed, or overtaken by a confirmation: the outcome can be written once the row is free. */
function isStillOurs(layout: TableLayout, outcome: Outcome, now: RowNow, from: "sending" | "pending"): boolean {
  if (isOvertaken(outcome, now)) return sameDelivery(layout, outcome, now);
  return isAsClaimed(layout, outcome, now, from);
}

export function isAsClaimed(layout: TableLayout, token: RowToken, now: RowNow, from: "sending" | "pending"): boolean {
  if (now.state !== from || now.identityHash !== token.identityHash) return false;
  if (hasClaimToken(layout)) return now.lockVersion === token.lockVersion;
  return sameDelivery(layout, token, now);
}

function sameDelivery(layout: TableLayout, outcome: RowToken, now: RowNow): boolean {
  return layout.columns.deliveryCount === undefined || now.deliveryCount === outcome.deliveryCount;
}

/**
 * Whether the row is as this outcome leaves it, so it was written now, or by an earlier copy of
 * this settle whose answer was lost (rule: claim-token).
 */
function stands(layout: TableLayout, outcome: Outcome, now: RowNow): boolean {
  if (isOvertaken(outcome, now)) return sameDelivery(layout, outcome, now);
  if (now.state !== outcome.toState || now.identityHash !== outcome.identityHash) return false;
  return !hasClaimToken(layout) || now.lockVersion === nextVersion(outcome.lockVersion);
}

function isOvertaken(outcome: Outcome, now: RowNow): boolean {
  return now.state === "consumed" && outcome.toState === "sent" && now.identityHash === outcome.identityHash;
}
