/**
 * Bulk operations on any SQL database. What is meant is found first and kept in batches of ids, as
 * they were found; each batch is then changed in one transaction, with its audit, its conflicts and
 * the counters. So a process that dies takes nothing with it: a batch is done, or it is left.
 */
import { randomUUID } from "node:crypto";
import type { BulkOperation, BulkState, BulkStep, BulkStore } from "../../outbox/bulk-operations.ts";
import type { OperatorAction, SeenMessage } from "../../outbox/message-admin.ts";
import { ConfigurationError, describeError, RowpostError } from "../../runtime/errors.ts";
import type { Executor, Statement } from "../../transactions/executor.ts";
import { createPaces } from "./bulk-paces.ts";
import { bulkChange, bulkFilter, bulkOperation, type PlannedOperation, plannedOperation } from "./bulk-rows.ts";
import { auditEntry } from "./changes-by-hand.ts";
import { createHandChanges } from "./hand-changes.ts";
import { createMessageSearch } from "./message-search.ts";
import type { StoreParts } from "./relay-store.ts";
import { integer, type Row, text, textOrNull } from "./rows.ts";
import { createToolSlots } from "./tool-slots.ts";

/** Messages of a batch: of one transaction, and of one entry of the audit. */
const BATCH = 500;
/** Messages that a preview counts; those behind them are found while the operation runs. */
const PREVIEWED = 10_000;
const PREVIEW_SEARCH_MS = 4_000;
const PLAN_SEARCH_MS = 2_000;
const SAMPLES = 20;
const MOST_CONFLICTS = 10_000;
const LISTED = 100;

/** Makes the store. Its session is opened at the first use. */
export function createBulkStore(parts: StoreParts, statementTimeoutMs?: number): BulkStore {
  const { layout, statements } = parts;
  const { admin, operations: bulk } = statements;
  const slots = createToolSlots(parts, statementTimeoutMs);
  const changes = createHandChanges(parts);
  const paces = createPaces();
  const read = (statement: Statement): Promise<readonly Row[]> =>
    slots.use("housekeeping", async (session) => (await session.run(statement)).rows);
  const inTransaction = <T>(work: (tx: Executor) => Promise<T>): Promise<T> =>
    slots.retry("housekeeping", (session) => session.transaction(work));
  const search = createMessageSearch({ layout, statements, read });

  async function readPlanned(id: string): Promise<PlannedOperation | undefined> {
    const [row] = await read(bulk.readOperation(id));
    return row === undefined ? undefined : plannedOperation(row);
  }

  /** The messages behind `behindId`, up to `maxId`. `next` undefined: there are no others. */
  async function find(
    { filter, kind, maxId }: Pick<PlannedOperation, "filter" | "kind" | "maxId">,
    {
      behindId,
      limit,
      timeLimitMs,
    }: { readonly behindId?: string; readonly limit: number; readonly timeLimitMs: number },
  ): Promise<{ readonly found: readonly SeenMessage[]; readonly next: string | undefined }> {
    const { found, next } = await search.search({
      ...{ filter: bulkFilter(kind, filter), limit, behindId, timeLimitMs },
      ...{ newestFirst: false, archived: false },
    });
    const meant = found.filter(({ id }) => BigInt(id) <= BigInt(maxId));
    const isOver = next === undefined || meant.length < found.length || BigInt(next) >= BigInt(maxId);
    return { found: meant, next: isOver ? undefined : next };
  }

  async function previewed(
    planned: Pick<PlannedOperation, "filter" | "kind" | "maxId">,
  ): Promise<{ readonly found: readonly SeenMessage[]; readonly next: string | undefined }> {
    const untilMs = performance.now() + PREVIEW_SEARCH_MS;
    const found: SeenMessage[] = [];
    let next: string | undefined = "0";
    do {
      const timeLimitMs = Math.max(1, untilMs - performance.now());
      const page = await find(planned, { behindId: next, limit: 1_000, timeLimitMs });
      found.push(...page.found);
      next = page.next;
    } while (next !== undefined && found.length < PREVIEWED && performance.now() < untilMs);
    return { found, next };
  }

  async function addBatches(tx: Executor, id: string, first: number, found: readonly SeenMessage[]): Promise<void> {
    for (let from = 0; from < found.length; from += BATCH) {
      const messages = JSON.stringify(found.slice(from, from + BATCH).map(({ id, lockVersion }) => [id, lockVersion]));
      await tx.run(bulk.addBatch({ id, number: first + from, messages }));
    }
  }

  /** Locked first: one that is being started meanwhile is none of them. */
  async function forgetLapsed(): Promise<void> {
    await inTransaction(async (tx) => {
      for (const row of (await tx.run(bulk.lapsedOperations())).rows) {
        const id = text(row, "id");
        await tx.run(bulk.deleteBatches(id));
        await tx.run(bulk.deleteConflicts(id));
        await tx.run(bulk.deleteOperation(id));
      }
    });
  }

  /** Written down beside the change of the operation. */
  async function record(tx: Executor, what: string, action: OperatorAction, of: object): Promise<void> {
    const details = JSON.stringify(of);
    await tx.run(admin.recordChange(auditEntry(`operation ${what}`, action, { changed: 0, details })));
  }

  /** Finds the next messages of an operation whose batches are done; two steps of one are none. */
  async function planOn(operation: PlannedOperation, worker: Worker): Promise<void> {
    const { id, plannedId, total } = operation;
    const behind = plannedId === undefined ? {} : { behindId: plannedId };
    const { found, next } = await find(operation, { ...behind, limit: BATCH, timeLimitMs: PLAN_SEARCH_MS });
    await inTransaction(async (tx) => {
      if (!(await isHeld(tx, id, worker))) return;
      // Another worker may have gone on from here, while this one looked.
      const [row] = (await tx.run(bulk.readOperation(id))).rows;
      if (row === undefined || plannedOperation(row).plannedId !== plannedId) return;
      await addBatches(tx, id, total, found);
      await tx.run(bulk.planOperation({ id, plannedId: next ?? null, count: found.length }));
    });
  }

  async function isHeld(tx: Executor, id: string, { leaseMs, owner }: Worker): Promise<boolean> {
    return (await tx.run(bulk.holdOperation({ id, owner, leaseMs }))).affected > 0;
  }

  /**
   * One batch: the operation is locked first, so that nobody works on it, pauses or cancels it
   * meanwhile; then its messages, in the order of ids. `empty`: there is no batch.
   */
  async function changeBatch(operation: PlannedOperation, worker: Worker): Promise<number | "lost" | "empty"> {
    const { id } = operation;
    return await inTransaction(async (tx) => {
      if (!(await isHeld(tx, id, worker))) return "lost";
      const [batch] = (await tx.run(bulk.readBatch(id))).rows;
      if (batch === undefined) return "empty";
      const rows = seenOf(text(batch, "messages"));
      const details = JSON.stringify({ operation: id });
      const change = bulkChange(changes, operation);
      const { changed, conflicts } = await changes.apply(tx, change, { rows, action: operation.action, details });
      const vanished = rows.length - changed - conflicts.length;
      if (conflicts.length > 0 && operation.conflicts < MOST_CONFLICTS)
        await tx.run(bulk.addConflicts({ id, conflicts }));
      await tx.run(bulk.deleteBatch({ id, number: integer(batch, "number") }));
      await tx.run(bulk.countOperation({ id, changed, conflicts: conflicts.length, vanished }));
      return rows.length;
    });
  }

  async function step(operation: PlannedOperation, worker: Worker): Promise<BulkStep> {
    const { id, plannedId, rate } = operation;
    const pace = paces.begin(id, rate);
    try {
      const done = await changeBatch(operation, worker);
      if (typeof done === "number") pace.rest(done);
      if (done === "empty" && plannedId !== undefined) await planOn(operation, worker);
      if (done === "empty" && plannedId === undefined) await end(id, "done", null);
    } catch (error) {
      // What may be over in a while is tried again; anything else would come back for ever.
      if (error instanceof RowpostError && error.retriable) throw error;
      await end(id, "failed", describeError(error));
    }
    return { id };
  }

  async function end(id: string, to: BulkState, error: string | null): Promise<void> {
    await inTransaction(async (tx) => {
      await tx.run(bulk.moveOperation({ id, from: ["running"], to, error }));
      await tx.run(bulk.deleteBatches(id));
    });
  }

  return {
    async preview({ author, filter, kind, seen }) {
      if (seen === undefined && Object.values(filter).every((value) => value === undefined))
        throw new ConfigurationError("name the messages by type, key, topic or state: everything at once is refused");
      if (bulkFilter(kind, filter).states?.length === 0)
        throw new ConfigurationError(`${kind} changes no message in these states`);
      await forgetLapsed();
      const [bounds] = await read(admin.idBounds({ archived: false }));
      const maxId = (bounds && textOrNull(bounds, "last_id")) ?? "0";
      const { found, next } =
        seen === undefined
          ? await previewed({ filter, kind, maxId })
          : { found: seen.slice(0, PREVIEWED), next: undefined };
      const id = randomUUID();
      await inTransaction(async (tx) => {
        const planned = { maxId, plannedId: next ?? null, total: found.length };
        await tx.run(bulk.addOperation({ id, kind, author, filter: JSON.stringify(filter), ...planned }));
        await addBatches(tx, id, 0, found);
      });
      return { operation: await known(id), samples: await search.summaries(found.slice(0, SAMPLES), false) };
    },

    async start({ action, id, rate, untilMs }) {
      checkAction(action);
      return await inTransaction(async (tx) => {
        const { affected } = await tx.run(bulk.startOperation({ id, action, rate, untilMs: untilMs ?? null }));
        const [row] = (await tx.run(bulk.readOperation(id))).rows;
        if (row === undefined) return undefined;
        const operation = bulkOperation(row);
        const { author, filter, kind, state, total } = operation;
        if (affected > 0) await record(tx, "start", action, { operation: id, kind, filter, total });
        return state === "preview" || author !== action.author ? undefined : operation;
      });
    },

    async move({ action, id, to }) {
      checkAction(action);
      return await inTransaction(async (tx) => {
        const { affected } = await tx.run(bulk.moveOperation({ id, from: FROM[to], to, error: null }));
        if (affected === 0) return false;
        if (to === "cancelled") await tx.run(bulk.deleteBatches(id));
        await record(tx, VERBS[to], action, { operation: id });
        return true;
      });
    },

    async read(id) {
      const [row] = await read(bulk.readOperation(id));
      return row === undefined ? undefined : bulkOperation(row);
    },

    list: async () => (await read(bulk.listOperations(LISTED))).map(bulkOperation),

    async conflicts(request) {
      const rows = await read(bulk.readConflicts(request));
      return rows.map((row) => ({ id: text(row, "id"), state: text(row, "state") as MessageStateOrUnknown }));
    },

    async work(worker) {
      const running = (await read(bulk.runningOperations(worker.owner))).map((row) => text(row, "id"));
      const id = paces.next(running);
      const waitMs = id === undefined ? 0 : paces.waitMs(id);
      if (waitMs > 0) return { waitMs };
      const operation = id === undefined ? undefined : await readPlanned(id);
      return operation === undefined ? undefined : await step(operation, worker);
    },

    close: () => slots.close(),
  };

  async function known(id: string): Promise<BulkOperation> {
    const [row] = await read(bulk.readOperation(id));
    if (row === undefined) throw new Error(`operation ${id} is gone`);
    return bulkOperation(row);
  }
}

type Worker = Parameters<BulkStore["work"]>[0];
type MessageStateOrUnknown = Awaited<ReturnType<BulkStore["conflicts"]>>[number]["state"];

const FROM: Readonly<Record<"paused" | "running" | "cancelled", readonly BulkState[]>> = {
  paused: ["running"],
  running: ["paused"],
  cancelled: ["running", "paused"],
};
const VERBS = { paused: "pause", running: "resume", cancelled: "cancel" } as const;

function seenOf(messages: string): SeenMessage[] {
  return (JSON.parse(messages) as [id: string, lockVersion: string | number][]).map(([id, lockVersion]) => ({
    id,
    lockVersion: String(lockVersion),
  }));
}

function checkAction({ author, reason }: OperatorAction): void {
  if (author.trim() === "" || reason.trim() === "")
    throw new ConfigurationError("say who does it and why: author and reason are empty");
}
