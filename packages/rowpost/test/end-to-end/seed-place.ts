/**
 * A database with one of the seed documents' tables, made by the document's own DDL, and what the
 * tests do with it: by plain SQL, and by relays.
 */
import { readFileSync } from "node:fs";
import type { Broker } from "../../src/brokers/broker.ts";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { RelayOptions } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createTestDatabase, type DatabaseServiceName } from "../services.ts";
import { createLendingPool, type LendingPool } from "./lending-pool.ts";
import { connectPlain, type PlainClient, quote, type Row } from "./plain-client.ts";

const SERVER_ZONE = "@@global.time_zone";

/** The text of a CREATE TABLE, verbatim from the document that the layout comes from. */
export function seedDdl(table: "t_local_message" | "message_table"): string {
  return readFileSync(new URL(`seed-ddl/${table}.sql`, import.meta.url), "utf8");
}

/** A row as another program writes it. */
export interface SeedRow {
  readonly key: string;
  readonly type?: string;
  readonly topic: string;
  readonly body?: string;
  /** Seconds from the database's now; undefined = NULL. */
  readonly afterS?: number;
  /** What the state column holds; default: the layout's `pending`. */
  readonly state?: number | string;
}

/** A row as another program reads it. */
export interface SeedRowNow {
  readonly state: number | string;
  readonly retries: number;
  readonly reason: string | null;
  /** Epoch seconds; null = NULL. */
  readonly nextRetryS: number | null;
  readonly lastAttemptS: number | null;
  /** Undefined: the table has no such column. */
  readonly messageId: string | null | undefined;
}

export interface SeedPlace {
  readonly layout: TableLayout;
  readonly plain: PlainClient;
  readonly url: string;
  readonly database: Database;
  /** How often the server's zone was asked for; undefined where the server stands in its own. */
  readonly zoneAsked: () => number | undefined;
  /** One INSERT, committed. */
  insert(rows: readonly SeedRow[]): Promise<void>;
  /** Throws when there is no such row. */
  row(key: string): Promise<SeedRowNow>;
  /** Number of rows by what their state column holds. */
  states(): Promise<Readonly<Record<string, number>>>;
  /** A relay on a database object of its own. Stopped by `drop`. */
  relay(broker: Broker, options?: Partial<RelayOptions>): Relay;
  drop(): Promise<void>;
}

export interface SeedPlaceOptions {
  readonly layout: TableLayout;
  /** Time zone in which the server stands. Default: the one that it has. MySQL family only. */
  readonly zone?: string | undefined;
}

/**
 * Makes the table by the document's DDL on MySQL and MariaDB; on PostgreSQL, whose DDL differs, by
 * `migrate`. The rest is always `migrate`'s.
 */
export async function createSeedPlace(service: DatabaseServiceName, options: SeedPlaceOptions): Promise<SeedPlace> {
  const { layout, zone } = options;
  const test = await createTestDatabase(service);
  const plain = await connectPlain(test.url, zone === undefined ? {} : { zone });
  if (plain.dialect === "mysql") await plain.sql(seedDdl(layout.table as "t_local_message" | "message_table"));
  const pools: LendingPool[] = [];
  let zoneAsked = 0;
  const relays: Relay[] = [];
  const open: Database[] = [];

  function connect(): Database {
    const database = plain.dialect === "postgres" ? postgres({ url: test.url }) : mysqlDatabase();
    open.push(database);
    return database;
  }

  function mysqlDatabase(): Database {
    if (zone === undefined) return mysql({ url: test.url });
    // SET GLOBAL on a server that others use would change their answers. So the zone stands where a
    // statement reads the server's; to a session that is no difference.
    const pool = createLendingPool({
      address: () => test.url,
      begin: `SET time_zone = ${quote(zone)}`,
      onStatement(text) {
        if (text.includes(SERVER_ZONE)) zoneAsked += 1;
        return text.replaceAll(SERVER_ZONE, quote(zone));
      },
    });
    pools.push(pool);
    return mysql({ pool });
  }

  const database = connect();
  await migrate(database, { layout });
  const sql = sqlOf(layout, plain.dialect);
  return {
    layout,
    plain,
    url: test.url,
    database,
    zoneAsked: () => (zone === undefined ? undefined : zoneAsked),
    async insert(rows) {
      await plain.sql(sql.insert(rows));
    },
    async row(key) {
      const [row] = await plain.sql(sql.select(key));
      if (row === undefined) throw new Error(`no row ${key}`);
      return seedRowNow(layout, row);
    },
    async states() {
      const rows = await plain.sql(
        `SELECT ${layout.columns.state} AS state, COUNT(*) AS n FROM ${layout.table} GROUP BY ${layout.columns.state}`,
      );
      return Object.fromEntries(rows.map((row) => [String(row["state"]), Number(row["n"])]));
    },
    relay(broker, relayOptions = {}) {
      const relay = createRelay({ database: connect(), broker, layout, ...relayOptions });
      relays.push(relay);
      return relay;
    },
    async drop() {
      await Promise.all(relays.map((relay) => relay.stop()));
      for (const each of open) await each.close();
      for (const pool of pools) pool.destroy();
      await plain.close();
      await test.drop();
    },
  };
}

/** The statements of a program that uses the table without rowpost. */
function sqlOf(layout: TableLayout, dialect: PlainClient["dialect"]) {
  const { columns, states, table } = layout;
  const value = (given: number | string): string => (typeof given === "number" ? String(given) : quote(given));
  const seconds = (count: number): string => (dialect === "mysql" ? `${count} SECOND` : `'${count} seconds'`);
  const epoch = (column: string): string =>
    dialect === "mysql" ? `UNIX_TIMESTAMP(${column})` : `floor(extract(epoch FROM ${column}))`;
  // The one table has a writer's name and fills the times in; the other has no such defaults.
  const [more, moreValues] =
    columns.createdBy === undefined
      ? ["gmt_create, gmt_modified", "NOW(), NOW()"]
      : ["created_by, updated_by", "'php-shop', 'php-shop'"];
  return {
    insert(rows: readonly SeedRow[]): string {
      const values = rows.map((row) => {
        const next = row.afterS === undefined ? "NULL" : `NOW() + INTERVAL ${seconds(row.afterS)}`;
        const texts = [row.type ?? "order_create", row.key, row.topic, row.body ?? "{}"].map(quote).join(", ");
        return `(${texts}, ${value(row.state ?? states.pending)}, ${next}, ${moreValues})`;
      });
      return `INSERT INTO ${table} (${columns.messageType}, ${columns.messageKey}, ${columns.topic}, ${columns.messageBody}, ${columns.state}, ${columns.nextRetryAt}, ${more})
VALUES ${values.join(",\n  ")}`;
    },
    select: (
      key: string,
    ): string => `SELECT ${columns.state} AS state, ${columns.retryCount} AS retries, ${columns.failReason} AS reason,
  ${epoch(columns.nextRetryAt)} AS next_retry, ${epoch(columns.lastRetryAt ?? "NULL")} AS last_attempt, ${columns.messageId ?? "NULL"} AS message_id
FROM ${table} WHERE ${columns.messageKey} = ${quote(key)}`,
  };
}

function seedRowNow(layout: TableLayout, row: Row): SeedRowNow {
  const number = (value: unknown): number | null => (value === null ? null : Number(value));
  const text = (value: unknown): string | null => (value === null ? null : (value as string));
  const state = row["state"];
  return {
    state: typeof layout.states.pending === "number" ? Number(state) : String(state),
    retries: Number(row["retries"]),
    reason: text(row["reason"]),
    nextRetryS: number(row["next_retry"]),
    lastAttemptS: number(row["last_attempt"]),
    messageId: layout.columns.messageId === undefined ? undefined : text(row["message_id"]),
  };
}
