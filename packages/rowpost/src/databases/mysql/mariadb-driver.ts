/**
 * The mariadb driver as a {@link Driver}. Declared by the few methods that are called; none of its
 * types stands in a signature.
 */

import { connect as connectSocket, type Socket } from "node:net";
import { closeQuietly, POOL_CLOSE_MS } from "../../runtime/deadline.ts";
import { ConfigurationError, MissingPeerError } from "../../runtime/errors.ts";
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
  getConnection(): Promise<MariadbConnection>;
  end(): Promise<void>;
}

interface Mariadb {
  createConnection(options: object): Promise<MariadbConnection>;
  createPool(options: object): MariadbPool;
}

/**
 * What the statements expect, given with each query because a connection of the user's pool may be
 * set otherwise. BIGINT comes as bigint.
 */
const QUERY_OPTIONS = {
  rowsAsArray: false,
  nestTables: false,
  bigIntAsNumber: false,
  dateStrings: true,
  autoJsonMap: false,
  checkDuplicate: false,
};

const CONNECTION_OPTIONS = { charset: "utf8mb4", foundRows: true, multipleStatements: false };

/**
 * A driver for the mariadb package. A user's pool does not show its address: each session takes a
 * connection of it for as long as it lives, and destroys it at the end, so that nobody else gets
 * one with our settings. The pool has to have room for them (five for a relay).
 */
export function createMariadbDriver(source: Source): Driver {
  const userPool = "pool" in source ? checkPool(source.pool) : undefined;
  const address = "connection" in source ? source.connection : undefined;
  let ownPool: Promise<MariadbPool> | undefined;

  async function open(signal: AbortSignal | undefined): Promise<DriverConnection> {
    if (userPool !== undefined) {
      const connection = await userPool.getConnection();
      return wrap(connection, () => connection.destroy());
    }
    const driver = await loadMariadb();
    let socket: Socket | undefined;
    const cut = (): void => void socket?.destroy(cutError());
    const stream = (): Socket => {
      socket = connectSocket({ host: address?.host ?? "localhost", port: address?.port ?? 3306, noDelay: true });
      return socket;
    };
    // The driver keeps its socket to itself, but takes one that it is given.
    const options = { ...address, ...CONNECTION_OPTIONS, ...(address?.socketPath === undefined ? { stream } : {}) };
    const connection = await untilOpen(signal, driver.createConnection(options), cut);
    return wrap(connection, socket === undefined ? () => connection.destroy() : cut, () => connection.end());
  }

  return {
    label: addressLabel(address),
    connect: open,
    async pool() {
      if (userPool !== undefined) return userPool;
      // A server may be set to ignore the charset of the handshake.
      const options = { ...address, charset: "utf8mb4", initSql: "SET NAMES utf8mb4" };
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

/**
 * Without `end`: from the user's pool, where end() would give it back, with our settings and locks
 * on it.
 */
function wrap(connection: MariadbConnection, cut: () => void, end?: () => Promise<void>): DriverConnection {
  // A connection that is cut, or lost, while no statement runs throws where nobody listens: the
  // process would end.
  connection.on("error", () => undefined);
  return createConnection({
    query: async (text, params) => toQueryResult(await connection.query({ sql: text, ...QUERY_OPTIONS }, params)),
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
 * mariadb's promise pool. Its callback pool, and mysql2's, have getConnection too, but with a
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
