/** A session of rowpost's own. */

import { randomBytes } from "node:crypto";
import { closeQuietly } from "../../runtime/deadline.ts";
import {
  DatabaseConflictError,
  DatabaseUnavailableError,
  describeError,
  TransactionLostError,
} from "../../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "../../transactions/executor.ts";
import type { Session, SessionOptions } from "../database.ts";
import { connectFailure } from "../sql/connect-failure.ts";
import { sessionName } from "../sql/session-name.ts";
import { cut, type Driver, end, type PgClient, type PgQuery, type PgResult } from "./driver.ts";
import { isAway, isOutdatedPlan, translateError } from "./errors.ts";
import { refuseSplitSession } from "./pooler.ts";

const DEFAULT_STATEMENT_TIMEOUT_MS = 30_000;
const DEFAULT_LOCK_WAIT_TIMEOUT_MS = 3_000;
/**
 * The server times out first, so the outcome is known. Without its answer, the connection is cut
 * this much later.
 */
const ANSWER_GRACE_MS = 500;
/** Interval and limit of `abandon`'s polls. */
const ABANDON_POLL_MS = 20;
const ABANDON_POLLS = 250;
/** Prepared statements per connection, far more than the texts of one layout. */
const PREPARED_LIMIT = 200;

/**
 * Server process of a session. The start time distinguishes it from a later process with the same
 * number.
 */
interface Backend {
  readonly pid: number;
  readonly startedAt: string;
  readonly version: string;
}

/** Nothing was done; the next try prepares the statement under a new name. */
class OutdatedPlanError extends DatabaseConflictError {}

/**
 * Throws `DatabaseUnavailableError` if the server cannot be reached, and `ConfigurationError`
 * behind a pooler that would split the session.
 */
export async function openSession(driver: Driver, options: SessionOptions): Promise<Session> {
  const timeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
  let client: PgClient;
  try {
    client = await driver.connect(sessionName(options), options.signal);
  } catch (error) {
    throw connectFailure(error, driver.label) ?? translateError(error, `connect to ${driver.label}`);
  }
  try {
    await refuseSplitSession(driver, client, (of, query) => answer(of, query, timeoutMs), options.signal);
    const backend = await prepare(client, options, timeoutMs);
    const lock = options.purpose === "lease" ? await takeLock(client, timeoutMs) : undefined;
    return createSession(driver, client, { backend, timeoutMs, lock, ...options });
  } catch (error) {
    cut(client);
    throw translateError(error, `open a session on ${driver.label}`);
  }
}

/**
 * Explicit settings keep defaults of server, database or role from changing what statements mean.
 * Exception: default_transaction_read_only, with which an administrator stops writers before a
 * switchover. With row_security off the server refuses a statement on rows that a policy hides,
 * instead of never sending them.
 *
 * Statistics may come from an empty or a full table, and a plan that reads all of it for the next
 * 500 rows stops the relay. Every hot statement has an index in its order, so sequential and bitmap
 * scans are never better; without parallel workers the branches of a scan keep their order; JIT
 * would compile statements that run for a millisecond.
 */
async function prepare(client: PgClient, options: SessionOptions, timeoutMs: number): Promise<Backend> {
  const lockWaitMs = options.lockWaitTimeoutMs ?? DEFAULT_LOCK_WAIT_TIMEOUT_MS;
  const settings = [
    "timezone = 'UTC'",
    "datestyle = 'ISO'",
    "client_encoding = 'UTF8'",
    "standard_conforming_strings = on",
    "array_nulls = on",
    ...(options.snapshot === true
      ? ["default_transaction_isolation = 'repeatable read'", "default_transaction_read_only = on"]
      : ["default_transaction_isolation = 'read committed'"]),
    "row_security = off",
    `statement_timeout = ${Math.max(1, Math.ceil(timeoutMs))}`,
    `lock_timeout = ${Math.max(1, Math.ceil(lockWaitMs))}`,
    `idle_in_transaction_session_timeout = ${Math.max(1_000, Math.ceil(timeoutMs))}`,
  ];
  if (options.purpose === "relay" || options.purpose === "lease") {
    settings.push(
      "enable_seqscan = off",
      "enable_bitmapscan = off",
      "max_parallel_workers_per_gather = 0",
      "jit = off",
    );
  }
  await answer(client, { text: settings.map((setting) => `SET ${setting};`).join("\n") }, timeoutMs);
  const { rows } = await answer(
    client,
    {
      text: `SELECT pg_backend_pid() AS pid, current_setting('server_version') AS version,
  (SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()) AS started_at`,
    },
    timeoutMs,
  );
  const row = rows[0];
  return { pid: Number(row?.["pid"]), startedAt: String(row?.["started_at"]), version: String(row?.["version"]) };
}

/** An advisory lock that only this session uses. */
async function takeLock(client: PgClient, timeoutMs: number): Promise<string> {
  const lock = String(randomBytes(8).readBigInt64BE());
  await answer(client, { text: "SELECT pg_advisory_lock($1::bigint)", values: [lock] }, timeoutMs);
  return lock;
}

/**
 * Takes each lock shared, for this statement, so that parallel checks do not see each other's as
 * held.
 */
function freeLocks(locks: readonly string[]): Statement {
  const text = `SELECT lock::text AS lock FROM unnest($1::bigint[]) AS lock WHERE pg_try_advisory_xact_lock_shared(lock)`;
  return { name: "freeLocks", text, params: [`{${locks.filter((lock) => /^-?\d{1,19}$/.test(lock)).join(",")}}`] };
}

/**
 * Fails after `timeoutMs` plus the grace. The connection must then be cut, because its next answer
 * would be this one's.
 */
async function answer(client: PgClient, query: PgQuery, timeoutMs: number): Promise<PgResult> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new DatabaseUnavailableError(
            `no answer within ${timeoutMs} ms; whether the statement took effect is unknown`,
          ),
        ),
      timeoutMs + ANSWER_GRACE_MS,
    );
  });
  try {
    return await Promise.race([client.query(query), late]);
  } finally {
    clearTimeout(timer);
  }
}

function createSession(
  driver: Driver,
  client: PgClient,
  opened: SessionOptions & { readonly backend: Backend; readonly timeoutMs: number; readonly lock: string | undefined },
): Session {
  const { backend, timeoutMs, purpose, lock } = opened;
  const names = new Map<string, string>();
  let prepared = 0;
  let dead = false;
  /**
   * Statements and transactions take turns, so that no foreign statement enters a transaction; pg 9
   * queues none.
   */
  let turn: Promise<unknown> = Promise.resolve();
  client.on("error", () => die());
  client.on("end", () => die());

  function die(): void {
    if (dead) return;
    dead = true;
    cut(client);
    opened.onLost?.();
  }

  /**
   * Named by the text, because one session may serve several layouts. Not for tools, whose texts
   * vary.
   */
  function preparedName(text: string): string | undefined {
    if (purpose !== "relay" && purpose !== "lease") return undefined;
    const known = names.get(text);
    if (known !== undefined || names.size >= PREPARED_LIMIT) return known;
    prepared += 1;
    const name = `rowpost_${prepared}`;
    names.set(text, name);
    return name;
  }

  async function send(statement: Statement): Promise<PgResult> {
    if (dead)
      throw new DatabaseUnavailableError(`${statement.name}: this session of ${driver.label} is closed or lost`);
    const name = statement.params.length === 0 ? undefined : preparedName(statement.text);
    const query: PgQuery = {
      text: statement.text,
      ...(statement.params.length === 0 ? {} : { values: statement.params }),
      ...(name === undefined ? {} : { name }),
    };
    try {
      return await answer(client, query, timeoutMs);
    } catch (error) {
      const translated = translateError(error, statement.name);
      if (isAway(error) || translated instanceof DatabaseUnavailableError) die();
      if (name === undefined || !isOutdatedPlan(error)) throw translated;
      names.delete(statement.text);
      throw new OutdatedPlanError(`${statement.name}: it has to be prepared anew (${describeError(error)})`, {
        cause: error,
      });
    }
  }

  /** Retries an outdated plan here; within a transaction, the caller that began it retries. */
  async function sendAlone(statement: Statement): Promise<QueryResult> {
    const result = await send(statement).catch((error: unknown) => {
      if (error instanceof OutdatedPlanError) return send(statement);
      throw error;
    });
    return resultOf(result);
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work);
    turn = result.catch(() => undefined);
    return result;
  }

  async function transact<T>(work: (tx: Executor) => Promise<T>): Promise<T> {
    await send({ name: "begin", text: "BEGIN", params: [] });
    let lost: unknown;
    const tx: Executor = {
      kind: "postgres",
      async run(statement) {
        if (lost !== undefined) throw lostError(statement.name, lost);
        try {
          return resultOf(await send(statement));
        } catch (error) {
          // Any error ends a transaction: the server refuses all but ROLLBACK and answers COMMIT
          // with ROLLBACK.
          lost = error;
          throw error;
        }
      },
    };
    try {
      const result = await work(tx);
      if (lost !== undefined) throw lostError("COMMIT", lost);
      const { command } = await send({ name: "commit", text: "COMMIT", params: [] });
      if (command !== "COMMIT") throw lostError("COMMIT", `the server answered ${command}`);
      return result;
    } catch (error) {
      await rollback();
      throw error;
    }
  }

  /** If the rollback fails, the connection is dropped together with its locks. */
  async function rollback(): Promise<void> {
    if (dead) return;
    await send({ name: "rollback", text: "ROLLBACK", params: [] }).catch(() => die());
  }

  return {
    server: { product: "postgres", version: backend.version },
    lock,
    freeLocks: (locks) => inTurn(async () => (await send(freeLocks(locks))).rows.map(({ lock: free }) => String(free))),
    get dead() {
      return dead;
    },
    run: (statement) => inTurn(() => sendAlone(statement)),
    transaction: (work) => inTurn(() => transact(work)),
    async abandon() {
      die();
      await proveGone(driver, backend, opened.signal);
    },
    async close() {
      if (dead) return;
      await closeQuietly(turn);
      if (dead) return;
      dead = true;
      await end(client);
    },
  };
}

function resultOf(result: PgResult): QueryResult {
  return { rows: result.rows, affected: result.rowCount ?? 0 };
}

function lostError(what: string, cause: unknown): TransactionLostError {
  return new TransactionLostError(
    `${what}: the database ended this transaction by itself (${describeError(cause)}); nothing of it is left, run it again`,
    { cause },
  );
}

/**
 * Terminates the backend of a session and polls until it is gone. A backend leaves pg_stat_activity
 * only after finishing or rolling back, so no statement of that session can take effect afterwards
 * (rule: claim-token). A role may terminate its own backends.
 */
async function proveGone(driver: Driver, backend: Backend, signal: AbortSignal | undefined): Promise<void> {
  const what = `prove that a session of ${driver.label} is dead`;
  let client: PgClient;
  try {
    client = await driver.connect("watch", signal);
  } catch (error) {
    throw translateError(error, what);
  }
  try {
    for (let poll = 0; poll < ABANDON_POLLS; poll += 1) {
      const { rows } = await answer(
        client,
        {
          text: "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::integer AND backend_start = $2::timestamptz",
          values: [backend.pid, backend.startedAt],
        },
        DEFAULT_LOCK_WAIT_TIMEOUT_MS,
      );
      if (rows.length === 0) return;
      await new Promise((resolve) => setTimeout(resolve, ABANDON_POLL_MS));
    }
    throw new DatabaseUnavailableError(
      `${driver.label}: a session that was terminated still runs; its statements may still take effect`,
    );
  } catch (error) {
    throw translateError(error, what);
  } finally {
    await end(client);
  }
}
