/** A session of rowpost's own on MySQL or MariaDB. */
import { randomBytes } from "node:crypto";
import { onAbort } from "../../runtime/abort.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import {
  ConfigurationError,
  DatabaseUnavailableError,
  describeError,
  TransactionLostError,
} from "../../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "../../transactions/executor.ts";
import type { Session, SessionOptions } from "../database.ts";
import { connectFailure } from "../sql/connect-failure.ts";
import { text, textOrNull } from "../sql/rows.ts";
import { sessionName } from "../sql/session-name.ts";
import { createTurns } from "../sql/turns.ts";
import type { Driver, DriverConnection } from "./driver.ts";
import { endsTransaction, errorNumber, isAway, translateError } from "./errors.ts";

const DEFAULT_STATEMENT_TIMEOUT_MS = 30_000;
const DEFAULT_LOCK_WAIT_TIMEOUT_MS = 3_000;
/** Interval and limit of `abandon`'s polls. */
const ABANDON_POLL_MS = 20;
const ABANDON_POLLS = 250;
/** Extra time for the server's answer that it stopped a statement at its limit. */
const ANSWER_GRACE_MS = 1_000;
/** Value of sql_select_limit when it is unset. */
const NO_LIMIT = "18446744073709551615";
/**
 * Characters that a connection may lose: a letter outside the basic plane, and a backslash (rule:
 * exact-text).
 */
const PROBE = { text: "\u{20BB7}\\'", hex: "F0A0AEB75C27" };

interface Opened {
  readonly connection: DriverConnection;
  readonly lockName: string;
  /** Undefined in a cluster, where only one node knows a lock. */
  readonly lock: string | undefined;
  readonly server: Session["server"];
}

/** Opens a session. Throws `DatabaseUnavailableError` if the server cannot be reached. */
export async function openSession(driver: Driver, options: SessionOptions): Promise<Session> {
  const limitMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
  const timeoutMs = options.stopsOnServer === true ? limitMs + ANSWER_GRACE_MS : limitMs;
  let connection: DriverConnection;
  try {
    connection = await driver.connect(options.purpose, options.signal, sessionName(options));
  } catch (error) {
    throw connectFailure(error, driver.label) ?? translateError(error, `connect to ${driver.label}`);
  }
  const stopFollowing = onAbort(options.signal, () => connection.destroy());
  connection.onLost(stopFollowing);
  try {
    return createSession(driver, await prepare(connection, options, timeoutMs), { ...options, timeoutMs });
  } catch (error) {
    stopFollowing();
    connection.destroy();
    throw translateError(error, `open a session on ${driver.label}`);
  }
}

/**
 * Each setting is explicit, so that defaults of a server or pool cannot change what statements
 * mean.
 */
async function prepare(connection: DriverConnection, options: SessionOptions, timeoutMs: number): Promise<Opened> {
  // Whole seconds, at least 1; rounded down to stay below a quarter of the lease (rule:
  // takeover-fence).
  const lockWait = Math.max(1, Math.floor((options.lockWaitTimeoutMs ?? DEFAULT_LOCK_WAIT_TIMEOUT_MS) / 1000));
  const zone = options.clock === "server" ? "@@global.time_zone" : "'+00:00'";
  const run = (text: string, params: readonly unknown[] = []): Promise<QueryResult> =>
    connection.query(text, params, timeoutMs);
  // 0: no limit, whatever the server's default is.
  const mostMs = options.stopsOnServer === true ? timeoutMs - ANSWER_GRACE_MS : 0;
  const transactions = options.snapshot === true ? "REPEATABLE READ, READ ONLY" : "READ COMMITTED, READ WRITE";
  await run(`SET SESSION TRANSACTION ISOLATION LEVEL ${transactions}`);
  // A server may ignore the driver's request, or set another character set when a session starts.
  await run("SET NAMES utf8mb4");
  await run(
    `SET SESSION autocommit = 1, time_zone = ${zone}, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',
  innodb_lock_wait_timeout = ${lockWait}, lock_wait_timeout = ${Math.max(lockWait, 5)}, completion_type = 0,
  sql_safe_updates = 0, sql_big_selects = 1, sql_select_limit = ${NO_LIMIT}
  /*M! , max_statement_time = ${mostMs / 1_000} */ /*!80000 , max_execution_time = ${Math.ceil(mostMs)} */`,
  );
  // Released after the rollback, so it lives as long as the server works for this session. With it
  // `abandon` cannot mistake a later connection with the same id (after a server restart) for this
  // one.
  const lockName = `rowpost.session.${randomBytes(12).toString("hex")}`;
  const { rows } = await run("SELECT VERSION() AS version, GET_LOCK(?, 1) AS locked, ? AS probe, HEX(?) AS bytes", [
    lockName,
    PROBE.text,
    PROBE.text,
  ]);
  const row = rows[0] ?? {};
  if (text(row, "probe") !== PROBE.text || text(row, "bytes") !== PROBE.hex) throw unfit();
  const version = text(row, "version");
  const product = /mariadb/i.test(version) ? "mariadb" : "mysql";
  // Galera and group replication: only the node that granted a lock knows it.
  const cluster =
    options.purpose === "lease"
      ? await run(`SHOW GLOBAL VARIABLES WHERE (Variable_name = 'wsrep_on' AND Value = 'ON')
  OR (Variable_name = 'group_replication_group_name' AND Value <> '')`)
      : undefined;
  const lock = cluster?.rows.length === 0 ? lockName : undefined;
  return { connection, lockName, lock, server: { product, version } };
}

function unfit(): ConfigurationError {
  return new ConfigurationError(
    'the connections of this pool carry text in another encoding than utf8mb4, so that letters would be read and stored as other ones: set charset: "utf8mb4" in the options of the pool',
  );
}

function createSession(
  driver: Driver,
  opened: Opened,
  { timeoutMs, onLost, signal }: Pick<SessionOptions, "onLost" | "signal"> & { readonly timeoutMs: number },
): Session {
  const { connection, lockName, lock, server } = opened;
  let dead = false;
  const turns = createTurns();
  connection.onLost(die);

  function die(): void {
    if (dead) return;
    dead = true;
    connection.destroy();
    onLost?.();
  }

  async function send(statement: Statement): Promise<QueryResult> {
    if (dead)
      throw new DatabaseUnavailableError(`${statement.name}: this session of ${driver.label} is closed or lost`);
    try {
      return await connection.query(statement.text, statement.params, timeoutMs);
    } catch (error) {
      if (isAway(error) || error instanceof DatabaseUnavailableError) die();
      throw translateError(error, statement.name);
    }
  }

  async function transact<T>(work: (tx: Executor) => Promise<T>): Promise<T> {
    await send({ name: "begin", text: "START TRANSACTION", params: [] });
    let lost: unknown;
    const tx: Executor = {
      kind: server.product,
      async run(statement) {
        if (lost !== undefined) throw lostError(statement.name, lost);
        try {
          return await send(statement);
        } catch (error) {
          if (endsTransaction(error)) lost = error;
          throw error;
        }
      },
    };
    try {
      const result = await work(tx);
      if (lost !== undefined) throw lostError("COMMIT", lost);
      await send({ name: "commit", text: "COMMIT", params: [] });
      return result;
    } catch (error) {
      await rollback();
      throw error;
    }
  }

  /** If the rollback fails, the connection is dropped together with its locks. */
  async function rollback(): Promise<void> {
    if (dead) return;
    try {
      await send({ name: "rollback", text: "ROLLBACK", params: [] });
    } catch {
      die();
    }
  }

  return {
    server,
    lock,
    freeLocks: (locks) => turns.take(async () => (await send(freeLocks(locks))).rows.map((row) => text(row, "name"))),
    get dead() {
      return dead;
    },
    run: (statement) => turns.take(() => send(statement)),
    transaction: (work) => turns.take(() => transact(work)),
    async abandon() {
      die();
      await proveGone(driver, lockName, signal);
    },
    async close() {
      if (dead) return;
      await closeQuietly(turns.settled());
      if (dead) return;
      dead = true;
      await closeQuietly(connection.end());
      connection.destroy();
    },
  };
}

function freeLocks(locks: readonly string[]): Statement {
  return {
    name: "freeLocks",
    text: `SELECT j.name AS name FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii PATH '$')) AS j
  WHERE IS_FREE_LOCK(j.name) = 1`,
    params: [JSON.stringify(locks)],
  };
}

function lostError(what: string, cause: unknown): TransactionLostError {
  return new TransactionLostError(
    `${what}: the database ended this transaction by itself (${describeError(cause)}); nothing of it is left, run it again`,
    { cause },
  );
}

/**
 * Kills the connection that holds the session's lock, and polls until the lock is free. The server
 * releases it only after finishing or rolling back, so no statement of that session can take effect
 * afterwards (rule: claim-token).
 */
async function proveGone(driver: Driver, lockName: string, signal: AbortSignal | undefined): Promise<void> {
  const connection = await driver.connect("tool", signal).catch((error: unknown) => {
    throw translateError(error, `prove that a session of ${driver.label} is dead`);
  });
  try {
    for (let poll = 0; poll < ABANDON_POLLS; poll += 1) {
      const { rows } = await connection.query("SELECT IS_USED_LOCK(?) AS id", [lockName], DEFAULT_LOCK_WAIT_TIMEOUT_MS);
      const id = rows[0] === undefined ? null : textOrNull(rows[0], "id");
      if (id === null) return;
      await kill(connection, id);
      await new Promise((resolve) => setTimeout(resolve, ABANDON_POLL_MS));
    }
    throw new DatabaseUnavailableError(
      `${driver.label}: a session that was killed still runs; its statements may still take effect`,
    );
  } catch (error) {
    throw translateError(error, `prove that a session of ${driver.label} is dead`);
  } finally {
    connection.destroy();
  }
}

/** 1094: the connection is gone already, as intended. */
async function kill(connection: DriverConnection, id: string): Promise<void> {
  try {
    await connection.query(`KILL CONNECTION ${id}`, [], DEFAULT_LOCK_WAIT_TIMEOUT_MS);
  } catch (error) {
    if (errorNumber(error) !== 1094) throw error;
  }
}
