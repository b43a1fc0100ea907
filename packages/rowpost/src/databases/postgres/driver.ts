/**
 * Port for the pg package, with structural types. The package is loaded at the first connection, or
 * never if the user passes a pool.
 */
import { onAbort } from "../../runtime/abort.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { closeQuietly, POOL_CLOSE_MS } from "../../runtime/deadline.ts";
import { ConfigurationError, MissingPeerError } from "../../runtime/errors.ts";

/** An answer of pg. */
export interface PgResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly rowCount: number | null;
  /**
   * First word of the command tag: COMMIT, or ROLLBACK for the COMMIT of a failed transaction
   * (rule: ended-transaction).
   */
  readonly command: string;
}

/** The part of pg's query configuration that is used. */
export interface PgQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** A named statement is prepared once per connection. */
  readonly name?: string;
}

/** A client of pg. */
export interface PgClient {
  connect(): Promise<unknown>;
  query(query: PgQuery): Promise<PgResult>;
  end(): Promise<void>;
  /** Sent by the server or by a pooler, which makes up its own. */
  readonly processID?: number | null;
  on(event: "error" | "end" | "notification", listener: (detail?: unknown) => void): unknown;
  /**
   * Present in pg 8. Cutting the socket is the only way to leave a connection that does not answer.
   */
  readonly connection?: { readonly stream?: { destroy(): unknown } };
}

/** A client taken from a pool. */
export interface PgPoolClient extends PgClient {
  release(destroy?: boolean): void;
}

/** A pool of pg. */
export interface PgPool {
  /** Takes a client. */
  connect(): Promise<PgPoolClient>;
  /** Never called on your pool. */
  end(): Promise<void>;
  /** Errors of idle clients. */
  on(event: "error", listener: (error: unknown) => void): unknown;
  /** Used on our own pool. */
  on(event: "connect" | "remove", listener: (client: PgPoolClient) => void): unknown;
  /** Options for the relay's own connections. */
  readonly options?: object;
}

/**
 * pg's connection options, passed through: host, port, user, password, database, ssl,
 * connectionTimeoutMillis, …
 */
export type PgConfig = Readonly<Record<string, unknown>>;

/** Options of `postgres()`. Exactly one of `pool`, `url` (or `connectionString`), `options`. */
export interface PostgresOptions {
  /**
   * Your own pg pool, used by `outbox.transaction`. The relay opens its own connections with the
   * pool's options.
   */
  readonly pool?: PgPool | undefined;
  /**
   * `postgres://user:password@host:port/database`. Its pool uses keepalive and gives up a statement
   * without an answer after a minute; set `query_timeout` in `options` (milliseconds, 0 for none)
   * to change that.
   */
  readonly url?: string | undefined;
  /** pg's name for `url`. */
  readonly connectionString?: string | undefined;
  /** Connection options of pg, instead of a URL. */
  readonly options?: PgConfig | undefined;
  /**
   * Keeps the statements of `outbox.enqueue` prepared on each connection of pg or postgres.js: a
   * third less time for a transaction with one message. Default false, because a pooler in
   * transaction mode may not support it (PgBouncer before 1.21, or with max_prepared_statements =
   * 0).
   */
  readonly prepare?: boolean | undefined;
}

export interface Driver {
  /** For logs, without a password. */
  readonly label: string;
  /**
   * Connects a client of rowpost's own, never one of the user's pool. The caller ends it; the
   * signal cuts it, even while connecting.
   */
  connect(purpose: string, signal?: AbortSignal): Promise<PgClient>;
  /** The user's pool, or one created at the first call. */
  pool(): Promise<PgPool>;
  /** See `Database`. */
  poolSize(): Promise<number | undefined>;
  /** Ends our own pool, within five seconds. */
  close(): Promise<void>;
}

type ClientClass = new (config: PgConfig) => PgClient;

const DEFAULT_CONNECT_TIMEOUT_MS = 10_000;
/** The system's default is two hours. */
const KEEPALIVE_DELAY_MS = 10_000;
/**
 * For our own pool. When a server vanishes, a COMMIT waits 15 minutes for retransmissions, which
 * keepalive does not detect.
 */
const DEFAULT_QUERY_TIMEOUT_MS = 60_000;

/** Checks the options without loading or connecting. */
export function createDriver(options: PostgresOptions): Driver {
  const config = configOf(options);
  let made: Promise<PgPool> | undefined;
  const pooled = new Set<PgPoolClient>();

  async function connect(purpose: string, signal?: AbortSignal): Promise<PgClient> {
    const Client = classOf(options.pool, "Client") ?? (await loadPg()).Client;
    const client = new Client({
      connectionTimeoutMillis: DEFAULT_CONNECT_TIMEOUT_MS,
      ...config,
      application_name: `rowpost ${purpose}`,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_DELAY_MS,
      // The session sets its own; the pool's would cut statements at unexpected times.
      statement_timeout: undefined,
      query_timeout: undefined,
      types: plainTypes,
    });
    // Without a listener, an error on an idle connection ends the process.
    client.on("error", () => undefined);
    try {
      signal?.throwIfAborted();
      client.on(
        "end",
        onAbort(signal, () => cut(client)),
      );
      await client.connect();
    } catch (error) {
      cut(client);
      throw error;
    }
    return client;
  }

  async function pool(): Promise<PgPool> {
    if (options.pool !== undefined) return options.pool;
    made ??= loadPg().then(({ Pool }) => {
      const own = new Pool({
        connectionTimeoutMillis: DEFAULT_CONNECT_TIMEOUT_MS,
        application_name: "rowpost",
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEPALIVE_DELAY_MS,
        query_timeout: DEFAULT_QUERY_TIMEOUT_MS,
        ...config,
      });
      own.on("error", () => undefined);
      own.on("connect", (client) => pooled.add(client));
      own.on("remove", (client) => pooled.delete(client));
      return own;
    });
    return await made;
  }

  return {
    label: labelOf(config),
    connect,
    pool,
    async poolSize() {
      const most: unknown = Reflect.get((await pool()).options ?? {}, "max");
      return typeof most === "number" ? most : undefined;
    },
    async close() {
      const pool = await made;
      made = undefined;
      if (pool === undefined) return;
      await closeQuietly(pool.end(), POOL_CLOSE_MS);
      for (const client of pooled) cut(client);
    },
  };
}

/** Ends the connection, waiting at most half a second. */
export async function end(client: PgClient): Promise<void> {
  await closeQuietly(client.end());
  cut(client);
}

/** Drops the connection at once. The server continues its current work. */
export function cut(client: PgClient): void {
  const stream = client.connection?.stream;
  if (stream === undefined) void client.end().catch(() => undefined);
  else stream.destroy();
}

/**
 * Numbers for integers and floats, else the server's text, because programs often change pg's
 * parsers globally.
 */
const plainTypes = {
  getTypeParser(oid: number): (value: string) => unknown {
    return NUMBER_TYPES.has(oid) ? Number : String;
  },
};

/** int2, int4, float4, float8, oid. int8 does not fit a JS number. */
const NUMBER_TYPES: ReadonlySet<number> = new Set([21, 23, 700, 701, 26]);

async function loadPg(): Promise<{ Client: ClientClass; Pool: new (config: PgConfig) => PgPool }> {
  try {
    const loaded: { default: { Client: unknown; Pool: unknown } } = await import("pg");
    const { Client, Pool } = loaded.default;
    return { Client: Client as ClientClass, Pool: Pool as new (config: PgConfig) => PgPool };
  } catch (error) {
    throw new MissingPeerError("pg", "rowpost/postgres", { cause: error, range: "^8.11.3" });
  }
}

function classOf(pool: object | undefined, name: string): ClientClass | undefined {
  const value: unknown = pool === undefined ? undefined : Reflect.get(pool, name);
  return typeof value === "function" ? (value as ClientClass) : undefined;
}

const KINDS: OptionKinds<PostgresOptions> = {
  pool: "object",
  url: "string",
  connectionString: "string",
  options: "object",
  prepare: "boolean",
};

function configOf(options: PostgresOptions): PgConfig {
  checkOptions("postgres() takes exactly one of pool, url, options", options, KINDS);
  const { pool, url, connectionString, options: own } = options;
  const given = [pool, url ?? connectionString, own].filter((each) => each !== undefined);
  if (given.length !== 1 || (url !== undefined && connectionString !== undefined)) {
    throw new ConfigurationError(
      "postgres() takes exactly one of pool, url, options: postgres({ pool }) or postgres({ url })",
    );
  }
  if (own !== undefined) return own;
  const text = url ?? connectionString;
  if (text !== undefined) {
    if (!/^postgres(ql)?:\/\//.test(text)) {
      throw new ConfigurationError(
        "the database URL must begin with postgres:// : postgres://user:password@host:port/database",
      );
    }
    return { connectionString: text };
  }
  if (pool === undefined || typeof pool.connect !== "function" || typeof pool.options !== "object") {
    throw new ConfigurationError("postgres({ pool }) takes a Pool of the pg package: new pg.Pool({ … })");
  }
  // pg hides the password from enumeration, so a spread would lose it.
  return { ...pool.options, password: Reflect.get(pool.options, "password") };
}

function labelOf(config: PgConfig): string {
  const text = config["connectionString"];
  if (typeof text === "string") {
    try {
      const url = new URL(text);
      return `postgres://${url.hostname === "" ? "localhost" : url.hostname}:${url.port === "" ? "5432" : url.port}${url.pathname}`;
    } catch {
      return "postgres://(unreadable)";
    }
  }
  const part = (name: string, otherwise: string): string => {
    const value = config[name];
    return typeof value === "string" || typeof value === "number" ? String(value) : otherwise;
  };
  return `postgres://${part("host", "localhost")}:${part("port", "5432")}/${part("database", "")}`;
}
