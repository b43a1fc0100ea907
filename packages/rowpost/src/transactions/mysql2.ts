/**
 * mysql2: connections in promise and callback form, alone or from a pool. TypeORM, Knex, Sequelize
 * and Drizzle use it too.
 */
import { ConfigurationError } from "../runtime/errors.ts";
import type { Executor, QueryResult, Statement } from "./executor.ts";
import { ASK_STATUS, okStatus, requireBackslashEscapes, statusSaysOpen } from "./mysql-status.ts";
import { type OwnConnection, USER_STATEMENT } from "./own-transaction.ts";
import { isPrepared } from "./prepare.ts";
import { hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

/** Options of a call. Each call sets its row formats, since the user's settings may differ. */
interface Call {
  readonly sql: string;
  readonly values: readonly unknown[];
  readonly rowsAsArray: false;
  readonly nestTables: false;
  readonly typeCast: true;
  /** Otherwise an object as a parameter would be spliced into the text as SQL. */
  readonly stringifyObjects: true;
}

interface PromiseConnection {
  query(call: Call): Promise<readonly unknown[]>;
  query(text: string, values: readonly unknown[]): Promise<readonly unknown[]>;
  execute(text: string, values: readonly unknown[]): Promise<readonly unknown[]>;
}

type Callback = (error: Error | null, result: unknown) => void;

interface CallbackConnection {
  query(call: Call, callback: Callback): unknown;
  query(text: string, values: readonly unknown[], callback: Callback): unknown;
  execute(text: string, values: readonly unknown[], callback: Callback): unknown;
  release?(): void;
  destroy?(): void;
}

/**
 * How a statement is sent: `prepared` and `text` for plain values and an OK packet as the answer,
 * `careful` as {@link Call}, which costs 4 us more.
 */
type Way = "prepared" | "text" | "careful";

/** Runs a statement and returns the driver's result: rows, or the OK packet. */
type RawRun = (text: string, values: readonly unknown[], way: Way) => Promise<unknown>;

/**
 * mysql2 encodes by the charset of its options, not of the session (rule: exact-text). "utf8" means
 * CESU-8.
 */
function requireUtf8(core: Shape): void {
  if (core["clientEncoding"] === "utf8" || core["clientEncoding"] === undefined) return;
  throw new ConfigurationError(
    'this mysql2 connection encodes text otherwise than in utf8mb4, so that letters would be stored as other ones: set charset: "utf8mb4" in the options of the pool. Nothing was written.',
  );
}

/** Returns undefined for anything but a mysql2 connection. */
export function mysql2Executor(handle: Shape): Executor | undefined {
  const connection = recognize(handle);
  return connection && executorOf(connection);
}

interface Recognized {
  readonly run: RawRun;
  readonly core: CallbackConnection & Shape;
}

function recognize(handle: Shape): Recognized | undefined {
  if (!hasMethods(handle, "query", "execute", "end")) return undefined;
  if (hasMethods(handle, "getConnection") && !hasMethods(handle, "importFile")) {
    throw refusal(
      "a mysql2 pool",
      "take a connection with pool.getConnection(), BEGIN on it and pass the connection, or use outbox.transaction(pool, …)",
    );
  }
  const core = isCore(handle) ? handle : shapeOf(handle["connection"]);
  if (core === undefined || !isCore(core)) return undefined;
  if (core["_released"] === true) {
    throw refusal(
      "a mysql2 connection that was given back to its pool",
      "await outbox.enqueue before connection.release()",
    );
  }
  if (core["_closing"] === true || core["_fatalError"]) {
    throw refusal("a closed or lost mysql2 connection", "take a new one, BEGIN on it and pass it");
  }
  requireUtf8(core);
  return { core, run: core === handle ? callbackRun(core) : promiseRun(handle as unknown as PromiseConnection) };
}

/**
 * The callback form; the promise form holds one as `connection`. The mariadb driver has no
 * `promise` and no `_handshakePacket`.
 */
function isCore(shape: Shape): shape is CallbackConnection & Shape {
  return hasMethods(shape, "query", "execute", "promise") && "_handshakePacket" in shape;
}

function callOf(sql: string, values: readonly unknown[]): Call {
  return { sql, values, rowsAsArray: false, nestTables: false, typeCast: true, stringifyObjects: true };
}

function promiseRun(connection: PromiseConnection): RawRun {
  return async (text, values, way) => {
    const answer =
      way === "prepared"
        ? connection.execute(text, values)
        : way === "text"
          ? connection.query(text, values)
          : connection.query(callOf(text, values));
    return (await answer)[0];
  };
}

function callbackRun(connection: CallbackConnection): RawRun {
  return (text, values, way) =>
    new Promise((resolve, reject) => {
      const done: Callback = (error, result) => {
        if (error) reject(error);
        else resolve(result);
      };
      if (way === "prepared") connection.execute(text, values, done);
      else if (way === "text") connection.query(text, values, done);
      else connection.query(callOf(text, values), done);
    });
}

/**
 * Our statements have plain values, and return rows only if they begin with SELECT or SHOW.
 * `prepares`: on a connection of our own pool.
 */
function runStatement({ core, run }: Recognized, statement: Statement, prepares = false): Promise<unknown> {
  const { name, params, text } = statement;
  const prepared = prepares && isPrepared(statement, core);
  const plain = name !== USER_STATEMENT && /^(?:INSERT|UPDATE|DELETE)\b/.test(text);
  return run(text, params, plain ? (prepared ? "prepared" : "text") : "careful");
}

function toResult(result: unknown): QueryResult {
  return queryResult(result, shapeOf(result)?.["affectedRows"]);
}

/** Users' connections whose sql_mode was checked once; the INSERT detects later changes. */
const looked = new WeakSet<object>();

function executorOf(connection: Recognized): Executor {
  const { core } = connection;
  const mariadb = isMariadbServer(core);
  return {
    kind: "mysql2",
    run: async (statement) => {
      if (statement.params.length > 0 && !looked.has(core)) await mayInsert(connection);
      return toResult(await runStatement(connection, statement));
    },
    // If a check is needed first, the statement follows it instead of going in the same turn.
    inTransaction: () => (mariadb && looked.has(core)) || mayInsert(connection),
  };
}

/**
 * Whether the connection is in a transaction. Throws `ConfigurationError` if values could be read
 * as SQL (rule: exact-text).
 */
async function mayInsert({ core, run }: Recognized): Promise<boolean> {
  const status = await readStatus(run);
  requireBackslashEscapes(status);
  looked.add(core);
  return statusSaysOpen(status);
}

/** From the handshake. MariaDB's INSERT checks itself. */
function isMariadbServer(core: Shape): boolean {
  const version = shapeOf(core["_handshakePacket"])?.["serverVersion"];
  return typeof version === "string" && /mariadb/i.test(version);
}

/**
 * Row results lack the server's status, and some such statements end the transaction: ANALYZE
 * TABLE, a procedure with a COMMIT or ROLLBACK.
 */
function mayEndIt({ name, text }: Statement): boolean {
  return name === USER_STATEMENT && !/^\s*\(*\s*(?:SELECT|SHOW|WITH|DESC|DESCRIBE|EXPLAIN|VALUES|TABLE)\b/i.test(text);
}

/** Autocommit without a transaction, for drivers that hide the status. */
const NOT_KNOWN = 0x0002;

async function readStatus(run: RawRun): Promise<number> {
  return okStatus(await run(ASK_STATUS, [], "text")) ?? NOT_KNOWN;
}

async function isOpen(run: RawRun): Promise<boolean> {
  return statusSaysOpen(await readStatus(run));
}

/**
 * A mysql2 pool or idle connection for our own transaction; undefined for anything else.
 * `prepares`: the pool is rowpost's.
 */
export async function openMysql2(handle: Shape, prepares: boolean): Promise<OwnConnection | undefined> {
  if (hasMethods(handle, "query", "execute", "getConnection", "end") && !hasMethods(handle, "importFile")) {
    return own(await fromPool(handle), { pooled: true, prepares });
  }
  const connection = recognize(handle);
  if (connection === undefined) return undefined;
  if (await isOpen(connection.run)) {
    // BEGIN would commit the open transaction.
    throw refusal(
      "a mysql2 connection with a transaction of its own",
      "pass it to outbox.enqueue, or pass the pool here",
    );
  }
  return own(connection, { pooled: false, prepares: false });
}

/** Pools have both forms too; a core connection from the core pool is enough. */
async function fromPool(handle: Shape): Promise<Recognized> {
  const core = (shapeOf(handle["pool"]) ?? handle) as unknown as { getConnection(callback: Callback): void };
  const connection = await new Promise<unknown>((resolve, reject) => {
    core.getConnection((error, taken) => {
      if (error) reject(error);
      else resolve(taken);
    });
  });
  const shape = shapeOf(connection);
  if (shape === undefined || !isCore(shape))
    throw new TypeError("the mysql2 pool gave something that is no connection");
  return { core: shape, run: callbackRun(shape) };
}

function own(
  connection: Recognized,
  { pooled, prepares }: { readonly pooled: boolean; readonly prepares: boolean },
): OwnConnection {
  const { core, run } = connection;
  let open = true;
  return {
    executor: {
      kind: "mysql2",
      // The user can use the same connection, and we would not notice.
      ...(pooled ? {} : { inTransaction: () => isMariadbServer(core) || mayInsert(connection) }),
      run: async (statement) => {
        const result = await runStatement(connection, statement, prepares);
        const status = okStatus(result) ?? okStatus(Array.isArray(result) ? result.at(-1) : undefined);
        if (status !== undefined) open = statusSaysOpen(status);
        else if (mayEndIt(statement)) open = await isOpen(run);
        return toResult(result);
      },
    },
    begin: async () => {
      const status = okStatus(await run("START TRANSACTION", [], "text")) ?? NOT_KNOWN;
      try {
        requireBackslashEscapes(status);
      } catch (error) {
        await run("ROLLBACK", [], "text");
        throw error;
      }
    },
    commit: () => run("COMMIT", [], "text"),
    rollback: () => run("ROLLBACK", [], "text"),
    ended: async (afterError) => {
      if (afterError) open = await isOpen(run);
      return !open;
    },
    release: (broken) => {
      if (!pooled) return;
      if (broken) core.destroy?.();
      else core.release?.();
    },
  };
}
