/**
 * What operators do, on any SQL database: look, and change by hand within the legal transitions.
 */

import type { MessageState, TransitionName } from "../../message/states.ts";
import { allowedFrom } from "../../message/states.ts";
import { ruleReason } from "../../message/suspension-reason.ts";
import type {
  ChangeReport,
  MessageAdmin,
  MessageFilter,
  OperatorAction,
  StoredMessage,
} from "../../outbox/message-admin.ts";
import type { SuspensionRule } from "../../relay/store.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { Executor, Statement } from "../../transactions/executor.ts";
import { checkSchema } from "./check-schema.ts";
import { moveRows } from "./housekeeping-store.ts";
import type { StoreParts } from "./relay-store.ts";
import { decodeState, integer, relayInstance, shardLease, storedMessage, suspensionRule, text } from "./rows.ts";
import { createSessionSlots } from "./session-slots.ts";

/** Rows of one page and of one change at most. */
const MOST_ROWS = 1_000;
/** An instance that has been silent for this long is shown as gone. */
const INSTANCE_TIMEOUT_MS = 60_000;
/** `removed` by a person: finished rows, and `failed` ones that the filter names. */
const REMOVABLE: readonly MessageState[] = ["sent", "consumed", "failed"];

/** Makes the operator's view of one message table. Sessions are opened at the first use. */
export function createMessageAdmin(parts: StoreParts): MessageAdmin {
  const { layout, statements } = parts;
  let checked = false;
  const slots = createSessionSlots({
    proveLost: false,
    shared: parts.sharedSession,
    connect: async () => {
      const session = await parts.connect({ purpose: "tool", clock: layout.clock });
      if (!checked) await checkSchema(session, { layout, schema: statements.schema });
      checked = true;
      return session;
    },
  });
  const read = (statement: Statement): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    slots.use("housekeeping", async (session) => (await session.run(statement)).rows);
  const inTransaction = <T>(work: (tx: Executor) => Promise<T>): Promise<T> =>
    slots.retry("housekeeping", (session) => session.transaction(work));

  async function list(
    filter: MessageFilter,
    limit: number,
    beforeId: string | undefined,
    archived: boolean,
  ): Promise<StoredMessage[]> {
    checkFilter(filter);
    const rows = await read(statements.admin.list({ filter, limit: clampLimit(limit), beforeId, archived }));
    return rows.map((row) => storedMessage(layout, row, archived));
  }

  /**
   * Rows that a change means: named ones whatever their state is (so that a conflict can be
   * reported), else those in an allowed state.
   */
  async function targets(filter: MessageFilter, allowed: readonly MessageState[], limit: number): Promise<string[]> {
    refuseEmpty(filter);
    const states = filter.states ?? (isNamed(filter) ? undefined : allowed);
    const narrowed =
      states === undefined || isNamed(filter) ? states : states.filter((state) => allowed.includes(state));
    const rows = await list(
      { ...filter, ...(narrowed === undefined ? {} : { states: narrowed }) },
      limit,
      undefined,
      false,
    );
    return rows.map(({ id }) => id);
  }

  async function change(
    request: { readonly filter: MessageFilter; readonly limit: number },
    allowed: readonly MessageState[],
    statement: (ids: readonly string[]) => Statement,
  ): Promise<ChangeReport> {
    const ids = await targets(request.filter, allowed, request.limit);
    if (ids.length === 0) return { changed: 0, conflicts: [] };
    return await inTransaction(async (tx) => {
      const { free, conflicts } = sort(await lock(tx, ids), allowed);
      const changed = free.length === 0 ? 0 : (await tx.run(statement(free))).affected;
      return { changed, conflicts };
    });
  }

  async function lock(tx: Executor, ids: readonly string[]): Promise<ChangeReport["conflicts"]> {
    const { rows } = await tx.run(statements.admin.lockRows(ids));
    return rows.map((row) => ({ id: text(row, "id"), state: decodeState(layout, row["state"]) }));
  }

  return {
    async status() {
      const counts = (await read(statements.admin.countByState())).map((row) => ({
        topic: text(row, "topic"),
        state: decodeState(layout, row["state"]),
        count: integer(row, "count"),
        oldestAgeMs: Math.max(0, integer(row, "oldest_age_ms")),
      }));
      const leases = (await read(statements.leases.readLeases())).map(shardLease);
      const instances = (await read(statements.leases.readInstances(INSTANCE_TIMEOUT_MS))).map(relayInstance);
      const suspensions = (await read(statements.leases.readSuspensions())).map(suspensionRule);
      return { counts, leases, instances, suspensions };
    },

    list: (request) => list(request.filter, request.limit, request.beforeId, request.archived ?? false),

    async show(identity) {
      const filter: MessageFilter =
        "id" in identity ? { ids: [identity.id] } : { type: identity.type, key: identity.key };
      const exact = (rows: readonly StoredMessage[]): StoredMessage | undefined =>
        "id" in identity
          ? rows[0]
          : (rows.find(({ type, key }) => type === identity.type && key === identity.key) ?? rows[0]);
      return exact(await list(filter, 10, undefined, false)) ?? exact(await list(filter, 10, undefined, true));
    },

    retry(request) {
      const allowed =
        request.resend === true
          ? transitionFrom("operatorRetry")
          : transitionFrom("operatorRetry").filter((state) => state !== "sent");
      return change(request, allowed, (ids) => statements.admin.operatorRetry({ ids, action: request.action }));
    },

    suspend: (request) =>
      change(request, transitionFrom("suspend"), (ids) =>
        statements.admin.suspendRows({ ids, action: request.action, untilMs: request.untilMs ?? null }),
      ),

    resume: (request) =>
      change(request, transitionFrom("resume"), (ids) => statements.admin.resumeRows({ ids, action: request.action })),

    async suspendScope(rule) {
      await slots.retry("housekeeping", (session) => session.run(statements.admin.putSuspension(checkRule(rule))));
    },

    async resumeScope({ scope, value, action }) {
      await slots.retry("housekeeping", (session) => session.run(statements.admin.deleteSuspension({ scope, value })));
      let resumed = 0;
      for (;;) {
        const rows = await read(statements.admin.listSuspendedBy({ scope, value, limit: MOST_ROWS }));
        const ids = rows.map((row) => text(row, "id"));
        const changed = ids.length === 0 ? 0 : await resumeBatch(ids, action);
        resumed += changed;
        // A row that somebody else has changed meanwhile is not suspended by this rule any more and
        // does not come back; none changed: done.
        if (changed === 0) return resumed;
      }
    },

    async remove({ filter, mode, action, limit }) {
      checkAction(action);
      const finished = REMOVABLE.filter(
        (state) => state !== "failed" || isNamed(filter) || filter.states?.includes("failed") === true,
      );
      const ids = await targets(filter, finished, limit);
      if (ids.length === 0) return 0;
      return await inTransaction(async (tx) => {
        const { free } = sort(await lock(tx, ids), finished);
        if (free.length > 0) await moveRows(tx, statements.housekeeping, mode, free);
        return free.length;
      });
    },

    close: () => slots.close(),
  };

  function resumeBatch(ids: readonly string[], action: OperatorAction): Promise<number> {
    return inTransaction(async (tx) => {
      const { free } = sort(await lock(tx, ids), transitionFrom("resume"));
      return free.length === 0 ? 0 : (await tx.run(statements.admin.resumeRows({ ids: free, action }))).affected;
    });
  }
}

function transitionFrom(name: TransitionName): readonly MessageState[] {
  return allowedFrom(name);
}

/** Locked rows that may be changed, and the others as they are. */
function sort(
  rows: ChangeReport["conflicts"],
  allowed: readonly MessageState[],
): { readonly free: readonly string[]; readonly conflicts: ChangeReport["conflicts"] } {
  const conflicts = rows.filter(({ state }) => state === "unknown" || !allowed.includes(state));
  const blocked = new Set(conflicts.map(({ id }) => id));
  return { free: rows.map(({ id }) => id).filter((id) => !blocked.has(id)), conflicts };
}

function isNamed(filter: MessageFilter): boolean {
  return filter.ids !== undefined || filter.key !== undefined;
}

function refuseEmpty(filter: MessageFilter): void {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  if (given.length === 0)
    throw new ConfigurationError(
      "name the messages by id, type, key, topic, ordering key or state: everything at once is refused",
    );
}

function checkFilter(filter: MessageFilter): void {
  for (const id of filter.ids ?? []) {
    if (!/^\d{1,19}$/.test(id))
      throw new ConfigurationError(`${JSON.stringify(id)} is not an id: a decimal number of up to 19 digits`);
  }
  for (const name of ["createdAfter", "createdBefore"] as const) {
    const value = filter[name];
    if (
      value !== undefined &&
      (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/.test(value) || Number.isNaN(Date.parse(value)))
    ) {
      throw new ConfigurationError(
        `${name} is ${JSON.stringify(value)}; it has to be an ISO 8601 text with a zone, such as 2026-01-31T08:00:00Z`,
      );
    }
  }
}

function checkAction(action: OperatorAction): void {
  if (action.author.trim() === "" || action.reason.trim() === "")
    throw new ConfigurationError("say who does it and why: author and reason are empty");
}

/**
 * The rule's beginning of fail_reason must fit, or its rows are not found again when it is lifted.
 */
function checkRule(rule: SuspensionRule): SuspensionRule {
  if (rule.scope !== "relay" && rule.value === "")
    throw new ConfigurationError(`a rule on ${rule.scope} needs a value`);
  if (ruleReason(rule).length > 400)
    throw new ConfigurationError("the value of a suspension rule has at most 255 characters");
  return rule;
}

function clampLimit(limit: number): number {
  return Math.min(MOST_ROWS, Math.max(1, Math.trunc(limit)));
}
