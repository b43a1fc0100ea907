/** mysql2: connections in promise and callback form, alone or from a pool. Also what TypeORM, Knex, Sequelize and Drizzle have underneath. */
import type { Executor, QueryResult, Statement } from "./executor.ts";
import { ASK_STATUS, okStatus, statusSaysOpen } from "./mysql-status.ts";
import { type OwnConnection, USER_STATEMENT } from "./own-transaction.ts";
import { hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

/** What a call is made of. The user's own settings for rows would change what we read, so each call says what it needs. */
interface Call {
  readonly sql: string;
  readonly values: readonly unknown[];
  readonly rowsAsArray: false;
  readonly nestTables: false;
  readonly typeCast: true;
  /** Without it an object as a parameter would be spliced into the text as SQL. */
  readonly stringifyObjects: true;
}

interface PromiseConnection {
  query(call: Call): Promise<readonly unknown[]>;
  execute(call: Call): Promise<readonly unknown[]>;
}

type Callback = (error: Error | null, result: unknown) => void;

interface CallbackConnection {
  query(call: Call, callback: Callback): unknown;
  execute(call: Call, callback: Callback): unknown;
  release?(): void;
  destroy?(): void;
}

/** Runs a statement and gives the driver's result: rows, or the OK packet. */
type RawRun = (text: string, values: readonly unknown[], prepared: boolean) => Promise<unknown>;

/**
 * Up to this many parameters a statement is prepared once on each connection (30 % less client CPU for one row); above, it is sent as text,
 * because each number of rows is a statement of its own and the server holds 16,382 of them at most.
 */
const PREPARED_PARAMS = 24;

/** A mysql2 connection as an executor; undefined for anything else. */
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
    throw refusal("a mysql2 connection that was given back to its pool", "enqueue before connection.release()");
  }
  return { core, run: core === handle ? callbackRun(core) : promiseRun(handle as unknown as PromiseConnection) };
}

/** The callback form; the promise form holds one as `connection`. The mariadb driver has no `promise` and no `_handshakePacket`. */
function isCore(shape: Shape): shape is CallbackConnection & Shape {
  return hasMethods(shape, "query", "execute", "promise") && "_handshakePacket" in shape;
}

function callOf(sql: string, values: readonly unknown[]): Call {
  return { sql, values, rowsAsArray: false, nestTables: false, typeCast: true, stringifyObjects: true };
}

function promiseRun(connection: PromiseConnection): RawRun {
  return async (text, values, prepared) => {
    const call = callOf(text, values);
    const [result] = await (prepared ? connection.execute(call) : connection.query(call));
    return result;
  };
}

function callbackRun(connection: CallbackConnection): RawRun {
  return (text, values, prepared) =>
    new Promise((resolve, reject) => {
      const done: Callback = (error, result) => {
        if (error) reject(error);
        else resolve(result);
      };
      if (prepared) connection.execute(callOf(text, values), done);
      else connection.query(callOf(text, values), done);
    });
}

function runStatement(run: RawRun, statement: Statement): Promise<unknown> {
  const { name, params, text } = statement;
  const prepared = name !== USER_STATEMENT && params.length > 0 && params.length <= PREPARED_PARAMS;
  return run(text, params, prepared);
}

function toResult(result: unknown): QueryResult {
  return queryResult(result, shapeOf(result)?.["affectedRows"]);
}

function executorOf({ core, run }: Recognized): Executor {
  const mariadb = isMariadbServer(core);
  return {
    kind: "mysql2",
    run: async (statement) => toResult(await runStatement(run, statement)),
    inTransaction: async () => mariadb || askStatus(run),
  };
}

/** From the handshake: MariaDB's INSERT checks for itself. */
function isMariadbServer(core: Shape): boolean {
  const version = shapeOf(core["_handshakePacket"])?.["serverVersion"];
  return typeof version === "string" && /mariadb/i.test(version);
}

async function askStatus(run: RawRun): Promise<boolean> {
  const status = okStatus(await run(ASK_STATUS, [], false));
  return status !== undefined && statusSaysOpen(status);
}

/** A mysql2 pool or idle connection for a transaction of our own; undefined for anything else. */
export async function openMysql2(handle: Shape): Promise<OwnConnection | undefined> {
  if (hasMethods(handle, "query", "execute", "getConnection", "end") && !hasMethods(handle, "importFile")) {
    return own(await fromPool(handle), true);
  }
  const connection = recognize(handle);
  if (connection === undefined) return undefined;
  if (await askStatus(connection.run)) {
    // BEGIN would commit what is open.
    throw refusal(
      "a mysql2 connection with a transaction of its own",
      "pass it to outbox.enqueue, or pass the pool here",
    );
  }
  return own(connection, false);
}

/** Pools have both forms too; the core pool inside is asked for a core connection, which is enough. */
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

function own({ core, run }: Recognized, pooled: boolean): OwnConnection {
  let open = true;
  return {
    executor: {
      kind: "mysql2",
      // A connection of the user's can be used beside us: what happened there is not seen here.
      ...(pooled ? {} : { inTransaction: async () => isMariadbServer(core) || askStatus(run) }),
      run: async (statement) => {
        const result = await runStatement(run, statement);
        const status = okStatus(result);
        if (status !== undefined) open = statusSaysOpen(status);
        return toResult(result);
      },
    },
    begin: () => run("START TRANSACTION", [], false),
    commit: () => run("COMMIT", [], false),
    rollback: () => run("ROLLBACK", [], false),
    ended: async (afterError) => {
      if (afterError) open = await askStatus(run);
      return !open;
    },
    release: (broken) => {
      if (!pooled) return;
      if (broken) core.destroy?.();
      else core.release?.();
    },
  };
}
