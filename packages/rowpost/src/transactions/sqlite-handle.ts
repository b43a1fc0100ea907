/**
 * SQLite handles, all synchronous: node:sqlite and @photostructure/sqlite (`DatabaseSync`),
 * better-sqlite3 (`Database`).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { TransactionRequiredError } from "../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "./executor.ts";
import { type OwnConnection, transact, USER_STATEMENT, type Work } from "./own-transaction.ts";
import { hasMethods, queryResult, refusal, returnsRows, type Shape } from "./shape.ts";

interface Prepared {
  all(...params: readonly unknown[]): unknown;
  run(...params: readonly unknown[]): { readonly changes: number | bigint };
}

interface TransactionState {
  exec(text: string): unknown;
  /** node:sqlite (Node >= 22.16) and @photostructure/sqlite. */
  readonly isTransaction?: boolean;
  /** better-sqlite3. */
  readonly inTransaction?: boolean;
}

interface Handle extends TransactionState {
  prepare(text: string): Prepared;
  readonly isOpen?: boolean;
  readonly open?: boolean;
}

/**
 * The statement joins the transaction that is open on the handle. Returns undefined for anything
 * but a SQLite handle.
 */
export function sqliteExecutor(handle: Shape): Executor | undefined {
  const database = recognize(handle);
  return (
    database && {
      ...executorOf(database),
      runNow: (statement) => runNow(database, statement),
      inTransaction: () => hasOpenTransaction(database),
    }
  );
}

function recognize(handle: Shape): Handle | undefined {
  if (!hasMethods(handle, "prepare", "exec", "close")) return undefined;
  const database = handle as unknown as Handle;
  // better-sqlite3 has a property `open`, the others a method of that name and a property `isOpen`.
  if (database.isOpen === false || database.open === false) {
    throw refusal("a closed SQLite handle", "open it, BEGIN on it and pass it");
  }
  return database;
}

/** Node 22.13 to 22.15 lack the property; there a BEGIN fails inside a transaction. */
export function hasOpenTransaction(database: TransactionState): boolean {
  const known = database.isTransaction ?? database.inTransaction;
  if (known !== undefined) return known;
  try {
    database.exec("BEGIN");
  } catch {
    return true;
  }
  database.exec("ROLLBACK");
  return false;
}

type PreparedByText = Map<string, Prepared>;

/**
 * Our few statements stay; of the user's only the last ones do, in their own map. Preparing an
 * INSERT takes longer than running it; SQLite re-prepares after a schema change.
 */
const preparedByHandle = new WeakMap<Handle, { readonly ours: PreparedByText; readonly users: PreparedByText }>();
const PREPARED_PER_HANDLE = 16;

function prepare(database: Handle, text: string, owner: "ours" | "users" = "ours"): Prepared {
  let prepared = preparedByHandle.get(database);
  if (prepared === undefined) {
    prepared = { ours: new Map(), users: new Map() };
    preparedByHandle.set(database, prepared);
  }
  const byText = prepared[owner];
  const kept = byText.get(text);
  if (kept !== undefined) return kept;
  const statement = database.prepare(text);
  if (byText.size >= PREPARED_PER_HANDLE) {
    const [oldest] = byText.keys();
    if (oldest !== undefined) byText.delete(oldest);
  }
  byText.set(text, statement);
  return statement;
}

function executorOf(database: Handle): Executor {
  return { kind: "sqlite", run: async (statement) => runNow(database, statement) };
}

function runNow(database: Handle, { name, params, text }: Statement): QueryResult {
  const statement = prepare(database, text, name === USER_STATEMENT ? "users" : "ours");
  if (returnsRows(text)) return queryResult(statement.all(...params), undefined);
  return queryResult(undefined, statement.run(...params).changes);
}

/** Our own transaction on a SQLite handle, at this caller's turn; undefined for anything else. */
export function transactSqlite<T>(handle: Shape, work: Work<T>): Promise<T> | undefined {
  const database = recognize(handle);
  if (database === undefined) return undefined;
  return withHandle(handle, () => {
    if (hasOpenTransaction(database)) {
      throw refusal("a SQLite handle with a transaction of its own", "pass it to outbox.enqueue instead");
    }
    return transact(own(database), work);
  });
}

function own(database: Handle): OwnConnection {
  return {
    executor: executorOf(database),
    begin: () => beginImmediate(database),
    commit: async () => prepare(database, "COMMIT").run(),
    // SQLite rolls back by itself on a full disk or lack of memory; a ROLLBACK would then fail.
    rollback: async () => hasOpenTransaction(database) && database.exec("ROLLBACK"),
    ended: () => !hasOpenTransaction(database),
    release: () => undefined,
  };
}

/** How long a BEGIN waits for another connection's transaction. */
const BUSY_MS = 5_000;
/** `errcode` of node:sqlite and `code` of better-sqlite3. */
const SQLITE_BUSY = 5;

/**
 * IMMEDIATE takes the write lock at once: a transaction that reads first and writes later fails for
 * good if another one wrote in between. We wait asynchronously, beside the handle's own
 * busy_timeout (rule: sqlite-handle).
 */
async function beginImmediate(database: Handle): Promise<void> {
  const giveUpAt = performance.now() + BUSY_MS;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    try {
      prepare(database, "BEGIN IMMEDIATE").run();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpAt) throw error;
    }
    await sleep(pauseMs * (0.5 + Math.random()));
  }
}

function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("errcode" in error && typeof error.errcode === "number") return (error.errcode & 0xff) === SQLITE_BUSY;
  return "code" in error && typeof error.code === "string" && error.code.startsWith("SQLITE_BUSY");
}

interface Holder {
  readonly handle: object;
  active: boolean;
}

const tails = new WeakMap<object, Promise<void>>();
const holders = new AsyncLocalStorage<readonly Holder[]>();

/**
 * Runs `work` as the only holder of this handle; others wait in call order. Two transactions at
 * once on one connection would be one, and a relay on it would publish uncommitted messages. Throws
 * `TransactionRequiredError` if called inside the holder's own work, which would wait for itself.
 */
export async function withHandle<T>(handle: object, work: () => Promise<T>): Promise<T> {
  const outer = holders.getStore() ?? [];
  if (outer.some((holder) => holder.active && holder.handle === handle)) {
    throw new TransactionRequiredError(
      "outbox.transaction inside outbox.transaction on one SQLite handle would wait for itself: use the outer tx",
    );
  }
  let unlock = (): void => {};
  const mine = new Promise<void>((resolve) => {
    unlock = resolve;
  });
  const before = tails.get(handle);
  tails.set(handle, mine);
  const holder: Holder = { handle, active: true };
  try {
    await before;
    return await holders.run([...outer, holder], work);
  } finally {
    holder.active = false;
    unlock();
  }
}
