/**
 * Transactions that rowpost begins itself (`outbox.transaction`), with a guard that notices when
 * the database ended the transaction (rule: ended-transaction), or the work returned before its
 * calls finished (rule: awaited-work).
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  DatabaseUnavailableError,
  describeError,
  MissingAwaitError,
  TransactionLostError,
  TransactionRequiredError,
} from "../runtime/errors.ts";
import { withoutValues } from "../runtime/without-values.ts";
import type { Executor, QueryResult, Statement, Transaction } from "./executor.ts";

/** A connection reserved until the work is done. */
export interface OwnConnection {
  readonly executor: Executor;
  /** Resolves once the server has begun the transaction. */
  begin(): Promise<unknown>;
  /** Throws `TransactionLostError` if the server answers that it rolled back. */
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  /**
   * Whether the server has ended the transaction. May cost a round trip after an error; otherwise
   * it must be free, and false if the driver cannot tell.
   */
  ended(afterError: boolean): boolean | Promise<boolean>;
  /**
   * Returns the connection to the pool. `broken`: its state is unknown, so it must not be reused.
   */
  release(broken: boolean): unknown;
}

export type Work<T> = (tx: Transaction) => Promise<T>;

/**
 * Begins, runs `work`, commits; rolls back and rethrows if it throws.
 *
 * Throws `TransactionLostError` if the transaction ended by itself, even if `work` went on;
 * `MissingAwaitError`, after a rollback, if `work` did not await all its calls;
 * `DatabaseUnavailableError` if the COMMIT got no answer, when only the rows show whether it took
 * effect.
 */
export async function transact<T>(connection: OwnConnection, work: Work<T>): Promise<T> {
  let broken = true;
  try {
    await connection.begin();
    const guard = guardTransaction(connection);
    try {
      const result = await guard.run(work);
      await commit(connection);
      broken = false;
      return result;
    } catch (error) {
      // A failed rollback leaves the connection in an unknown state. The caller gets the original
      // error.
      broken = await connection.rollback().then(
        () => false,
        () => true,
      );
      throw error;
    }
  } finally {
    await connection.release(broken);
  }
}

async function commit(connection: OwnConnection): Promise<void> {
  try {
    await connection.commit();
  } catch (error) {
    if (error instanceof TransactionLostError || isServersAnswer(error)) throw error;
    throw new DatabaseUnavailableError(
      `COMMIT got no answer, so the transaction may or may not have taken effect: look for its rows (${describeError(error)})`,
      { cause: error },
    );
  }
}

/** An error that the server sent, such as a failed deferred constraint: nothing was committed. */
function isServersAnswer(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("sqlState" in error && typeof error.sqlState === "string") return !("fatal" in error && error.fatal === true);
  // PostgreSQL; node:sqlite and @photostructure/sqlite; better-sqlite3.
  if ("severity" in error || "errcode" in error) return true;
  return "code" in error && typeof error.code === "string" && error.code.startsWith("SQLITE_");
}

interface Guard {
  run<T>(work: Work<T>): Promise<T>;
}

/**
 * The `tx` of the user's work. Refuses every call once the transaction or the work has ended: on
 * MySQL the next statement would commit by itself.
 */
function guardTransaction(connection: OwnConnection): Guard {
  const { executor } = connection;
  const calls = watchCalls();
  let lost: TransactionLostError | undefined;
  let failure: unknown;
  let over = false;

  async function run(statement: Statement): Promise<QueryResult> {
    if (lost !== undefined) throw lost;
    if (over)
      throw new TransactionRequiredError(
        "this transaction has ended: put await before each outbox.enqueue and tx.query inside of it. Nothing was written.",
      );
    try {
      const result = await executor.run(statement);
      failure = undefined;
      if (await connection.ended(false)) {
        lost = /^\s*ROLLBACK\b/i.test(statement.text) ? lostAfter("a ROLLBACK ended it") : committedBy();
      }
      return result;
    } catch (thrown) {
      // Errors of the user's own statements keep their values.
      const error = statement.name === USER_STATEMENT ? thrown : withoutValues(thrown);
      // Later statements only report that an earlier one failed.
      if (!(error instanceof TransactionLostError)) failure ??= error;
      // A connection that does not answer is gone, together with the transaction.
      if (await Promise.resolve(connection.ended(true)).catch(() => true))
        lost = mayCommit(executor.kind, statement) ? committedBy(error) : lostAfter(error);
      throw error;
    }
  }

  const tx: Transaction = {
    kind: executor.kind,
    get failure() {
      return failure;
    },
    run,
    watch: calls.watch,
    query: <Row>(text: string, params: readonly unknown[] = []) =>
      calls.watch(run({ name: USER_STATEMENT, text, params }).then(({ rows }) => rows as readonly unknown[] as Row[])),
  };
  return {
    run: async (work) => {
      try {
        const result = await work(tx);
        if (lost !== undefined) throw lost;
        calls.requireFinished();
        return result;
      } finally {
        over = true;
        // The mariadb driver would send a statement that it still prepares after the ROLLBACK.
        await calls.ended();
      }
    },
  };
}

interface Calls {
  readonly watch: <T>(call: Promise<T>) => Promise<T>;
  /** Throws `MissingAwaitError` while one of them is unfinished. */
  readonly requireFinished: () => void;
  /** Resolves when none of them is running. */
  readonly ended: () => Promise<unknown>;
}

/** The enqueues and queries that the work has started. */
function watchCalls(): Calls {
  const unfinished = new Set<Promise<unknown>>();
  return {
    watch: (started) => {
      const call = settled(started).finally(() => unfinished.delete(call));
      unfinished.add(call);
      return call;
    },
    ended: () => Promise.allSettled(unfinished),
    requireFinished: () => {
      if (unfinished.size === 0) return;
      // The error below reports them; as unhandled rejections they would also end the process.
      for (const call of unfinished) call.catch(() => undefined);
      throw new MissingAwaitError(
        "outbox.transaction rolled back: its work returned before an outbox.enqueue or tx.query of it was done. Put await before each of them, or return their promise",
      );
    },
  };
}

/**
 * Delays a failure by one turn of the event loop, so that a call that fails without a round trip,
 * such as for a body that cannot be encoded, is still unfinished when work without an await
 * returns.
 */
async function settled<T>(started: Promise<T>): Promise<T> {
  try {
    return await started;
  } catch (error) {
    await nextTurn();
    throw error;
  }
}

/**
 * Name of the user's own statements. Their texts vary without limit, so drivers must not keep them
 * prepared.
 */
export const USER_STATEMENT = "user";

function lostAfter(cause: unknown): TransactionLostError {
  return new TransactionLostError(
    `this transaction ended before its work did (${describeError(cause)}); run it again from the start`,
    { cause },
  );
}

/** Not retried: changes before that statement may be committed already. */
function committedBy(cause?: unknown): TransactionLostError {
  const failed = cause === undefined ? "" : ` (${describeError(cause)})`;
  return new TransactionLostError(
    `this transaction ended before its work did: a COMMIT or DDL ended it${failed}; MySQL commits everything before DDL, also when the DDL fails. Take that statement out of the work, and look for what was written before it`,
    { cause, retriable: false },
  );
}

/** MySQL commits before DDL and similar statements, even if they then fail. */
const NEVER_COMMITS =
  /^(?:\s|\(|\/\*[\s\S]*?\*\/|(?:--\s|#).*\n)*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH|VALUES|TABLE|DO|SHOW|USE|EXPLAIN|SAVEPOINT|RELEASE)\b/i;

function mayCommit(kind: string, { name, text }: Statement): boolean {
  return (kind === "mysql2" || kind === "mariadb") && name === USER_STATEMENT && !NEVER_COMMITS.test(text);
}
