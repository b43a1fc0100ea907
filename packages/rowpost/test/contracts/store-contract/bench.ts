/**
 * What the cases of one run share, because making it anew for each of them would take longer than
 * all cases: the migrated database, two instances with their sessions, and the shards of a pool of
 * keys. Between two cases the tables are emptied and the leases set free.
 */

import type { MessageAdmin } from "../../../src/admin/message-admin.ts";
import type { Database, Session } from "../../../src/databases/database.ts";
import { companionTables, tableKey } from "../../../src/databases/sql/layouts.ts";
import { migrate } from "../../../src/databases/sql/migrate.ts";
import type { MessageWriter } from "../../../src/outbox/message-writer.ts";
import type { RelayStore, RelayStoreOptions } from "../../../src/relay/store.ts";
import type { QueryResult } from "../../../src/transactions/executor.ts";
import { type CountWaiting, createLockWaitCounter } from "../lock-waits.ts";
import { type TestDialect, testDialect } from "../test-dialect.ts";
import type { OpenedFacts, StoreHarness } from "./harness.ts";
import { createMessageTable, type MessageTable } from "./table.ts";

/**
 * Locks are waited for longer than any case holds one, and statements shorter than a case may take.
 */
export const STORE_OPTIONS: RelayStoreOptions = {
  sendingMark: "on",
  statementTimeoutMs: 10_000,
  lockWaitTimeoutMs: 5_000,
};
/** Keys whose shards are known. */
const POOL = 320;

/** One running copy of a program on the database. */
export interface StoreInstance {
  /** With sessions of its own. */
  readonly database: Database;
  /** Of the relay. */
  readonly store: RelayStore;
  /** Of the operator. */
  readonly admin: MessageAdmin;
  /** Of the outbox. */
  readonly writer: MessageWriter;
}

/** An open database with its two instances. */
export interface StoreBench {
  /** What the suite was called with. */
  readonly harness: StoreHarness;
  /** What the table was found to have. */
  readonly facts: OpenedFacts;
  /** Its SQL for tests. */
  readonly dialect: TestDialect;
  /** One instance. */
  readonly first: StoreInstance;
  /** Another one. */
  readonly second: StoreInstance;
  /** The message table, by hand. */
  readonly table: MessageTable;
  /** The archive, by hand. */
  readonly archive: MessageTable;
  /** Keys, each with its shard. The same key may serve as a message key and as an ordering key. */
  readonly pool: readonly PoolKey[];
  /** By hand, on a connection of its own. */
  sql(text: string): Promise<QueryResult>;
  /** Undefined: nobody ever waits in the engine. */
  readonly countWaiting: CountWaiting | undefined;
  /** A third connection, for transactions that stand in the way. */
  blocker(): Promise<Session>;
  /** Empties the tables and frees the leases. */
  reset(): Promise<void>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** A key, and the shard that it falls into. */
export interface PoolKey {
  /** The key. */
  readonly key: string;
  /** Its shard. */
  readonly shard: number;
}

/** Migrates the harness's database and opens two instances on it. */
export async function openStoreBench(harness: StoreHarness): Promise<StoreBench> {
  const { layout } = harness;
  const databases = [await harness.createDatabase(), await harness.createDatabase()] as const;
  const dialect = testDialect(databases[0].dialect);
  await migrate(databases[0], { layout });
  const first = await openInstance(harness, databases[0]);
  const second = await openInstance(harness, databases[1]);
  const hand = await databases[0].connect({ purpose: "tool", clock: layout.clock });
  let third: Session | undefined;
  const sql = (text: string): Promise<QueryResult> => hand.run({ name: "byHand", text, params: [] });
  const table = createMessageTable(layout, dialect, sql);
  const archive = createMessageTable({ ...layout, table: companionTables(layout).archive }, dialect, sql);
  const reset = (): Promise<void> => emptyTables(harness, dialect, hand);
  await reset();
  const pool = await probePool(table, first.store);
  const { leases } = await first.store.leases.heartbeat({
    owner: "contract",
    label: "contract",
    leaseMs: 1_000,
    instanceTimeoutMs: 1_000,
    held: [],
  });
  return {
    harness,
    facts: { shardCount: leases.length, sharedDatabase: databases[0] === databases[1] },
    dialect,
    first,
    second,
    table,
    archive,
    pool,
    sql,
    countWaiting: createLockWaitCounter(databases[0].dialect, sql),
    async blocker() {
      if (third === undefined || third.dead) {
        third = await databases[1].connect({
          purpose: "tool",
          clock: layout.clock,
          lockWaitTimeoutMs: STORE_OPTIONS.lockWaitTimeoutMs,
        });
      }
      return third;
    },
    reset,
    async close() {
      await third?.close();
      await hand.close();
      for (const { store, admin, database } of [first, second]) {
        await store.close();
        await admin.close();
        await database.close();
      }
    },
  };
}

async function openInstance(harness: StoreHarness, database: Database): Promise<StoreInstance> {
  const options = { layout: harness.layout };
  const store = database.relayStore(options);
  await store.open(STORE_OPTIONS);
  return { database, store, admin: database.messageAdmin(options), writer: database.messageWriter(options) };
}

/** In one transaction, so that it costs one commit. Epochs go on growing, as they do in life. */
async function emptyTables(harness: StoreHarness, dialect: TestDialect, hand: Session): Promise<void> {
  const { layout } = harness;
  const companions = companionTables(layout);
  const qualified = (name: string): string =>
    layout.schema === undefined ? dialect.name(name) : `${dialect.name(layout.schema)}.${dialect.name(name)}`;
  const ours = `table_name = ${dialect.text(tableKey(layout))}`;
  const statements = [
    `DELETE FROM ${qualified(layout.table)}`,
    `DELETE FROM ${qualified(companions.archive)}`,
    `DELETE FROM ${qualified(companions.relay)} WHERE ${ours}`,
    `DELETE FROM ${qualified(companions.suspension)} WHERE ${ours}`,
    `DELETE FROM ${qualified(companions.audit)} WHERE ${ours}`,
    `DELETE FROM ${qualified(companions.confirmation)} WHERE ${ours}`,
    `DELETE FROM ${qualified(companions.unmatched)} WHERE ${ours}`,
    `UPDATE ${qualified(companions.shard)} SET owner = NULL, in_flight = ${dialect.noList}, lease_until = ${dialect.ownAt(-1_000)}, lease_ms = 0 WHERE ${ours}`,
  ];
  await hand.transaction(async (tx) => {
    for (const text of statements) await tx.run({ name: "byHand", text, params: [] });
  });
}

/**
 * Learns the shards of many keys from one scan, so that a case can choose a shard and knows it of
 * rows that no scan returns.
 */
async function probePool(table: MessageTable, store: RelayStore): Promise<readonly PoolKey[]> {
  const keys = Array.from({ length: POOL }, (_, index) => `key-${String(index).padStart(4, "0")}`);
  await table.put(keys.map((key) => ({ type: "contract.probed", key })));
  const found = await store.scan({
    shards: undefined,
    afterId: "0",
    bodyLimit: Number.MAX_SAFE_INTEGER,
    immediateLimit: POOL,
    dueLimit: 0,
  });
  return found.map(({ key, shard }) => ({ key, shard }));
}
