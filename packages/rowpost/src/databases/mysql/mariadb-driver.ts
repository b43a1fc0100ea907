/**
 * The mariadb driver as a {@link Driver}. Structural types keep the driver's own out of signatures.
 */

import { connect as connectSocket, type Socket } from "node:net";
import { closeQuietly, POOL_CLOSE_MS } from "../../runtime/deadline.ts";
import { ConfigurationError, MissingPeerError } from "../../runtime/errors.ts";
import { withoutValues } from "../../runtime/without-values.ts";
import type { QueryResult } from "../../transactions/executor.ts";
import { createConnection, cutError, untilOpen } from "./connection.ts";
import { addressLabel, type Source } from "./connection-options.ts";
import type { Driver, DriverConnection } from "./driver.ts";

interface MariadbConnection {
  query(options: object, values: readonly unknown[]): Promise<unknown>;
  destroy(): void;
  end(): Promise<void>;
  on(event: "error" | "end", listener: (error: unknown) => void): unknown;
}

interface MariadbPool {
  getConnection(): Promise<MariadbConnection & { release(): Promise<void> }>;
  totalConnections(): number;
  end(): Promise<void>;
}

interface Mariadb {
  createConnection(options: object): Promise<MariadbConnection>;
  createPool(options: object): MariadbPool;
}

/**
 * Formats that the statements expect, sent with each query because a user's pool may differ. BIGINT
 * comes as bigint.
 */
const QUERY_OPTIONS = {
  rowsAsArray: false,
  nestTables: false,
  metaAsArray: false,
  namedPlaceholders: false,
  bigIntAsNumber: false,
  dateStrings: true,
  autoJsonMap: false,
  checkDuplicate: false,
};

/** The driver's default. */
const OWN_POOL = 10;
const CONNECTION_OPTIONS = { charset: "utf8mb4", foundRows: true, multipleStatements: false };

/**
 * Driver for the mariadb package. A user's pool hides its address, so each session borrows one of
 * its connections and destroys it at the end, so that our settings do not leak. The pool must have
 * room for the sessions and one more connection.
 */
export function createMariadbDriver(source: Source): Driver {
  const userPool = "pool" in source ? checkPool(source.pool) : undefined;
  const address = "connection" in source ? source.connection : undefined;
  let ownPool: Promise<MariadbPool> | undefined;

  async function open(purpose: string, signal?: AbortSignal, name = purpose): Promise<DriverConnection> {
    if (userPool !== undefined) {
      const connection = await lend(userPool, purpose);
      return wrap(connection, () => connection.destroy());
    }
    const driver = await loadMariadb();
    let socket: Socket | undefined;
    const cut = (): void => void socket?.destroy(cutError());
    const stream = (): Socket => {
      socket = connectSocket({ host: address?.host ?? "localhost", port: address?.port ?? 3306, noDelay: true });
      return socket;
    };
    // The driver hides its socket, but accepts one from us.
    const connectAttributes = { program_name: `rowpost ${name}` };
    const ours = { ...CONNECTION_OPTIONS, connectAttributes };
    const options = { ...address, ...ours, ...(address?.socketPath === undefined ? { stream } : {}) };
    const connection = await untilOpen(signal, driver.createConnection(options), cut);
    return wrap(connection, socket === undefined ? () => connection.destroy() : cut, () => connection.end());
  }

  return {
    label: addressLabel(address, "mariadb"),
    ownsPool: userPool === undefined,
    connect: open,
    // A user's pool hides its limit: its current connections without those of the sessions.
    poolSize: async () =>
      userPool === undefined
        ? OWN_POOL
        : userPool.totalConnections() - Math.max(lent.get(userPool)?.size ?? 0, QUEUE_SESSIONS),
    async pool() {
      if (userPool !== undefined) return userPool;
      // A server may be configured to ignore the charset of the handshake.
      const options = { ...address, connectionLimit: OWN_POOL, charset: "utf8mb4", initSql: "SET NAMES utf8mb4" };
      ownPool ??= loadMariadb().then((driver) => driver.createPool(options));
      return await ownPool;
    },
    async close() {
      const closing = await ownPool;
      ownPool = undefined;
      if (closing !== undefined) await closeQuietly(closing.end(), POOL_CLOSE_MS);
    },
  };
}

const lent = new WeakMap<MariadbPool, Set<MariadbConnection>>();
/** The pool's code for no free connection within its `acquireTimeout`. */
const NONE_FREE = 45028;

/** Sessions of a relay; one more connection must remain for the application. */
const SESSIONS = 4;
/** Sessions of a queue with one consumer, some of which open soon after the start. */
const QUEUE_SESSIONS = 8;

/** Throws `ConfigurationError` if the pool would have no connection left for the application. */
async function lend(pool: MariadbPool, purpose: string): Promise<MariadbConnection> {
  const ours = lent.get(pool) ?? new Set();
  lent.set(pool, ours);
  const connection = await pool.getConnection();
  ours.add(connection);
  const destroy = connection.destroy.bind(connection);
  connection.destroy = () => {
    ours.delete(connection);
    destroy();
  };
  connection.on("end", () => ours.delete(connection));
  // A relay asks for all connections with its first session; otherwise it could publish without a
  // connection for the outcome.
  const wanted = Math.max(ours.size, purpose === "lease" ? SESSIONS : 0) + 1;
  if (pool.totalConnections() >= wanted) return connection;
  const others = await Promise.allSettled(Array.from({ length: wanted - ours.size }, () => pool.getConnection()));
  for (const other of others) if (other.status === "fulfilled") await other.value.release();
  const failure = others.find((each) => each.status === "rejected");
  const found = pool.totalConnections();
  // The pool is large enough, but the application uses it and will give connections back.
  if (failure === undefined || found >= wanted) return connection;
  connection.destroy();
  if ((failure.reason as { errno?: unknown }).errno !== NONE_FREE) throw failure.reason;
  throw new ConfigurationError(
    `this pool of the mariadb package has ${found} connections and came to no more; rowpost's sessions need ${wanted - 1} for themselves, and the application would get none: raise its connectionLimit to that and what the application needs, or give the relay an address, mariadb({ url }), with connections beside the pool`,
    { cause: failure.reason },
  );
}

/** Without `end`: from the user's pool, where end() would return it with our settings and locks. */
function wrap(connection: MariadbConnection, cut: () => void, end?: () => Promise<void>): DriverConnection {
  // Without a listener, losing an idle connection would end the process.
  connection.on("error", () => undefined);
  return createConnection({
    async query(text, params) {
      try {
        return toQueryResult(await connection.query({ sql: text, ...QUERY_OPTIONS }, params));
      } catch (error) {
        throw withoutValues(error);
      }
    },
    cut,
    async end() {
      if (end === undefined) cut();
      else await end();
    },
    onLost(listener) {
      connection.on("error", listener);
      connection.on("end", listener);
    },
  });
}

/** Rows carry a `meta` property on the array, not in the rows. */
function toQueryResult(result: unknown): QueryResult {
  if (Array.isArray(result)) return { rows: result, affected: 0 };
  return { rows: [], affected: (result as { affectedRows?: number }).affectedRows ?? 0 };
}

/**
 * Accepts mariadb's promise pool. Its callback pool and mysql2's have getConnection too, but with a
 * callback.
 */
function checkPool(pool: unknown): MariadbPool {
  const methods = pool as Partial<Record<"getConnection" | "query" | "batch" | "end", unknown>> | null;
  const fits =
    typeof pool === "object" &&
    typeof methods?.getConnection === "function" &&
    typeof methods.batch === "function" &&
    typeof methods.end === "function";
  if (!fits)
    throw new ConfigurationError(
      "mariadb({ pool }) takes a pool made by createPool of mariadb (the promise API); for an address pass { url }",
    );
  return pool as unknown as MariadbPool;
}

async function loadMariadb(): Promise<Mariadb> {
  try {
    const loaded = (await import("mariadb")) as unknown as Mariadb & { default?: Mariadb };
    return loaded.default ?? loaded;
  } catch (error) {
    throw new MissingPeerError("mariadb", "rowpost/mariadb", { cause: error, range: ">=3.2.2 <4" });
  }
}
