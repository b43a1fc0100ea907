import type {
  ChangeReport,
  ChangeTarget,
  CopyRequest,
  MessageAdmin,
  MessageFilter,
  OperatorAction,
} from "../../../admin/message-admin.ts";
import { ruleReason } from "../../../message/suspension-reason.ts";
import type { MessageWriter } from "../../../outbox/message-writer.ts";
import type { SuspensionRule } from "../../../relay/store.ts";
import { ConfigurationError } from "../../../runtime/errors.ts";
import { resetBackoff } from "../../../runtime/reset-backoff.ts";
import type { Executor, Statement } from "../../../transactions/executor.ts";
import { spelled } from "../cold.ts";
import { explainMessage } from "../insight/explain.ts";
import type { Read } from "../insight/requests.ts";
import { checkFilter, createMessageSearch } from "../insight/search.ts";
import { readStatus } from "../insight/status.ts";
import { readUnconfirmed } from "../insight/unconfirmed.ts";
import { pickAll } from "../past-refused.ts";
import type { StoreParts } from "../relay-store.ts";
import { suspensionRule, text, wholeText } from "../rows.ts";
import { createToolSlots } from "../tool-slots.ts";
import { auditEntry, changesOf, checkAction } from "./changes-by-hand.ts";
import { createHandChanges, type HandChange } from "./hand-changes.ts";
import { clampLimit, createManyMessages, MOST_ROWS } from "./many-messages.ts";
import { createMessageCopy } from "./message-copy.ts";
import { deleteSuspension, listSuspendedBy, lockSuspension, recordChange } from "./statements.ts";

/** Search time of a list without a usable index. */
const LIST_SEARCH_MS = 5_000;

export interface AdminParts extends StoreParts {
  readonly writer: MessageWriter;
}

/** Opens its sessions at the first use. */
export function createMessageAdmin(parts: AdminParts, statementTimeoutMs?: number): MessageAdmin {
  const { statements } = parts;
  const slots = createToolSlots(parts, statementTimeoutMs);
  const { table } = statements;
  const read: Read = (statement) =>
    slots.use("housekeeping", async (session) => (await session.run(spelled(table.words, statement))).rows);
  const inTransaction = <T>(work: (tx: Executor) => Promise<T>): Promise<T> =>
    slots.retry("housekeeping", (session) => session.transaction(work));

  const changes = createHandChanges(parts);
  const search = createMessageSearch({ table, read });
  const many = createManyMessages({ statements, read, changes, search, inTransaction });
  const copyMessage = createMessageCopy({ statements, changes, writer: parts.writer, inTransaction });

  /** A change of a rule, with its former text. */
  async function changeRule(what: string, action: OperatorAction, rule: RuleName, statement: Statement): Promise<void> {
    checkAction(action);
    const { scope, value } = rule;
    await inTransaction(async (tx) => {
      const [row] = (await tx.run(spelled(table.words, lockSuspension(table, { scope, value })))).rows;
      const before = row === undefined ? null : ruleBefore(suspensionRule(row));
      const details = JSON.stringify({ rule: { scope, value }, before });
      const { affected } = await tx.run(statement);
      const entry = auditEntry(what, action, { changed: 0, details });
      if (affected > 0) await tx.run(spelled(table.words, recordChange(table, entry)));
    });
  }

  async function change(made: HandChange, request: ChangeTarget): Promise<ChangeReport> {
    const { changed, conflicts, nextAfterId } = await many.change(made, request);
    return { changed, conflicts, nextAfterId };
  }

  return {
    status: async ({ exact = false } = {}) => await readStatus({ statements, read }, exact),

    async list({ archived = false, beforeId, filter, limit, timeLimitMs = LIST_SEARCH_MS }) {
      checkFilter(beforeId === undefined ? filter : { ...filter, ids: [...(filter.ids ?? []), beforeId] });
      const { found, next, timeIsUp } = await search.search({
        filter,
        limit: clampLimit(limit),
        behindId: beforeId,
        newestFirst: true,
        archived,
        timeLimitMs,
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

    explain: (message) => explainMessage({ statements, read, search }, message),

    async changes(id) {
      checkFilter({ ids: [id] });
      return await changesOf({ read, table }, id);
    },

    unconfirmed: ({ limit }) => readUnconfirmed({ table, read, search }, clampLimit(limit)),

    retry: ({ now = false, resend = false, ...request }) => change(changes.retry({ resend, now }), request),

    async resetBackoff({ action, topic }) {
      checkAction(action);
      const details = JSON.stringify({ topic });
      // Each batch with its audit entry: if we die between two, the committed ones are recorded.
      return await resetBackoff((batch) =>
        inTransaction(async (tx) => {
          const step = { topic, ...batch, ...pickAll(batch.limit) };
          const { affected: changed } = await tx.run(statements.housekeeping.resetBackoff(step));
          const entry = auditEntry("reset backoff", action, { changed, details });
          if (changed > 0) await tx.run(spelled(table.words, recordChange(table, entry)));
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
      await changeRule("resume rule", action, rule, spelled(table.words, deleteSuspension(table, rule)));
      let resumed = 0;
      for (;;) {
        const rows = await read(listSuspendedBy(table, { scope, value, limit: MOST_ROWS }));
        const seen = rows.map((row) => ({ id: text(row, "id"), lockVersion: wholeText(row, "lock_version") }));
        const target = { filter: {}, seen, action, limit: MOST_ROWS };
        const { changed } = await change(changes.resume(), target);
        resumed += changed;
        // None changed: done. A row changed by others is no longer suspended by this rule.
        if (changed === 0) return resumed;
      }
    },

    remove: ({ mode, ...request }) => change(changes.remove(mode, many.namesFailed(request)), request),
    preview: many.preview,
    changeMany: many.changeMany,

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

/**
 * The rule's beginning of fail_reason must fit the column, or its rows are not found when it is
 * lifted.
 */
function checkRule(rule: SuspensionRule): SuspensionRule {
  if (rule.scope !== "relay" && rule.value === "")
    throw new ConfigurationError(`a rule on ${rule.scope} needs a value`);
  if (ruleReason(rule).length > 400)
    throw new ConfigurationError("the value of a suspension rule has at most 255 characters");
  return rule;
}

/** For JavaScript callers: any value other than `keep` or `suspend` would remove the original. */
function checkCopy({ change, original }: CopyRequest): void {
  if (!["keep", "suspend", "archive"].includes(original))
    throw new ConfigurationError(`original is ${String(original)}; it must be "keep", "suspend" or "archive"`);
  if (change.body !== undefined && typeof change.body !== "string")
    throw new ConfigurationError(`change.body is the body as it is stored, a string, not ${typeof change.body}`);
}
