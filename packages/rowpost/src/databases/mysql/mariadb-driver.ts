/**
 * The mariadb driver as a {@link Driver}. Declared by the few methods that are called; none of its
 * types stands in a signature.
 */

import { ConfigurationError, MissingPeerError } from "../../runtime/errors.ts";
import type { QueryResult } from "../../transactions/executor.ts";
import { addressLabel, type ConnectionOptions } from "./connection-options.ts";
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

export type MariadbSource = { readonly pool: unknown } | { readonly connection: ConnectionOptions };

/**
 * A driver for the mariadb package. A user's pool does not show its address: each session takes a
 * connection of it for as long as it lives, and destroys it at the end, so that nobody else gets
 * one with our settings. The pool has to have room for them (five for a relay).
 */
export function createMariadbDriver(source: MariadbSource): Driver {
  const userPool = "pool" in source ? checkPool(source.pool) : undefined;
  const address = "connection" in source ? source.connection : undefined;
  let ownPool: Promise<MariadbPool> | undefined;

  async function open(): Promise<MariadbConnection> {
    if (userPool !== undefined) return await userPool.getConnection();
    const driver = await loadMariadb();
    return await driver.createConnection({ ...address, ...CONNECTION_OPTIONS });
  }

  return {
    label: addressLabel(address),
    connect: async () => wrap(await open(), userPool !== undefined),
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
      await closing?.end();
    },
  };
}

/**
 * `lent`: from the user's pool, where end() would give it back, with our settings and locks on it.
 */
function wrap(connection: MariadbConnection, lent: boolean): DriverConnection {
  return {
    query(text, params, timeoutMs) {
      return new Promise<QueryResult>((resolve, reject) => {
        // The driver's own time-out is a setting of MariaDB's, which a frozen server does not keep.
        const timer = setTimeout(() => reject(timedOut(timeoutMs)), timeoutMs);
        connection.query({ sql: text, ...QUERY_OPTIONS }, params).then(
          (result) => {
            clearTimeout(timer);
            resolve(toQueryResult(result));
          },
          (error: unknown) => {
            clearTimeout(timer);
            reject(error);
          },
        );
      });
    },
    destroy: () => connection.destroy(),
    async end() {
      if (lent) connection.destroy();
      else await connection.end();
    },
    onLost(listener) {
      connection.on("error", listener);
      connection.on("end", listener);
    },
  };
}

function timedOut(timeoutMs: number): Error {
  return Object.assign(new Error(`no answer from the server within ${timeoutMs} ms`), { code: "ETIMEDOUT" });
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
    throw new MissingPeerError("mariadb", "rowpost/mariadb", { cause: error, range: ">=3.5.3 <4" });
  }
}
