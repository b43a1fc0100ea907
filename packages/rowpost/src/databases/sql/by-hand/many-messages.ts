/**
 * Changes by hand of all messages that match a filter, in batches, each a transaction with an audit
 * entry. If we die, the committed batches are changed, and the filter no longer matches them.
 */
import { randomUUID } from "node:crypto";
import type {
  ChangeReport,
  ChangeTarget,
  ManyMessages,
  ManyProgress,
  ManyRequest,
  MessageAdmin,
  MessageFilter,
  SeenMessage,
} from "../../../admin/message-admin.ts";
import type { AuditResult } from "../../../admin/operations.ts";
import type { MessageState } from "../../../message/states.ts";
import { compareIds, inIdOrder } from "../../../runtime/compare-ids.ts";
import { ConfigurationError, describeError } from "../../../runtime/errors.ts";
import type { Executor } from "../../../transactions/executor.ts";
import { spelled } from "../cold.ts";
import type { Read } from "../insight/requests.ts";
import { checkFilter, type MessageSearch } from "../insight/search.ts";
import { idBounds } from "../insight/statements.ts";
import type { StoreParts } from "../relay-store.ts";
import { textOrNull } from "../rows.ts";
import { auditEntry, checkAction } from "./changes-by-hand.ts";
import type { HandChange, HandChanges } from "./hand-changes.ts";
import { recordChange } from "./statements.ts";

/** Most rows of a page or a change. */
export const MOST_ROWS = 1_000;
/** Messages per transaction: a relay waits no longer than for its own batches. */
const BATCH = 500;
/** Search time per call; the next call continues where this one ended. */
const CHANGE_SEARCH_MS = 2_000;
const PREVIEWED = 10_000;
const PREVIEW_SEARCH_MS = 4_000;
const SAMPLES = 20;
const MOST_CONFLICTS = 1_000;

export interface ManyMessageParts extends Pick<StoreParts, "statements"> {
  readonly read: Read;
  readonly changes: HandChanges;
  readonly search: MessageSearch;
  readonly inTransaction: <T>(work: (tx: Executor) => Promise<T>) => Promise<T>;
}

type Meant = Omit<ChangeTarget, "action"> & {
  readonly upToId?: string | undefined;
  readonly timeLimitMs?: number;
};

/** `meant`: rows found; `gone`: those that no longer existed. */
type BatchReport = ChangeReport & { readonly meant: number; readonly gone: number };

export interface ManyMessageChanges extends Pick<MessageAdmin, "preview" | "changeMany"> {
  /** Finds the messages and changes them in one transaction. */
  change(made: HandChange, request: ChangeTarget & Pick<Meant, "upToId">, details?: string): Promise<BatchReport>;
  namesFailed(request: Pick<ChangeTarget, "filter" | "seen">): boolean;
}

export function createManyMessages(parts: ManyMessageParts): ManyMessageChanges {
  const { changes, inTransaction, read, search } = parts;
  const { table } = parts.statements;

  /**
   * Rows to change, lowest ids first: named rows in any state, to report conflicts, else rows in an
   * allowed state.
   */
  async function targets(request: Meant, allowed: readonly MessageState[]): Promise<Targets> {
    const { afterId, filter, seen, timeLimitMs = CHANGE_SEARCH_MS, upToId } = request;
    const limit = clampLimit(request.limit);
    if (seen !== undefined) return namedTargets(seen, limit, afterId);
    checkMeant(request);
    const states = statesOf(filter, allowed);
    const { found, next } = await search.search({
      filter: { ...filter, ...(states === undefined ? {} : { states }) },
      limit,
      behindId: afterId,
      upToId,
      newestFirst: false,
      archived: false,
      timeLimitMs,
    });
    return { rows: found, nextAfterId: next };
  }

  async function change(
    made: HandChange,
    request: ChangeTarget & Pick<Meant, "upToId">,
    details?: string,
  ): Promise<BatchReport> {
    const { action } = request;
    checkAction(action);
    const { nextAfterId, rows } = await targets(request, made.allowed);
    if (rows.length === 0) return { changed: 0, conflicts: [], nextAfterId, meant: 0, gone: 0 };
    const given = { rows, action, ...(details === undefined ? {} : { details }) };
    const report = await inTransaction((tx) => changes.apply(tx, made, given));
    return { ...report, nextAfterId, meant: rows.length };
  }

  function madeAt(request: ManyRequest, beganMs: number): HandChange {
    const { untilMs } = request;
    if (untilMs === undefined) return changeOf(request);
    return changeOf({ ...request, untilMs: Math.max(1, Math.round(untilMs - (performance.now() - beganMs))) });
  }

  /** Throws `ConfigurationError` if no message can match. */
  function changeOf(request: ManyMessages & Pick<ManyRequest, "untilMs" | "upToId">): HandChange {
    const { filter, kind, now = false, seen, untilMs } = request;
    const made = ((): HandChange => {
      switch (kind) {
        case "retry":
        case "resend":
          return changes.retry({ resend: kind === "resend", now });
        case "suspend":
          return changes.suspend(untilMs ?? null);
        case "resume":
          return changes.resume();
        case "archive":
        case "delete":
          return changes.remove(kind, namesFailed({ filter, seen }));
      }
    })();
    if (seen === undefined) checkMeant(request);
    if (seen === undefined && statesOf(filter, made.allowed)?.length === 0)
      throw new ConfigurationError(`${kind} changes no message in these states`);
    return made;
  }

  async function highestId(): Promise<string> {
    const [bounds] = await read(idBounds(table, { archived: false }));
    return (bounds && textOrNull(bounds, "last_id")) ?? "0";
  }

  return {
    change,
    namesFailed,

    async preview(request) {
      const { allowed } = changeOf(request);
      const upToId = await highestId();
      const untilMs = performance.now() + PREVIEW_SEARCH_MS;
      const samples: SeenMessage[] = [];
      let found = 0;
      let afterId = request.afterId;
      do {
        const timeLimitMs = Math.max(1, untilMs - performance.now());
        const page = await targets({ ...request, afterId, upToId, limit: MOST_ROWS, timeLimitMs }, allowed);
        found += page.rows.length;
        samples.push(...page.rows.slice(0, SAMPLES - samples.length));
        afterId = page.nextAfterId;
      } while (afterId !== undefined && found < PREVIEWED && performance.now() < untilMs);
      const summaries = await search.summaries(samples, false);
      return { found, complete: afterId === undefined, samples: summaries, upToId };
    },

    async changeMany(request) {
      const { action, filter, kind, limit = Number.POSITIVE_INFINITY, onProgress, seen, signal } = request;
      checkAction(action);
      changeOf(request);
      const beganMs = performance.now();
      const operation = request.operation ?? randomUUID();
      const upToId = request.upToId ?? (await highestId());
      const about = { operation, kind, filter, named: seen?.length, upToId };
      const record = (result: AuditResult, more: object = {}): Promise<unknown> => {
        const details = JSON.stringify({ ...about, ...more });
        const entry = auditEntry(`many ${kind}`, action, { changed: 0, result, details });
        return inTransaction((tx) => tx.run(spelled(table.words, recordChange(table, entry))));
      };
      await record("begun");
      let progress: ManyProgress = { changed: 0, left: 0, vanished: 0, conflicts: [] };
      let { afterId } = request;
      let isOver = false;
      try {
        while (!isOver && signal?.aborted !== true) {
          const most = Math.min(BATCH, limit - progress.changed);
          const target = { action, filter, seen, afterId, upToId, limit: most };
          const report = await change(madeAt(request, beganMs), target, JSON.stringify({ operation }));
          progress = after(progress, report);
          onProgress?.(progress);
          afterId = report.nextAfterId;
          isOver = afterId === undefined || progress.changed >= limit;
        }
        const state = isOver ? "done" : "cancelled";
        await record(state, countsOf(progress));
        return { ...progress, state };
      } catch (error) {
        // The original failure matters more than an audit entry that fails too.
        await record("failed", { ...countsOf(progress), error: describeError(error) }).catch(() => undefined);
        throw error;
      }
    },
  };
}

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

function namesFailed({ filter, seen }: Pick<ChangeTarget, "filter" | "seen">): boolean {
  return seen !== undefined || isNamed(filter) || filter.states?.includes("failed") === true;
}

/** Undefined: any. */
function statesOf(filter: MessageFilter, allowed: readonly MessageState[]): readonly MessageState[] | undefined {
  if (isNamed(filter)) return filter.states;
  return filter.states?.filter((state) => allowed.includes(state)) ?? allowed;
}

function checkMeant({ afterId, filter, upToId }: Pick<Meant, "afterId" | "filter" | "upToId">): void {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  if (given.length === 0)
    throw new ConfigurationError(
      "name the messages by id, type, key, topic, ordering key or state: everything at once is refused",
    );
  checkFilter({ ...filter, ids: [...(filter.ids ?? []), ...[afterId, upToId].filter((id) => id !== undefined)] });
}

function after({ changed, conflicts, left, vanished }: ManyProgress, report: BatchReport): ManyProgress {
  return {
    changed: changed + report.changed,
    // Conflicts, and rows that needed no change.
    left: left + report.meant - report.changed - report.gone,
    vanished: vanished + report.gone,
    conflicts: [...conflicts, ...report.conflicts.slice(0, MOST_CONFLICTS - conflicts.length)],
  };
}

function countsOf({ changed, left, vanished }: ManyProgress): object {
  return { changed, left, vanished };
}

export function clampLimit(limit: number): number {
  return Math.min(MOST_ROWS, Math.max(1, Math.trunc(limit)));
}
