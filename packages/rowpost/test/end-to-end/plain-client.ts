/**
 * A SQL client that knows nothing of rowpost: text in, rows out, as a program in any other language
 * has it.
 */
import { createConnection } from "mysql2/promise";
import { default as pg } from "pg";

/** A row under its aliases. */
export type Row = Readonly<Record<string, unknown>>;

export interface PlainClient {
  readonly dialect: "mysql" | "postgres";
  sql(text: string): Promise<readonly Row[]>;
  /** Never rejects: the database may be gone already. */
  close(): Promise<void>;
}

/**
 * Connects. `zone`: the client's session is in this time zone, as every session of a server that
 * stands in it.
 */
export async function connectPlain(url: string, options: { readonly zone?: string } = {}): Promise<PlainClient> {
  const client = url.startsWith("postgres") ? await connectPostgres(url) : await connectMysql(url);
  if (options.zone !== undefined) await client.sql(`SET time_zone = ${quote(options.zone)}`);
  return client;
}

/** A text as SQL. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

async function connectMysql(url: string): Promise<PlainClient> {
  const uri = url.replace(/^mariadb:/, "mysql:");
  const connection = await createConnection({
    uri,
    bigNumberStrings: true,
    supportBigNumbers: true,
    dateStrings: true,
  });
  connection.on("error", () => undefined);
  return {
    dialect: "mysql",
    async sql(text) {
      const [rows] = await connection.query(text);
      return Array.isArray(rows) ? (rows as Row[]) : [];
    },
    close: () => connection.end().catch(() => undefined),
  };
}

async function connectPostgres(url: string): Promise<PlainClient> {
  const client = new pg.Client(url);
  client.on("error", () => undefined);
  await client.connect();
  // pg wants its callers to wait for each other.
  let turn: Promise<unknown> = Promise.resolve();
  return {
    dialect: "postgres",
    sql(text) {
      const result = turn.then(async () => (await client.query<Row>(text)).rows);
      turn = result.catch(() => undefined);
      return result;
    },
    close: () => client.end().catch(() => undefined),
  };
}
