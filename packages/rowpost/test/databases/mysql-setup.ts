/**
 * What the tests of the MySQL dialect share: a database of their own, migrated, with a relay store
 * and a plain connection beside it.
 */

import { createConnection } from "mysql2/promise";
import { onTestFinished } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { EncodedMessage } from "../../src/outbox/message-writer.ts";
import { scannedToken } from "../../src/relay/row-token.ts";
import type { Fence, HeldShard, RelayStore, RowToken, ScannedMessage } from "../../src/relay/store.ts";
import { nextVersion } from "../../src/runtime/next-version.ts";
import { createTestDatabase, type DatabaseServiceName } from "../services.ts";

export type MysqlService = Exclude<DatabaseServiceName, "postgres">;

/** The three servers of the family. */
export const MYSQL_SERVICES: readonly MysqlService[] = ["mariadb", "mysql9", "mysql8"];

export type Row = Record<string, unknown>;

/** A connection of a user beside us. */
export interface PlainConnection {
  query(sql: string, params?: readonly unknown[]): Promise<Row[]>;
  readonly handle: unknown;
  close(): Promise<void>;
}

export interface MysqlFixture {
  readonly url: string;
  readonly database: Database;
  readonly layout: TableLayout;
  readonly plain: PlainConnection;
  connect(): Promise<PlainConnection>;
  openStore(): Promise<RelayStore>;
  /** Enqueues and commits. */
  enqueue(...messages: readonly Partial<EncodedMessage>[]): Promise<void>;
  drop(): Promise<void>;
}

async function connectPlain(url: string): Promise<PlainConnection> {
  const connection = await createConnection({
    uri: url.replace(/^mariadb:/, "mysql:"),
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
  });
  return {
    handle: connection,
    async query(sql, params = []) {
      const [rows] = await connection.query(sql, [...params]);
      return Array.isArray(rows) ? (rows as Row[]) : [];
    },
    close: () => connection.end(),
  };
}

export function message(change: Partial<EncodedMessage> = {}): EncodedMessage {
  return {
    type: "order.created",
    key: "order-1",
    topic: "orders",
    body: "{}",
    headers: null,
    contentType: null,
    orderingKey: null,
    delayMs: null,
    deliverAtMs: null,
    createdBy: "test",
    ...change,
  };
}

/** A migrated database. `prepare` runs before the migration, such as a seed's own DDL. */
export async function mysqlFixture(
  service: MysqlService,
  layout: TableLayout,
  prepare: readonly string[] = [],
): Promise<MysqlFixture> {
  const test = await createTestDatabase(service);
  const plain = await connectPlain(test.url);
  for (const sql of prepare) await plain.query(sql);
  const database = mysql({ url: test.url });
  await migrate(database, { layout });
  const stores: RelayStore[] = [];
  const writer = database.messageWriter({ layout });
  return {
    url: test.url,
    database,
    layout,
    plain,
    async connect() {
      const connection = await connectPlain(test.url);
      // A test that fails must not leave its locks to the next one.
      onTestFinished(() => connection.close());
      return connection;
    },
    async openStore() {
      const store = database.relayStore({ layout });
      stores.push(store);
      await store.open({ sendingMark: "on", statementTimeoutMs: 10_000, lockWaitTimeoutMs: 3_000 });
      return store;
    },
    async enqueue(...messages) {
      await database.transaction(async (tx) => {
        await writer.insert(tx, messages.map(message), { duplicates: "throw" });
      });
    },
    async drop() {
      for (const store of stores) await store.close();
      await plain.close();
      await database.close();
      await test.drop();
    },
  };
}

/** Takes all shards for an owner, as they are observed now. */
export async function takeAll(store: RelayStore, owner: string): Promise<Fence> {
  const view = await store.leases.heartbeat({
    owner,
    label: owner,
    leaseMs: 10_000,
    instanceTimeoutMs: 10_000,
    held: [],
  });
  const { acquired } = await store.leases.acquire({ owner, leaseMs: 10_000, observed: view.leases });
  return fenceOf(owner, acquired);
}

export function fenceOf(owner: string, held: readonly HeldShard[]): Fence {
  const epochs: (string | undefined)[] = [];
  for (const { shard, epoch } of held) epochs[shard] = epoch;
  return { owner, epochs };
}

export async function scanAll(store: RelayStore): Promise<ScannedMessage[]> {
  return await store.scan({
    shards: undefined,
    afterId: "0",
    bodyLimit: Number.MAX_SAFE_INTEGER,
    immediateLimit: 1_000,
    dueLimit: 1_000,
  });
}

/** Tokens for the claim. */
export function scannedTokens(rows: readonly ScannedMessage[]): RowToken[] {
  return rows.map(scannedToken);
}

/** The same rows as they are after the claim. */
export function claimedTokens(rows: readonly RowToken[], layout: TableLayout): RowToken[] {
  return rows.map((row) => ({
    ...row,
    deliveryCount: layout.columns.deliveryCount === undefined ? 0 : row.deliveryCount + 1,
    lockVersion: layout.columns.lockVersion === undefined ? "0" : nextVersion(row.lockVersion),
  }));
}

/**
 * Resolves once `count` statements with this text wait for a row lock, so that a test need not
 * guess how long that takes.
 */
export async function lockWait(connection: PlainConnection, part: string, count = 1): Promise<void> {
  for (let look = 0; look < 50; look += 1) {
    // Cut to 1,024 characters by the server.
    const rows = await connection.query(
      "SELECT trx.trx_query AS text FROM information_schema.innodb_trx AS trx WHERE trx.trx_state = 'LOCK WAIT'",
    );
    if (rows.filter(({ text }) => String(text).includes(part)).length >= count) return;
    // The server refreshes this view only when nobody has read it for 0.1 s.
    await new Promise((resolve) => setTimeout(resolve, 120));
  }
  throw new Error(`no ${count} statements with ${part} wait for a lock`);
}
