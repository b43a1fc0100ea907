/**
 * Sessions of a database object share one handle and take turns, because SQLite has one writer at a
 * time anyway. A turn that finds the file locked waits without blocking the event loop (rule:
 * sqlite-handle).
 */

import { DatabaseUnavailableError, describeError, TransactionLostError } from "../../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "../../transactions/executor.ts";
import { hasOpenTransaction, withHandle } from "../../transactions/sqlite-handle.ts";
import type { Session, SessionOptions } from "../database.ts";
import { type SqliteHandle, type SqliteStatement, sqliteVersion } from "./driver.ts";
import { isBusy, translateError } from "./errors.ts";
import { endedProcesses, processLock } from "./process-lock.ts";

const DEFAULT_LOCK_WAIT_TIMEOUT_MS = 3_000;
const FIRST_PAUSE_MS = 1;
const LONGEST_PAUSE_MS = 50;
/** Prepared statements per handle, more than the texts of one layout without a tool's filters. */
const PREPARED_LIMIT = 200;

/** Prepares each text once per handle: preparing a small statement takes longer than running it. */
const preparedByHandle = new WeakMap<SqliteHandle, Map<string, SqliteStatement>>();

function prepare(handle: SqliteHandle, text: string): SqliteStatement {
  let byText = preparedByHandle.get(handle);
  if (byText === undefined) {
    byText = new Map();
    preparedByHandle.set(handle, byText);
  }
  const known = byText.get(text);
  const statement = known ?? handle.prepare(text);
  // Evicts the least recently used text: texts that list ids come once.
  byText.delete(text);
  byText.set(text, statement);
  const [oldest] = byText.keys();
  if (byText.size > PREPARED_LIMIT && oldest !== undefined) byText.delete(oldest);
  return statement;
}

/** Whether the statement returns rows; otherwise its count is read. */
function answersWithRows(text: string): boolean {
  return /^\s*(?:select|with|pragma|explain)\b/i.test(text) || /\breturning\b/i.test(text);
}

function execute(handle: SqliteHandle, statement: Statement): QueryResult {
  const prepared = prepare(handle, statement.text);
  if (answersWithRows(statement.text)) {
    const rows = prepared.all(...statement.params) as QueryResult["rows"];
    return { rows, affected: rows.length };
  }
  return { rows: [], affected: Number(prepared.run(...statement.params).changes) };
}

/** Tries until the lock is free or the time is over; the event loop runs between the tries. */
async function whenFree<T>(what: string, waitMs: number, attempt: () => T): Promise<T> {
  const giveUpAt = performance.now() + waitMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpAt) throw translateError(error, what);
    }
    // Jitter keeps two waiters from colliding again and again.
    await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random())));
  }
}

/**
 * On a handle shared with the user (a database without a file), no statement runs during an open
 * transaction, because it would publish uncommitted rows. Ignores `statementTimeoutMs`: calls are
 * synchronous.
 */
export function createSession(handle: SqliteHandle, options: SessionOptions): Session {
  const waitMs = options.lockWaitTimeoutMs ?? DEFAULT_LOCK_WAIT_TIMEOUT_MS;
  const server = { product: "sqlite", version: sqliteVersion(handle) } as const;
  let dead = false;
  /** Stops statements that wait for their turn too. */
  let abandoned = false;

  /** One turn on the handle, outside any transaction begun on it by hand. */
  function inTurn<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (dead) throw closedError(what);
    return withHandle(handle, async () => {
      if (abandoned) throw closedError(what);
      await whenFree(what, waitMs, () => {
        // Between turns only the user can have one open (`:memory:`, a shared handle).
        if (!hasOpenTransaction(handle)) return;
        throw Object.assign(new Error("a transaction is open on the handle that this session shares"), { errcode: 5 });
      });
      return await work();
    });
  }

  async function transact<T>(work: (tx: Executor) => Promise<T>): Promise<T> {
    // IMMEDIATE: a transaction that reads first and writes later fails for good if another
    // connection wrote in between.
    await whenFree("begin", waitMs, () => handle.exec(options.snapshot === true ? "BEGIN" : "BEGIN IMMEDIATE"));
    let lost: unknown;
    const tx: Executor = {
      kind: "sqlite",
      async run(statement) {
        if (lost !== undefined) throw lostError(statement.name, lost);
        try {
          return execute(handle, statement);
        } catch (error) {
          // SQLite ends a transaction by itself on a full disk, an I/O error or lack of memory.
          if (!hasOpenTransaction(handle)) lost = error;
          throw translateError(error, statement.name);
        }
      },
    };
    try {
      const result = await work(tx);
      if (lost !== undefined) throw lostError("COMMIT", lost);
      await whenFree("commit", waitMs, () => handle.exec("COMMIT"));
      return result;
    } catch (error) {
      if (hasOpenTransaction(handle)) handle.exec("ROLLBACK");
      throw error;
    }
  }

  return {
    server,
    lock: options.purpose === "lease" ? processLock() : undefined,
    freeLocks: (locks) => Promise.resolve(endedProcesses(locks)),
    get dead() {
      return dead;
    },
    run: async (statement) =>
      await inTurn(statement.name, () => whenFree(statement.name, waitMs, () => execute(handle, statement))),
    transaction: async (work) =>
      await inTurn("transaction", () =>
        options.snapshot === true ? readOnly(handle, () => transact(work)) : transact(work),
      ),
    /**
     * Calls are synchronous: once the handle's turn is free, this session has nothing pending, and
     * nothing comes later.
     */
    async abandon() {
      dead = true;
      abandoned = true;
      options.onLost?.();
      await withHandle(handle, () => Promise.resolve());
    },
    /** The handle stays open, because it belongs to the database object. */
    async close() {
      dead = true;
      await withHandle(handle, () => Promise.resolve());
    },
  };
}

/** For one turn, because the handle is shared. */
async function readOnly<T>(handle: SqliteHandle, work: () => Promise<T>): Promise<T> {
  handle.exec("PRAGMA query_only = ON");
  try {
    return await work();
  } finally {
    handle.exec("PRAGMA query_only = OFF");
  }
}

function closedError(what: string): DatabaseUnavailableError {
  return new DatabaseUnavailableError(`${what}: this session is closed`);
}

function lostError(what: string, cause: unknown): TransactionLostError {
  return new TransactionLostError(
    `${what}: SQLite ended this transaction by itself (${describeError(cause)}); nothing of it is left, run it again`,
    { cause },
  );
}
