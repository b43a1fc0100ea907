/**
 * What operators do, on any SQL database: look, and change by hand within the legal transitions.
 */

import type { MessageState } from "../../message/states.ts";
import { ruleReason } from "../../message/suspension-reason.ts";
import type {
  ChangeReport,
  ChangeTarget,
  CopyRequest,
  MessageAdmin,
  MessageFilter,
  OperatorAction,
  SeenMessage,
} from "../../outbox/message-admin.ts";
import type { MessageWriter } from "../../outbox/message-writer.ts";
import type { SuspensionRule } from "../../relay/store.ts";
import { compareIds, inIdOrder } from "../../runtime/compare-ids.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { resetBackoff } from "../../runtime/reset-backoff.ts";
import type { Executor, Statement } from "../../transactions/executor.ts";
import { auditEntry, changesOf } from "./changes-by-hand.ts";
import { createHandChanges, type HandChange } from "./hand-changes.ts";
import { createMessageCopy } from "./message-copy.ts";
import { explainMessage } from "./message-explain.ts";
import { createMessageSearch } from "./message-search.ts";
import { readStatus } from "./message-status.ts";
import { pickAll } from "./past-refused.ts";
import type { StoreParts } from "./relay-store.ts";
import { type Row, suspensionRule, text, wholeText } from "./rows.ts";
import { createToolSlots } from "./tool-slots.ts";
import { readUnconfirmed } from "./unconfirmed.ts";

/** Rows of one page and of one change at most. */
const MOST_ROWS = 1_000;
/** How long a list looks for messages that no index leads to. */
const LIST_SEARCH_MS = 5_000;
/** The same for one call of a change; the next one goes on where it ended. */
const CHANGE_SEARCH_MS = 2_000;

export interface AdminParts extends StoreParts {
  readonly writer: MessageWriter;
}

/** Makes the operator's view of one message table. Sessions are opened at the first use. */
export function createMessageAdmin(parts: AdminParts, statementTimeoutMs?: number): MessageAdmin {
  const { layout, statements } = parts;
  const slots = createToolSlots(parts, statementTimeoutMs);
  const read = (statement: Statement): Promise<readonly Row[]> =>
    slots.use("housekeeping", async (session) => (await session.run(statement)).rows);
  const inTransaction = <T>(work: (tx: Executor) => Promise<T>): Promise<T> =>
    slots.retry("housekeeping", (session) => session.transaction(work));

  const changes = createHandChanges(parts);
  const search = createMessageSearch({ layout, statements, read });
  const copyMessage = createMessageCopy({ layout, statements, changes, writer: parts.writer, inTransaction });

  /**
   * Rows that a change means, the lowest ids first: named ones whatever their state is (so that a
   * conflict can be reported), else those in an allowed state.
   */
  async function targets(request: ChangeTarget, allowed: readonly MessageState[]): Promise<Targets> {
    const { afterId, filter, seen } = request;
    const limit = clampLimit(request.limit);
    if (seen !== undefined) return namedTargets(seen, limit, afterId);
    refuseEmpty(filter);
    checkFilter(filter);
    const states = isNamed(filter)
      ? filter.states
      : (filter.states?.filter((state) => allowed.includes(state)) ?? allowed);
    const { found, next } = await search.search({
      ...{ filter: { ...filter, ...(states === undefined ? {} : { states }) }, limit, behindId: afterId },
      ...{ newestFirst: false, archived: false, timeLimitMs: CHANGE_SEARCH_MS },
    });
    return { rows: found, nextAfterId: next };
  }

  /** Finds what is meant, and changes it. */
  async function change(made: HandChange, request: ChangeTarget): Promise<ChangeReport> {
    const { action } = request;
    checkAction(action);
    const { nextAfterId, rows } = await targets(request, made.allowed);
    if (rows.length === 0) return { changed: 0, conflicts: [], nextAfterId };
    const report = await inTransaction((tx) => changes.apply(tx, made, { rows, action }));
    return { ...report, nextAfterId };
  }

  /** A change of a rule, and what it said before. */
  async function changeRule(what: string, action: OperatorAction, rule: RuleName, statement: Statement): Promise<void> {
    checkAction(action);
    const { scope, value } = rule;
    await inTransaction(async (tx) => {
      const [row] = (await tx.run(statements.admin.lockSuspension({ scope, value }))).rows;
      const before = row === undefined ? null : ruleBefore(suspensionRule(row));
      const details = JSON.stringify({ rule: { scope, value }, before });
      const { affected } = await tx.run(statement);
      if (affected > 0) await tx.run(statements.admin.recordChange(auditEntry(what, action, { changed: 0, details })));
    });
  }

  return {
    status: async ({ exact = false } = {}) => await readStatus({ layout, statements, read }, exact),

    async list({ archived = false, beforeId, filter, limit, timeLimitMs = LIST_SEARCH_MS }) {
      checkFilter(beforeId === undefined ? filter : { ...filter, ids: [...(filter.ids ?? []), beforeId] });
      const { found, next, timeIsUp } = await search.search({
        ...{ filter, limit: clampLimit(limit), behindId: beforeId },
        ...{ newestFirst: true, archived, timeLimitMs },
      });
      return { messages: await search.summaries(found, archived), nextBeforeId: next, timeIsUp };
    },

    async show(identity) {
      const filter: MessageFilter =
        "id" in identity ? { ids: [identity.id] } : { type: identity.type, key: identity.key };
      checkFilter(filter);
      for (const archived of [false, true]) {
        const request = { filter, limit: 10, newestFirst: true, archived, timeLimitMs: LIST_SEARCH_MS };
        const { found } = await search.search(request);
        const messages = await search.messages(found, archived);
        const exact = messages.find(
          ({ key, type }) => !("id" in identity) && type === identity.type && key === identity.key,
        );
        if (messages[0] !== undefined) return exact ?? messages[0];
      }
      return undefined;
    },

    explain: (message) => explainMessage({ layout, statements, read, search }, message),

    async changes(id) {
      checkFilter({ ids: [id] });
      return await changesOf({ read, statements }, id);
    },

    unconfirmed: ({ limit }) => readUnconfirmed({ statements, read, search }, clampLimit(limit)),

    retry: ({ now = false, resend = false, ...request }) => change(changes.retry({ resend, now }), request),

    async resetBackoff({ action, topic }) {
      checkAction(action);
      const details = JSON.stringify({ topic });
      // Each batch with its entry: if we die between two, what was brought forward is written down.
      return await resetBackoff((batch) =>
        inTransaction(async (tx) => {
          const step = { topic, ...batch, ...pickAll(batch.limit) };
          const { affected: changed } = await tx.run(statements.housekeeping.resetBackoff(step));
          const entry = auditEntry("reset backoff", action, { changed, details });
          if (changed > 0) await tx.run(statements.admin.recordChange(entry));
          return changed;
        }),
      );
    },

    suspend: ({ untilMs, ...request }) => change(changes.suspend(untilMs ?? null), request),
    resume: (request) => change(changes.resume(), request),
    confirm: (request) => change(changes.confirm(), request),

    async suspendScope(rule) {
      await changeRule("suspend rule", rule, rule, statements.admin.putSuspension(checkRule(rule)));
    },

    async resumeScope({ scope, value, action }) {
      const rule = { scope, value };
      await changeRule("resume rule", action, rule, statements.admin.deleteSuspension(rule));
      let resumed = 0;
      for (;;) {
        const rows = await read(statements.admin.listSuspendedBy({ scope, value, limit: MOST_ROWS }));
        const seen = rows.map((row) => ({ id: text(row, "id"), lockVersion: wholeText(row, "lock_version") }));
        const target = { filter: {}, seen, action, limit: MOST_ROWS };
        const { changed } = await change(changes.resume(), target);
        resumed += changed;
        // A row that somebody else has changed meanwhile is not suspended by this rule any more and
        // does not come back; none changed: done.
        if (changed === 0) return resumed;
      }
    },

    remove({ mode, ...request }) {
      const { filter, seen } = request;
      const named = seen !== undefined || isNamed(filter) || filter.states?.includes("failed") === true;
      return change(changes.remove(mode, named), request);
    },

    async copy(request) {
      checkAction(request.action);
      checkFilter({ ids: [request.seen.id] });
      checkCopy(request);
      return await copyMessage(request);
    },

    close: () => slots.close(),
  };
}

function ruleBefore({ author, endsInMs, reason }: SuspensionRule): Readonly<Record<string, unknown>> {
  return { reason, author, endsInMs };
}

type RuleName = Pick<SuspensionRule, "scope" | "value">;

/** Rows that a change means, as they were seen. */
interface Targets {
  readonly rows: readonly SeenMessage[];
  readonly nextAfterId: string | undefined;
}

function namedTargets(seen: readonly SeenMessage[], limit: number, afterId: string | undefined): Targets {
  const left = inIdOrder(seen).filter(({ id }) => afterId === undefined || compareIds(id, afterId) > 0);
  checkFilter({ ids: left.map(({ id }) => id) });
  const rows = left.slice(0, limit);
  return { rows, nextAfterId: rows.length < left.length ? rows.at(-1)?.id : undefined };
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

/** In JavaScript nobody else does: what is no `keep` and no `suspend` would be taken away. */
function checkCopy({ change, original }: CopyRequest): void {
  if (!["keep", "suspend", "archive"].includes(original))
    throw new ConfigurationError(`original is ${String(original)}; it must be "keep", "suspend" or "archive"`);
  if (change.body !== undefined && typeof change.body !== "string")
    throw new ConfigurationError(`change.body is the body as it is stored, a string, not ${typeof change.body}`);
}

function clampLimit(limit: number): number {
  return Math.min(MOST_ROWS, Math.max(1, Math.trunc(limit)));
}
