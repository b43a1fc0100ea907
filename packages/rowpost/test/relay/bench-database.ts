/**
 * A migrated database of a test's own, on a real server, and as many rowpost database objects on it
 * as the test has instances.
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database, Session } from "../../src/databases/database.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createTestDatabase } from "../services.ts";

/** Servers that the relay's tests run on. */
export type RelayTestService = "mariadb" | "mysql9" | "mysql8" | "postgres" | "sqlite";

/** A message to insert as another program would: by SQL. */
export interface PlainMessage {
  readonly key: string;
  readonly type?: string;
  readonly topic?: string;
  readonly body?: string;
  readonly orderingKey?: string;
}

export interface RelayTestDatabase {
  readonly url: string;
  /** Another database object, as another process would have; closed with the rest. */
  connect(): Database;
  /** Runs SQL text without parameters. */
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Inserts waiting messages in one statement, in this order. */
  insert(messages: readonly PlainMessage[]): Promise<void>;
  /** Number of rows by the number of their state. */
  states(): Promise<Readonly<Record<number, number>>>;
  drop(): Promise<void>;
}

/** Makes the database. `layout` undefined: the default table. */
export async function createRelayDatabase(
  service: RelayTestService,
  options: { readonly layout?: TableLayout } = {},
): Promise<RelayTestDatabase> {
  const { url, drop } = await createEmpty(service);
  const open: Database[] = [];

  const make = await factory(service, url);

  function connect(): Database {
    const database = make();
    open.push(database);
    return database;
  }

  const own = connect();
  await migrate(own, { layout: options.layout ?? own.defaultLayout });
  let session: Session | undefined;

  async function sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    session ??= await own.connect({ purpose: "tool" });
    return (await session.run({ name: "test", text, params: [] })).rows;
  }

  return {
    url,
    connect,
    sql,
    async insert(messages) {
      const rows = messages.map(({ key, type = "t", topic = "orders", body = "{}", orderingKey }) => {
        const values = [type, key, topic, body].map(quote).join(", ");
        return `(${values}, ${orderingKey === undefined ? "NULL" : quote(orderingKey)})`;
      });
      await sql(
        `INSERT INTO local_message (message_type, message_key, topic, message_body, ordering_key) VALUES ${rows.join(", ")}`,
      );
    },
    async states() {
      const rows = await sql("SELECT state AS state, COUNT(*) AS n FROM local_message GROUP BY state");
      return Object.fromEntries(rows.map((row) => [Number(row["state"]), Number(row["n"])]));
    },
    async drop() {
      await session?.close();
      for (const database of open) await database.close();
      await drop();
    },
  };
}

/** Loads only the adapter that is asked for. */
async function factory(service: RelayTestService, url: string): Promise<() => Database> {
  if (service === "sqlite") {
    const { sqlite } = await import("../../src/databases/sqlite/index.ts");
    return () => sqlite({ file: url });
  }
  if (service === "postgres") {
    const { postgres } = await import("../../src/databases/postgres/index.ts");
    return () => postgres({ url });
  }
  const { mysql } = await import("../../src/databases/mysql/index.ts");
  return () => mysql({ url });
}

async function createEmpty(service: RelayTestService): Promise<{ url: string; readonly drop: () => Promise<void> }> {
  if (service !== "sqlite") return await createTestDatabase(service);
  const file = join(tmpdir(), `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}.db`);
  return {
    url: file,
    drop: () => {
      for (const end of ["", "-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
      return Promise.resolve();
    },
  };
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
