/**
 * Transactions that rowpost begins itself (`outbox.transaction`): the brackets around the user's
 * work, and the guard that notices when the database ended the transaction by itself (rule:
 * ended-transaction), or the work ended before what it had started (rule: awaited-work).
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

/** A connection that is ours until the work is done. */
export interface OwnConnection {
  readonly executor: Executor;
  /** Resolves once the server has begun the transaction. */
  begin(): Promise<unknown>;
  /** Throws `TransactionLostError` when the server answers that it rolled back. */
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  /**
   * True when the server has ended the transaction by itself. After an error it may cost a round
   * trip; otherwise it must be free, and false where the driver cannot tell.
   */
  ended(afterError: boolean): boolean | Promise<boolean>;
  /** Back to the pool. `broken`: its state is unknown, nobody may get it again. */
  release(broken: boolean): unknown;
}

/** Work in a transaction. */
export type Work<T> = (tx: Transaction) => Promise<T>;

/**
 * Begins, runs `work`, commits; rolls back and rethrows when it throws.
 *
 * Throws `TransactionLostError` when the transaction ended by itself, even if `work` went on as if
 * nothing had happened. Throws `MissingAwaitError`, rolled back, when `work` did not wait for what
 * it had started. Throws `DatabaseUnavailableError` when the COMMIT got no answer: then
 * nobody knows whether it took effect, and only a look at the rows can tell.
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
      // A rollback that fails leaves a connection in an unknown state. The caller gets the error
      // above.
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

/**
 * An error that the server itself sent, such as a deferred constraint that failed: nothing was
 * committed.
 */
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
 * The `tx` of the user's work. Once the transaction has ended, by itself or because the work is
 * over, every call is refused: on MySQL the next statement would otherwise be committed alone.
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
      // The user's own statement is the user's own affair.
      const error = statement.name === USER_STATEMENT ? thrown : withoutValues(thrown);
      // Those behind it are only told that one has failed.
      if (!(error instanceof TransactionLostError)) failure ??= error;
      // A connection that cannot be asked is gone, and the transaction with it.
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
        // What the mariadb driver prepares first, it would send behind the ROLLBACK.
        await calls.ended();
      }
    },
  };
}

interface Calls {
  readonly watch: <T>(call: Promise<T>) => Promise<T>;
  /** Throws `MissingAwaitError` while one of them is unfinished. */
  readonly requireFinished: () => void;
  /** Resolves when none of them is under way any more. */
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
      // The error below tells of them; as unhandled rejections they would end the process as well.
      for (const call of unfinished) call.catch(() => undefined);
      throw new MissingAwaitError(
        "outbox.transaction rolled back: its work returned before an outbox.enqueue or tx.query of it was done. Put await before each of them, or return their promise",
      );
    },
  };
}

/**
 * A failure one turn of the event loop later: a call that fails without a round trip, for a body
 * that cannot be encoded, is then still unfinished when work that does not await it returns.
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
 * Name of the user's own statements. Their texts vary without limit, so drivers must not keep a
 * prepared statement for each.
 */
export const USER_STATEMENT = "user";

function lostAfter(cause: unknown): TransactionLostError {
  return new TransactionLostError(
    `this transaction ended before its work did (${describeError(cause)}); run it again from the start`,
    { cause },
  );
}

/** Not to be run again: what came before that statement may be there already. */
function committedBy(cause?: unknown): TransactionLostError {
  const failed = cause === undefined ? "" : ` (${describeError(cause)})`;
  return new TransactionLostError(
    `this transaction ended before its work did: a COMMIT or DDL ended it${failed}; MySQL commits everything before DDL, also when the DDL fails. Take that statement out of the work, and look for what was written before it`,
    { cause, retriable: false },
  );
}

/** MySQL commits before DDL and the like, also when they fail then. */
const NEVER_COMMITS =
  /^(?:\s|\(|\/\*[\s\S]*?\*\/|(?:--\s|#).*\n)*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH|VALUES|TABLE|DO|SHOW|USE|EXPLAIN|SAVEPOINT|RELEASE)\b/i;

function mayCommit(kind: string, { name, text }: Statement): boolean {
  return (kind === "mysql2" || kind === "mariadb") && name === USER_STATEMENT && !NEVER_COMMITS.test(text);
}
