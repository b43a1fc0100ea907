/** The raw drivers, each on a pool of several connections. */
import { createRequire } from "node:module";
import { type Bracketed, bracketing, type Connect, type Handles, type Target } from "./handles.ts";

const require = createRequire(import.meta.url);

/** What the connections of mysql2 and mariadb have in common. */
interface Connection {
  beginTransaction(): Promise<unknown>;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
  query(sql: string | { sql: string; namedPlaceholders: false }, values: string[]): Promise<unknown>;
  release(): unknown;
  destroy(): unknown;
}

function fromPool(
  pool: { getConnection(): Promise<Connection>; end(): Promise<unknown> },
  insertOrder: string,
): Handles {
  return {
    root: pool,
    ...bracketing(async () => {
      const connection = await pool.getConnection();
      return {
        handle: connection,
        begin: () => connection.beginTransaction(),
        commit: () => connection.commit(),
        rollback: () => connection.rollback(),
        insertOrder: (id) => connection.query({ sql: insertOrder, namedPlaceholders: false }, [id]),
        release: () => connection.release(),
      };
    }),
    async closed(work) {
      const connection = await pool.getConnection();
      await connection.query("BEGIN", []);
      connection.destroy();
      await work(connection);
    },
    close: () => pool.end(),
  };
}

/** mysql2, promise form. */
export const mysql2Promise: Connect = async ({ host, port, user, database, insertOrder }) => {
  const { createPool } = await import("mysql2/promise");
  return fromPool(createPool({ host, port, user, database }), insertOrder);
};

/** mysql2, callback form, with settings of the user's that would change what comes back. */
export const mysql2Callback: Connect = async ({ host, port, user, database, insertOrder }) => {
  const { createPool } = await import("mysql2");
  const pool = createPool({ host, port, user, database, rowsAsArray: true, namedPlaceholders: true });
  return {
    root: pool,
    ...bracketing(async () => {
      const promised = await pool.promise().getConnection();
      return {
        handle: (promised as unknown as { readonly connection: unknown }).connection,
        begin: () => promised.query("BEGIN"),
        commit: () => promised.query("COMMIT"),
        rollback: () => promised.query("ROLLBACK"),
        insertOrder: (id) => promised.query(insertOrder, [id]),
        release: () => promised.release(),
      };
    }),
    close: () => pool.promise().end(),
  };
};

/** mariadb, promise form. */
export const mariadbPromise: Connect = async ({ host, port, user, database, insertOrder }) => {
  const { createPool } = await import("mariadb");
  // And settings of the user's that would change what is sent, and what comes back.
  const settings = { namedPlaceholders: true, metaAsArray: true, bigIntAsNumber: true };
  const options = { host, port, user, database, allowPublicKeyRetrieval: true, connectionLimit: 4, ...settings };
  return fromPool(createPool(options), insertOrder);
};

/** mariadb, callback form, one connection. */
export const mariadbCallback: Connect = async ({ host, port, user, database, insertOrder }) => {
  const { createConnection } = require("mariadb/callback") as typeof import("mariadb/callback");
  const connection = createConnection({ host, port, user, database, allowPublicKeyRetrieval: true, rowsAsArray: true });
  const query = (sql: string, values: readonly unknown[] = []): Promise<unknown> =>
    new Promise((resolve, reject) => {
      connection.query(sql, values, (error, result: unknown) => {
        if (error) reject(error);
        else resolve(result);
      });
    });
  const bracketed: Bracketed = {
    handle: connection,
    begin: () => query("BEGIN"),
    commit: () => query("COMMIT"),
    rollback: () => query("ROLLBACK"),
    insertOrder: (id) => query(insertOrder, [id]),
    release: () => {},
  };
  return { root: undefined, ...bracketing(async () => bracketed), close: async () => connection.destroy() };
};

/** pg. */
export const pgClient: Connect = async ({ url, insertOrder }) => {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  return {
    root: pool,
    ...bracketing(async () => {
      const client = await pool.connect();
      return {
        handle: client,
        begin: () => client.query("BEGIN"),
        commit: () => client.query("COMMIT"),
        rollback: () => client.query("ROLLBACK"),
        insertOrder: (id) => client.query(insertOrder, [id]),
        release: () => client.release(),
      };
    }),
    async closed(work) {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query("BEGIN");
      await client.end();
      await work(client);
    },
    close: () => pool.end(),
  };
};

/** postgres.js. */
export const postgresJs: Connect = (target) => openPostgresJs(target);

/** postgres.js with columns renamed on their way in. */
export const postgresJsCamel: Connect = (target) => openPostgresJs(target, "camel");
export const postgresJsPascal: Connect = (target) => openPostgresJs(target, "pascal");

async function openPostgresJs({ url, onStatement }: Target, renames?: "camel" | "pascal"): Promise<Handles> {
  const { default: postgres } = await import("postgres");
  const transform = renames === undefined ? {} : { transform: postgres[renames] };
  const sql = postgres(url, { max: 4, onnotice: () => {}, debug: onStatement, ...transform });
  return {
    root: sql,
    transaction: async (work) => {
      await sql.begin((tx) => work(tx, (id) => tx`INSERT INTO orders (id) VALUES (${id})`));
    },
    async withoutTransaction(work) {
      const reserved = await sql.reserve();
      try {
        await work(reserved);
      } finally {
        reserved.release();
      }
    },
    close: () => sql.end(),
  };
}
