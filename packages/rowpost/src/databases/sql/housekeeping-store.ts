/** Housekeeping on any SQL database: small batches on its own session. */

import type { MessageState } from "../../message/states.ts";
import type { HousekeepingStore, RowRefusal, RowToken, SuspensionRule } from "../../relay/store.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { DatabaseConflictError, PermissionError, RowRefusedError } from "../../runtime/errors.ts";
import { grouped } from "../../runtime/grouped.ts";
import { nextVersion } from "../../runtime/next-version.ts";
import type { Statement } from "../../transactions/executor.ts";
import { behindInstant, headOfInstant } from "./behind.ts";
import { spelled } from "./cold.ts";
import { leftMessages } from "./insight/left-messages.ts";
import { COUNTED_ROWS, type Read } from "./insight/requests.ts";
import { readMessages } from "./insight/statements.ts";
import type { TableLayout } from "./layout.ts";
import { oldTransaction } from "./old-transactions.ts";
import { type Picked, pastRefused, pickPastRefused, telling } from "./past-refused.ts";
import {
  clip,
  decodeState,
  integer,
  messageSummary,
  sendingRow,
  suspensionRule,
  text,
  textOrNull,
  timedRow,
} from "./rows.ts";
import type { SessionSlots } from "./session-slots.ts";
import type { DialectStatements } from "./statements.ts";

export interface HousekeepingParts {
  readonly layout: TableLayout;
  readonly statements: Pick<DialectStatements, "confirm" | "housekeeping" | "leases" | "relay" | "table">;
  readonly slots: SessionSlots;
  readonly onRefused: (refusal: RowRefusal) => void;
}

export function createHousekeepingStore(parts: HousekeepingParts): HousekeepingStore {
  const { layout, slots, statements } = parts;
  const { housekeeping, leases, table } = statements;
  const read: Read = (statement) =>
    slots.use("housekeeping", async (session) => (await session.run(spelled(table.words, statement))).rows);
  const change = (statement: Statement): Promise<number> =>
    slots.retry("housekeeping", async (session) => (await session.run(statement)).affected);
  const changeRows = <Row extends { readonly id: string }>(
    doing: RowRefusal["doing"],
    rows: readonly Row[],
    statement: (rows: readonly Row[]) => Statement,
  ): Promise<number> => pastRefused(rows, (some) => change(statement(some)), telling(parts.onRefused, doing));
  const changePicked = (
    doing: RowRefusal["doing"],
    limit: number,
    statement: (picked: Picked) => Statement,
  ): Promise<number> =>
    pickPastRefused(
      limit,
      (picked) => change(statement(picked)),
      (error) => parts.onRefused({ doing, id: undefined, error }),
    );
  const reason = (value: string): string => clip(value, layout.failReasonLength);

  /** Whether the rule still exists in the table. A relay knows it from its last heartbeat. */
  async function stands(rule: Pick<SuspensionRule, "scope" | "value"> | undefined): Promise<boolean> {
    if (rule === undefined) return true;
    const rows = (await read(leases.readSuspensions())).map(suspensionRule);
    return rows.some(({ scope, value }) => scope === rule.scope && value === rule.value);
  }

  /**
   * Waits for locked rows: a skipped one would stay suspended forever, because the rule's rows are
   * not searched again.
   */
  async function resumeAgain(rows: readonly RowToken[]): Promise<number> {
    const decisions = rows.map((row) => ({
      ...row,
      lockVersion: nextVersion(row.lockVersion),
      transition: "resume" as const,
      failReason: null,
      nextRetryInMs: null,
    }));
    return await changeRows("timer", decisions, (some) =>
      housekeeping.applyTimed({ transition: "resume", decisions: some }),
    );
  }

  return {
    async listSending(request) {
      if (request.shards?.length === 0) return [];
      return (await read(housekeeping.listSending(request))).map(sendingRow);
    },

    recover: ({ fence, rows }) =>
      changeRows("recover", rows, (some) => housekeeping.recoverRows({ fence, rows: some })),

    async listTimed({ limit }) {
      return (await read(housekeeping.listTimed(limit))).flatMap((row) => timedRow(layout, row) ?? []);
    },

    async applyTimed({ decisions }) {
      const clean = decisions.map((decision) => ({
        ...decision,
        failReason: decision.failReason === null ? null : reason(decision.failReason),
      }));
      let changed = 0;
      for (const [transition, group] of grouped(clean, (decision) => decision.transition))
        changed += await changeRows("timer", group, (decisions) =>
          housekeeping.applyTimed({ transition, decisions, skipLocked: true }),
        );
      return changed;
    },

    async failUnknownStates({ limit }) {
      const ids = (await read(housekeeping.listStrays(limit))).map((row) => text(row, "id"));
      if (ids.length === 0) return [];
      const strays = ids.map((id) => ({ id }));
      const idsOf = (some: readonly { readonly id: string }[]): string[] => some.map(({ id }) => id);
      await changeRows("fail", strays, (some) => housekeeping.failUnknownStates(idsOf(some)));
      await changeRows("fail", strays, (some) => housekeeping.failUnreached(idsOf(some)));
      // Does not fail rows that are locked or were fixed meanwhile.
      const rows = await read(readMessages(table, { ids, archived: false, bodies: false }));
      return rows
        .map((row) => messageSummary(layout, row, false))
        .filter(({ state }) => state === "failed")
        .map(({ failReason, id, key, topic, type }) => ({ id, key, topic, type, reason: failReason ?? "" }));
    },

    left: async () => await leftMessages({ read, table }),

    async failPending({ rows, ...request }) {
      const clean = rows.map((row) => ({ ...row, failReason: reason(row.failReason) }));
      return await changeRows("fail", clean, (some) => housekeeping.failPending({ ...request, rows: some }));
    },

    async suspendPending({ rule, ...request }) {
      if (request.rows.length === 0 || !(await stands(rule))) return 0;
      const failReason = reason(request.failReason);
      const changed = await changeRows("suspend", request.rows, (rows) =>
        housekeeping.suspendPending({ ...request, rows, failReason }),
      );
      // The rule was lifted while the statement ran, and the search for its rows missed these.
      if (changed > 0 && !(await stands(rule))) return changed - (await resumeAgain(request.rows));
      return changed;
    },

    park: (request) => changeRows("park", request.rows, (rows) => housekeeping.park({ ...request, rows })),
    ...behindCalls(parts),
    removeFinished: createRemoval(parts),
    resetBackoff: (request) =>
      changePicked("bring forward", request.limit, (picked) => housekeeping.resetBackoff({ ...request, ...picked })),
    shortenWaits: ({ limit, ...request }) =>
      changePicked("bring forward", limit, (picked) => housekeeping.shortenWaits({ ...request, ...picked })),

    async clockMs() {
      const [row] = await read(housekeeping.readClock());
      if (row === undefined) throw new Error("the database answered no row to the question for its clock");
      return integer(row, "now_ms");
    },

    async oldTransactions(request) {
      const statement = housekeeping.oldTransactions?.(request);
      if (statement === undefined) return undefined;
      try {
        return (await read(statement)).map(oldTransaction);
      } catch (error) {
        if (error instanceof PermissionError) return undefined;
        // MySQL 9 lists nothing (3854) while any session runs a statement with a four-byte letter;
        // unknown this time.
        if (error instanceof RowRefusedError) return [];
        throw error;
      }
    },

    purgeArchive: (request) => change(housekeeping.purgeArchive(request)),
    forgetConfirmations: (request) => change(statements.confirm.forgetConfirmations(request)),

    forgetUnknown: (request) => change(statements.confirm.forgetUnknown(request)),

    async gauges() {
      const found = (await read(housekeeping.gauges(COUNTED_ROWS))).flatMap((row) => {
        const state = decodeState(layout, row["state"]);
        if (state === "unknown") return [];
        return [
          {
            topic: textOrNull(row, "topic") ?? "",
            state,
            count: integer(row, "count"),
            oldestAgeMs: Math.max(0, integer(row, "oldest_age_ms")),
          },
        ];
      });
      const ofState = (state: MessageState): number =>
        found.reduce((sum, one) => sum + (one.state === state ? one.count : 0), 0);
      return found.map((one) => ({ ...one, atLeast: ofState(one.state) >= COUNTED_ROWS }));
    },
  };
}

type Removal = Parameters<HousekeepingStore["removeFinished"]>[0];

/**
 * Examines the first rows by id, where the old ones are, and spends the rest of the limit on a walk
 * through all others that restarts at the end. Otherwise 500 young rows with the lowest ids would
 * hide every old one.
 */
function createRemoval({
  statements: { housekeeping },
  slots,
  onRefused,
}: HousekeepingParts): HousekeepingStore["removeFinished"] {
  /** Where the walk continues: after this id and this many rows. */
  const places = new Map<Removal["states"][number], { readonly afterId: string; readonly rows: number }>();

  /**
   * Halves until a row that cannot be deleted (another table refers to it) or archived is alone.
   * That row stays.
   */
  async function move(
    mode: Removal["mode"],
    request: Parameters<typeof housekeeping.lockFinished>[0],
  ): Promise<number> {
    let ids: readonly string[] = [];
    try {
      return await slots.retry("housekeeping", (session) =>
        session.transaction(async (tx) => {
          ids = (await tx.run(housekeeping.lockFinished(request))).rows.map((row) => text(row, "id"));
          if (ids.length === 0) return 0;
          await moveRows(tx, housekeeping, mode, ids);
          return ids.length;
        }),
      );
    } catch (error) {
      if (!(error instanceof RowRefusedError)) throw error;
      const half = Math.floor(request.limit / 2);
      if (half === 0) {
        onRefused({ doing: mode, id: ids[0], error });
        return 0;
      }
      const afterId = ids[half - 1] ?? ids.at(-1) ?? request.afterId;
      return (
        (await move(mode, { ...request, limit: half })) +
        (await move(mode, { ...request, afterId, limit: request.limit - half }))
      );
    }
  }

  async function pass(state: Removal["states"][number], afterId: string, rows: number): Promise<string | undefined> {
    if (rows === 0) return afterId;
    const statement = housekeeping.passFinished({ state, afterId, rows });
    const [row] = (await slots.use("housekeeping", (session) => session.run(statement))).rows;
    return row === undefined ? undefined : text(row, "id");
  }

  return async function removeFinished({ mode, states, olderThanMs, limit }) {
    let left = limit;
    for (const state of states) {
      if (left > 0) left -= await move(mode, { state, olderThanMs, afterId: "0", limit: left });
      if (left === 0) break;
      const place = places.get(state) ?? { afterId: "0", rows: left };
      const afterId = await pass(state, place.afterId, place.rows);
      places.delete(state);
      if (afterId === undefined) continue;
      const moved = await move(mode, { state, olderThanMs, afterId, limit: left });
      // After a removal other rows are in this place, so the walk looks there again.
      places.set(state, { afterId, rows: moved > 0 ? 0 : left });
      left -= moved;
    }
    return limit - left;
  };
}

/** Rows are set behind only in tables with ordering keys. */
function behindCalls({
  layout,
  statements: { housekeeping, relay },
  slots,
  onRefused,
}: HousekeepingParts): Pick<HousekeepingStore, "setBehind" | "bringBack" | "headsOfBehind"> {
  const isKeyed = layout.columns.orderingKey !== undefined;
  const run = (statement: Statement) => slots.retry("housekeeping", (session) => session.run(statement));
  return {
    async setBehind({ fence, rows }) {
      const behind = rows.flatMap((row) => {
        const instant = behindInstant(row.headId);
        return instant === undefined ? [] : [{ ...row, instant }];
      });
      if (behind.length === 0 || !isKeyed) return 0;
      const set = async (rows: readonly (typeof behind)[number][]): Promise<number> =>
        (await run(housekeeping.setBehind({ fence, rows }))).affected;
      return await pastRefused(behind, set, telling(onRefused, "set behind"));
    },

    async bringBack({ headIds, limit }) {
      const instants = [...headIds].sort(compareIds).flatMap((id) => behindInstant(id) ?? []);
      if (instants.length === 0 || !isKeyed) return 0;
      const bring = async (picked: Picked): Promise<number> =>
        (await run(housekeeping.bringBack({ instants, ...picked }))).affected;
      return await pickPastRefused(limit, bring, (error) => onRefused({ doing: "bring back", id: undefined, error }));
    },

    /** One index lookup per head, and one read of the heads. */
    async headsOfBehind({ afterHeadId, limit, failedBlocks }) {
      let after = isKeyed ? behindInstant(afterHeadId) : undefined;
      const headIds: string[] = [];
      while (after !== undefined && headIds.length < limit) {
        const [row] = (await run(housekeeping.nextBehind(after))).rows;
        const headId = headOfInstant(row === undefined ? null : textOrNull(row, "instant"));
        if (headId !== undefined) headIds.push(headId);
        after = headId === undefined ? undefined : behindInstant(headId);
      }
      if (headIds.length === 0) return [];
      const states = new Map(
        (await run(relay.readRows(headIds))).rows.map((row) => [text(row, "id"), decodeState(layout, row["state"])]),
      );
      const standing: readonly unknown[] = ["pending", "sending", "suspended", ...(failedBlocks ? ["failed"] : [])];
      return headIds.map((headId) => ({ headId, stands: standing.includes(states.get(headId)) }));
    },
  };
}

/**
 * Moves or deletes locked rows. A different count means that a row changed under the lock; then
 * everything is rolled back (rule: checked-move).
 */
export async function moveRows(
  tx: { run(statement: Statement): Promise<{ readonly affected: number }> },
  statements: DialectStatements["housekeeping"],
  mode: "archive" | "delete",
  ids: readonly string[],
): Promise<void> {
  if (mode === "archive") await copyRows(tx, statements, ids);
  await deleteRows(tx, statements, ids);
}

type Mover = Parameters<typeof moveRows>[0];

async function copyRows(tx: Mover, statements: DialectStatements["housekeeping"], ids: readonly string[]) {
  expectCount("copied to the archive", ids, (await tx.run(statements.copyToArchive(ids))).affected);
}

async function deleteRows(tx: Mover, statements: DialectStatements["housekeeping"], ids: readonly string[]) {
  expectCount("deleted", ids, (await tx.run(statements.deleteRows(ids))).affected);
}

function expectCount(what: string, ids: readonly string[], affected: number): void {
  if (affected === ids.length) return;
  throw new DatabaseConflictError(
    `${affected} of ${ids.length} locked messages were ${what}: rolled back, nothing was removed`,
  );
}
