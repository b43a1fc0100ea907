/** The mariadb driver: connections in promise and callback form, alone or from a pool. */
import type { Executor, Statement } from "./executor.ts";
import { ASK_STATUS, statusSaysOpen } from "./mysql-status.ts";
import type { OwnConnection } from "./own-transaction.ts";
import { isPrepared } from "./prepare.ts";
import { hasMethods, queryResult, refusal, type Shape, shapeOf } from "./shape.ts";

/** Options of a call. Each call sets its row formats, since the user's settings may differ. */
interface Call {
  readonly sql: string;
  readonly rowsAsArray: false;
  readonly nestTables: false;
  readonly metaAsArray: false;
  readonly namedPlaceholders: false;
  /** A large BIGINT as text instead of a rounded number. */
  readonly bigNumberStrings: true;
  readonly supportBigNumbers: true;
}

interface Connection {
  query(call: Call, values: readonly unknown[]): Promise<unknown>;
  execute(call: Call, values: readonly unknown[]): Promise<unknown>;
  isValid(): boolean;
  release?(): Promise<unknown>;
  destroy(): void;
  readonly info: {
    /** Status flags of the last OK packet. After an error the driver guesses "in a transaction". */
    readonly status: number;
    readonly serverVersion: { readonly mariaDb: boolean };
  };
}

interface Pool {
  getConnection(): Promise<Connection>;
}

/** Returns undefined for anything but a mariadb connection. */
export function mariadbExecutor(handle: Shape): Executor | undefined {
  const connection = recognize(handle);
  return connection && { ...executorOf(connection, false), inTransaction: () => mayInsert(connection) };
}

function isPool(handle: Shape): boolean {
  return hasMethods(handle, "getConnection", "query", "importFile", "end");
}

function recognize(handle: Shape): Connection | undefined {
  if (isPool(handle)) {
    throw refusal(
      "a mariadb pool",
      "take a connection with pool.getConnection(), BEGIN on it and pass the connection, or use outbox.transaction(pool, …)",
    );
  }
  if (!hasMethods(handle, "query", "execute", "ping", "importFile", "isValid")) return undefined;
  const info = shapeOf(handle["info"]);
  if (info === undefined || !("status" in info)) {
    throw refusal("a closed mariadb connection", "take a new one, BEGIN on it and pass it");
  }
  const connection = handle as unknown as Connection;
  if (!connection.isValid())
    throw refusal("a closed or lost mariadb connection", "take a new one, BEGIN on it and pass it");
  return isCallbackForm(handle) ? promised(connection) : connection;
}

/** Both forms have the same methods; only the callback form's `query` takes a third parameter. */
function isCallbackForm(handle: Shape): boolean {
  return typeof handle["query"] === "function" && handle["query"].length > 2;
}

type Callback = (error: Error | null, result: unknown) => void;

/** The callback form with the promise form's methods. */
function promised(connection: Connection): Connection {
  const raw = connection as unknown as Record<"query" | "execute", (...args: unknown[]) => void>;
  const wrap = (start: (done: Callback) => void): Promise<unknown> =>
    new Promise((resolve, reject) => {
      start((error, result) => {
        if (error) reject(error);
        else resolve(result);
      });
    });
  return {
    query: (call, values) => wrap((done) => raw.query(call, values, done)),
    execute: (call, values) => wrap((done) => raw.execute(call, values, done)),
    isValid: () => connection.isValid(),
    destroy: () => connection.destroy(),
    get info() {
      return connection.info;
    },
  };
}

function callOf(sql: string): Call {
  return {
    sql,
    rowsAsArray: false,
    nestTables: false,
    metaAsArray: false,
    namedPlaceholders: false,
    bigNumberStrings: true,
    supportBigNumbers: true,
  };
}

/** `prepares`: on a connection of our own pool, whose handles share their `info`. */
function executorOf(connection: Connection, prepares: boolean): Executor {
  return {
    kind: "mariadb",
    run: async (statement: Statement) => {
      const { params, text } = statement;
      const call = callOf(text);
      const prepared = prepares && isPrepared(statement, connection.info);
      const result = await (prepared ? connection.execute(call, params) : connection.query(call, params));
      return queryResult(result, shapeOf(result)?.["affectedRows"]);
    },
  };
}

/** A no is free. A yes may be the driver's guess after an error, so the server is asked. */
async function isOpen(connection: Connection): Promise<boolean> {
  if (!statusSaysOpen(connection.info.status)) return false;
  await connection.query(callOf(ASK_STATUS), []);
  return statusSaysOpen(connection.info.status);
}

/** On MariaDB the INSERT checks itself, but a status of no avoids sending it. */
function mayInsert(connection: Connection): boolean | Promise<boolean> {
  const { serverVersion, status } = connection.info;
  return serverVersion.mariaDb ? statusSaysOpen(status) : isOpen(connection);
}

/**
 * A mariadb pool or idle connection for our own transaction; undefined for anything else.
 * `prepares`: the pool is rowpost's.
 */
export async function openMariadb(handle: Shape, prepares: boolean): Promise<OwnConnection | undefined> {
  if (isPool(handle)) {
    const taken = await (handle as unknown as Pool).getConnection();
    return own(taken, { pooled: true, prepares });
  }
  const connection = recognize(handle);
  if (connection === undefined) return undefined;
  if (await isOpen(connection)) {
    // BEGIN would commit the open transaction.
    throw refusal(
      "a mariadb connection with a transaction of its own",
      "pass it to outbox.enqueue, or pass the pool here",
    );
  }
  return own(connection, { pooled: false, prepares: false });
}

function own(
  connection: Connection,
  { pooled, prepares }: { readonly pooled: boolean; readonly prepares: boolean },
): OwnConnection {
  const executor = executorOf(connection, prepares);
  return {
    // The user can use the same connection, and we would not notice.
    executor: pooled ? executor : { ...executor, inTransaction: () => mayInsert(connection) },
    begin: () => connection.query(callOf("START TRANSACTION"), []),
    commit: () => connection.query(callOf("COMMIT"), []),
    rollback: () => connection.query(callOf("ROLLBACK"), []),
    ended: async (afterError) => (afterError ? !(await isOpen(connection)) : !statusSaysOpen(connection.info.status)),
    release: async (broken) => {
      if (!pooled) return;
      if (broken) connection.destroy();
      else await connection.release?.();
    },
  };
}
