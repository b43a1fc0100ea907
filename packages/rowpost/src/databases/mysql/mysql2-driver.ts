/** mysql2 as a {@link Driver}. Structural types keep the driver's own out of signatures. */

import { closeQuietly, POOL_CLOSE_MS } from "../../runtime/deadline.ts";
import { ConfigurationError, MissingPeerError } from "../../runtime/errors.ts";
import { withoutValues } from "../../runtime/without-values.ts";
import type { QueryResult } from "../../transactions/executor.ts";
import { createConnection, cutError, untilOpen } from "./connection.ts";
import { addressLabel, type ConnectionOptions, type Source } from "./connection-options.ts";
import type { Driver, DriverConnection } from "./driver.ts";

type Callback<T> = (error: unknown, result: T) => void;

interface Mysql2Connection {
  query(options: { sql: string; values: readonly unknown[] }, callback: Callback<unknown>): void;
  end(callback: Callback<unknown>): void;
  destroy(): void;
  readonly stream: {
    destroy(error?: Error): unknown;
    once(event: "close", listener: () => void): unknown;
  };
  on(event: "error" | "end" | "connect", listener: (error: unknown) => void): unknown;
}

type PooledConnection = Pick<Mysql2Connection, "on" | "stream"> & { query(sql: string): unknown };

interface Mysql2Pool {
  getConnection(callback: Callback<Mysql2Connection>): void;
  end(callback: Callback<unknown>): void;
  on(event: "connection", listener: (connection: PooledConnection) => void): unknown;
  readonly config?: {
    readonly connectionConfig?: Readonly<Record<string, unknown>>;
    /** 0: no limit. */
    readonly connectionLimit?: number;
  };
}

interface Mysql2 {
  createConnection(options: object): Mysql2Connection;
  createPool(options: object): Mysql2Pool;
}

/** Settings taken from a user's pool; all others are ours. */
const ADDRESS_OPTIONS = [
  "host",
  "port",
  "localAddress",
  "socketPath",
  "user",
  "password",
  "password1",
  "password2",
  "password3",
  "passwordSha1",
  "database",
  "ssl",
  "connectTimeout",
  "authPlugins",
  "authSwitchHandler",
  "insecureAuth",
  "stream",
  "compress",
];

/** The statements expect BIGINT, instants and JSON as text, and a count of matched rows. */
const OUR_OPTIONS = {
  charset: "utf8mb4",
  supportBigNumbers: true,
  bigNumberStrings: true,
  dateStrings: true,
  jsonStrings: true,
  multipleStatements: false,
  flags: ["FOUND_ROWS"],
};

export function createMysql2Driver(source: Source): Driver {
  const userPool = "pool" in source ? corePool(source.pool) : undefined;
  const address = "connection" in source ? source.connection : poolAddress(userPool);
  let ownPool: Promise<Mysql2Pool> | undefined;
  const pooled = new Set<PooledConnection>();

  /** A pool without readable settings lends a connection, which never goes back. */
  async function open(signal: AbortSignal | undefined, name: string): Promise<Mysql2Connection> {
    if (address === undefined && userPool !== undefined) return await fromPool(userPool);
    const driver = await loadMysql2();
    const connectAttributes = { program_name: `rowpost ${name}` };
    const connection = driver.createConnection({ ...address, ...OUR_OPTIONS, connectAttributes });
    const opening = new Promise<Mysql2Connection>((resolve, reject) => {
      connection.on("error", reject);
      connection.on("connect", () => resolve(connection));
    });
    return await untilOpen(signal, opening, () => void connection.stream.destroy(cutError()));
  }

  async function pool(): Promise<Mysql2Pool> {
    if (userPool !== undefined) return userPool;
    ownPool ??= loadMysql2().then((driver) => {
      const made = driver.createPool({ ...address, charset: "utf8mb4", supportBigNumbers: true });
      // A server may be configured to ignore the charset of the handshake. This runs before the
      // first use.
      made.on("connection", (connection) => {
        connection.query("SET NAMES utf8mb4");
        pooled.add(connection);
        connection.on("end", () => pooled.delete(connection));
      });
      return made;
    });
    return await ownPool;
  }

  return {
    label: addressLabel(address, "mysql"),
    ownsPool: userPool === undefined,
    connect: async (purpose, signal, name = purpose) =>
      wrap(await open(signal, name), address === undefined && userPool !== undefined),
    pool,
    poolSize: async () => (await pool()).config?.connectionLimit || undefined,
    async close() {
      const closing = await ownPool;
      ownPool = undefined;
      if (closing === undefined) return;
      await closeQuietly(new Promise<void>((resolve) => closing.end(() => resolve())), POOL_CLOSE_MS);
      for (const { stream } of pooled) stream.destroy();
    },
  };
}

function fromPool(pool: Mysql2Pool): Promise<Mysql2Connection> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => {
      if (error === null || error === undefined) resolve(connection);
      else reject(asError(error));
    });
  });
}

/** `lent`: from the user's pool, where end() would return it with our settings and locks. */
function wrap(connection: Mysql2Connection, lent: boolean): DriverConnection {
  return createConnection({
    query(text, params) {
      return new Promise<QueryResult>((resolve, reject) => {
        connection.query({ sql: text, values: params }, (error, result) => {
          if (error !== null && error !== undefined) return reject(asError(withoutValues(error)));
          if (Array.isArray(result)) return resolve({ rows: result, affected: 0 });
          const header = result as { affectedRows?: number };
          resolve({ rows: [], affected: header.affectedRows ?? 0 });
        });
      });
    },
    cut() {
      // Removes the connection from the user's pool and shuts down our side only.
      connection.destroy();
      connection.stream.destroy(cutError());
    },
    end: () =>
      new Promise((resolve) => {
        connection.stream.once("close", resolve);
        if (lent) connection.destroy();
        else connection.end(() => undefined);
      }),
    onLost(listener) {
      connection.on("error", listener);
      connection.on("end", listener);
    },
  });
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The callback pool inside mysql2/promise's, or the pool itself. */
function corePool(pool: unknown): Mysql2Pool {
  const inner = isObject(pool) && isObject(pool["pool"]) ? pool["pool"] : pool;
  if (!isObject(inner) || typeof inner["getConnection"] !== "function" || typeof inner["query"] !== "function") {
    throw new ConfigurationError(
      "mysql({ pool }) takes a pool made by createPool of mysql2 or mysql2/promise; for an address pass { url }",
    );
  }
  return inner as unknown as Mysql2Pool;
}

function poolAddress(pool: Mysql2Pool | undefined): ConnectionOptions | undefined {
  const config = pool?.config?.connectionConfig;
  if (config === undefined) return undefined;
  const address: Record<string, unknown> = {};
  for (const option of ADDRESS_OPTIONS) {
    const value = config[option];
    // ConnectionConfig writes false for "none", which createConnection does not accept.
    if (value !== undefined && value !== false) address[option] = value;
  }
  return address;
}

async function loadMysql2(): Promise<Mysql2> {
  try {
    const loaded = (await import("mysql2")) as unknown as { default: Mysql2 };
    return loaded.default;
  } catch (error) {
    throw new MissingPeerError("mysql2", "rowpost/mysql", { cause: error, range: ">=3.11.0 <4" });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
