/**
 * One handling, in the caller's transaction or in rowpost's own. Its record and its effect share
 * the transaction (rule: one-effect).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Database } from "../databases/database.ts";
import { DatabaseConflictError, TransactionRequiredError } from "../runtime/errors.ts";
import type { Executor } from "../transactions/executor.ts";
import type { EarlierHandling, HandlingRow, InboxStore } from "./store.ts";

/** The handler's result, or the earlier handling that prevented the call. */
export type HandlingOutcome<Result> = { readonly result: Result } | { readonly before: EarlierHandling };

/** A handler as {@link createHandler} calls it; `tx` depends on where it runs. */
type Work<Result> = (tx: unknown) => Promise<Result>;

interface HandlerParts {
  readonly database: Database;
  readonly store: InboxStore;
}

interface Begun<Result> {
  readonly outcome: Promise<HandlingOutcome<Result>>;
  /** Watches work that must be finished before rowpost's own transaction commits. */
  readonly watch: <T>(call: Promise<T>) => Promise<T>;
}

/**
 * Handles a row's message in the transaction `on`, or in one begun on it. `row` may throw, as part
 * of the outcome that a transaction watches.
 */
export type Handle = <Result>(on: unknown, row: () => HandlingRow, work: Work<Result>) => Begun<Result>;

export function createHandler(parts: HandlerParts): Handle {
  const { database, store } = parts;
  return (on, row, work) => {
    if (on === database) return { outcome: handleAlone(parts, undefined, row, work), watch: (call) => call };
    let executor: Executor;
    try {
      executor = database.executor(on);
    } catch (error) {
      if (!(error instanceof TransactionRequiredError)) throw error;
      if (on === undefined || on === null) throw noPlace(error);
      // A pool, or an object on which nothing can begin.
      return { outcome: handleAlone(parts, { on, refusal: error }, row, work), watch: (call) => call };
    }
    return {
      outcome: handleWithin(store, on as object, executor, row, work),
      watch: (call) => executor.watch?.(call) ?? call,
    };
  };
}

/**
 * Rolls back to a savepoint when the handler fails, so that nothing stays even if the error is
 * caught.
 */
async function handleWithin<Result>(
  store: InboxStore,
  on: object,
  executor: Executor,
  makeRow: () => HandlingRow,
  work: Work<Result>,
): Promise<HandlingOutcome<Result>> {
  const row = makeRow();
  return await oneAtATime(on, (depth) =>
    store.within(executor, on, depth, async (inner) => {
      const before = await store.record(executor, row);
      return before === undefined ? { result: await work(inner) } : { before };
    }),
  );
}

/** Tries of a transaction ended by a deadlock before the handler was called. */
const TRIES = 4;

async function handleAlone<Result>(
  { database, store }: HandlerParts,
  pool: { readonly on: unknown; readonly refusal: TransactionRequiredError } | undefined,
  makeRow: () => HandlingRow,
  work: Work<Result>,
): Promise<HandlingOutcome<Result>> {
  const row = makeRow();
  for (let attempt = 1; ; attempt += 1) {
    let isRecorded = false;
    try {
      const outcome = await database.transaction(async (tx): Promise<HandlingOutcome<Result>> => {
        const before = await store.record(tx, row);
        isRecorded = true;
        return before === undefined ? { result: await work(tx) } : { before };
      }, pool?.on);
      // The handler may have enqueued messages.
      database.doorbell.ring();
      return outcome;
    } catch (error) {
      if (isRecorded) throw error;
      if (error instanceof TransactionRequiredError && pool !== undefined) throw noPlace(pool.refusal);
      const meaning = store.meaning(error, `${row.type}:${row.key} for the consumer ${row.consumer}`);
      // A retry would wait on another connection as long.
      const mayPass = meaning instanceof DatabaseConflictError && !store.isWaitOver(meaning.cause);
      if (!mayPass || attempt >= TRIES) throw meaning;
    }
  }
}

/** The refusal comes from enqueue, which takes no pool. */
function noPlace(refusal: TransactionRequiredError): TransactionRequiredError {
  return new TransactionRequiredError(
    `inbox.handle takes the database that the inbox was made with, a pool of it, or an open transaction as its first argument (${refusal.message})`,
    { cause: refusal },
  );
}

/** Open handlings in a transaction, by its handle. */
const open = new WeakMap<object, number>();
/** Handles of the handlings that enclose this call. */
const around = new AsyncLocalStorage<readonly object[]>();

/**
 * Handlings may be nested, but not parallel in one transaction: rolling one back would undo later
 * work of the other.
 */
async function oneAtATime<T>(on: object, work: (depth: number) => Promise<T>): Promise<T> {
  const outer = around.getStore() ?? [];
  const depth = open.get(on) ?? 0;
  if (outer.filter((each) => each === on).length !== depth) {
    throw new TransactionRequiredError(
      "two calls of inbox.handle at once in one transaction: put await before each, or pass the database, and each has a transaction of its own. Nothing was written.",
    );
  }
  open.set(on, depth + 1);
  try {
    return await around.run([...outer, on], () => work(depth));
  } finally {
    open.set(on, depth);
  }
}
