/**
 * Opens rowpost by URL: public entries for the measurements, and internal statement builders for
 * the raw limits.
 */
import type { Broker, Database } from "rowpost";
import type { RawQueueStatements } from "./queue/statements.ts";
import type { RawStatements } from "./raw/statements.ts";
import type { Product } from "./servers/server.ts";

export interface OpenedRowpost {
  readonly database: Database;
  readonly close: () => Promise<void>;
}

export interface Rewinding {
  setMilestones(request: {
    readonly topic: string;
    readonly fromMonth: number;
    readonly isOver: () => boolean;
  }): Promise<unknown>;
  close(): Promise<void>;
}

/**
 * With `connections` its transactions run on a pool of that size, as in a program; SQLite has one
 * handle.
 */
export async function openRowpost(url: string, connections?: number): Promise<OpenedRowpost> {
  if (url.startsWith("sqlite:")) return await openSqlite(url);
  if (url.startsWith("postgres")) return await openPostgres(url, connections);
  return await openMysql(url, connections);
}

async function openMysql(url: string, connections: number | undefined): Promise<OpenedRowpost> {
  const { mysql } = await import("rowpost/mysql");
  if (connections === undefined) {
    const database = mysql({ url });
    return { database, close: () => database.close() };
  }
  const { createPool } = await import("mysql2/promise");
  const pool = createPool({ uri: url, connectionLimit: connections });
  const database = mysql({ pool });
  return {
    database,
    async close() {
      await database.close();
      await pool.end();
    },
  };
}

async function openPostgres(url: string, connections: number | undefined): Promise<OpenedRowpost> {
  const { postgres } = await import("rowpost/postgres");
  if (connections === undefined) {
    const database = postgres({ url });
    return { database, close: () => database.close() };
  }
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url, max: connections });
  // The database is dropped by force right after: a client that is still closing gets an error that
  // must not end the run.
  pool.on("connect", (client) => client.on("error", () => undefined));
  pool.on("error", () => undefined);
  const database = postgres({ pool });
  return {
    database,
    async close() {
      await database.close();
      await pool.end();
    },
  };
}

async function openSqlite(url: string): Promise<OpenedRowpost> {
  const { sqlite } = await import("rowpost/sqlite");
  const database = sqlite({ file: url.replace(/^sqlite:/, "") });
  return { database, close: () => database.close() };
}

export async function migrateTables(url: string): Promise<void> {
  const { migrate } = await import("rowpost");
  const { database, close } = await openRowpost(url);
  try {
    await migrate(database, { layout: database.defaultLayout });
  } finally {
    await close();
  }
}

/** Our adapter for a broker URL, such as `rocketmq://127.0.0.1:8081`. */
export async function openBroker(url: string): Promise<Broker> {
  const { protocol } = new URL(url);
  switch (protocol) {
    case "rocketmq:":
      return (await import("rowpost/rocketmq")).rocketmqFromUrl(url, process.env);
    case "rocketmq-classic:":
      return (await import("rowpost/rocketmq-classic")).rocketmqClassicFromUrl(url, process.env);
    case "amqp:":
      return (await import("rowpost/rabbitmq")).rabbitmqFromUrl(url, process.env);
    case "kafka:":
      return (await import("rowpost/kafka")).kafkaFromUrl(url, process.env);
    case "nats:":
      return (await import("rowpost/nats")).natsFromUrl(url, process.env);
    case "redis:":
      return (await import("rowpost/redis")).redisFromUrl(url, process.env);
    default:
      throw new Error(`no adapter for ${protocol} is measured here`);
  }
}

/** The statement builders of a dialect for the default table. */
export async function loadStatements(product: Product): Promise<RawStatements> {
  const dialect = product === "mariadb" ? "mysql" : product;
  const { createStatements } = (await beside(`databases/${dialect}/statements`)) as {
    readonly createStatements: (layout: unknown) => RawStatements;
  };
  const { defaultLayout } = (await beside("databases/sql/layouts")) as { defaultLayout: unknown };
  return createStatements(defaultLayout);
}

/** The same for the queue. */
export async function loadQueueStatements(product: Product): Promise<RawQueueStatements> {
  const dialect = product === "mariadb" ? "mysql" : product;
  return (await beside(`databases/${dialect}/queue/statements`)) as RawQueueStatements;
}

export async function loadRewinding({ queue }: Database): Promise<Rewinding> {
  const { createRewinding } = (await beside("queue/rewinding/rewinding")) as {
    readonly createRewinding: (sql: unknown) => Rewinding;
  };
  return createRewinding(queue.sql);
}

/**
 * An internal module of the library, located beside the package's entry: .js when built, .ts from
 * sources.
 */
async function beside(path: string): Promise<unknown> {
  const entry = import.meta.resolve("rowpost");
  return await import(new URL(`./${path}${entry.slice(entry.lastIndexOf("."))}`, entry).href);
}
