/**
 * What a case works with: two instances, rows set and read by hand, leases, and other connections
 * that stand in the way.
 */
import assert from "node:assert/strict";
import type { MessageAdmin } from "../../../src/admin/message-admin.ts";
import type { Database, TableLayout } from "../../../src/databases/database.ts";
import type { LayoutColumns } from "../../../src/databases/sql/layout.ts";
import { companionTables, tableKey } from "../../../src/databases/sql/layouts.ts";
import type { EncodedMessage, EnqueueStatus, MessageWriter } from "../../../src/outbox/message-writer.ts";
import type {
  Fence,
  HeldShard,
  RelayStore,
  RelayStoreOptions,
  RowToken,
  ScannedMessage,
  ShardLease,
} from "../../../src/relay/store.ts";
import type { QueryResult } from "../../../src/transactions/executor.ts";
import { type WhileOpen, waitingForLocks, whileOpen } from "../in-the-way.ts";
import type { RunSql, TestDialect } from "../test-dialect.ts";
import { STORE_OPTIONS, type StoreBench, type StoreInstance } from "./bench.ts";
import type { StoreHarness } from "./harness.ts";
import type { MessageTable, RowValues, SeenRow } from "./table.ts";

/** A row that a case has put into the table. */
export interface PutRow {
  /** Its id. */
  readonly id: string;
  /** Its message key. */
  readonly key: string;
  /** Its shard. */
  readonly shard: number;
}

/** Values of a row, and the shard that its key shall fall into. */
export interface PutValues extends RowValues {
  /** Default: any. */
  readonly shard?: number | undefined;
}

/** Shards held by an owner. */
export interface Ownership {
  /** Who holds them. */
  readonly owner: string;
  /** The shards, with their epochs. */
  readonly held: readonly HeldShard[];
  /** For statements that change messages. */
  readonly fence: Fence;
  /** Rows that the acquisition recovered. */
  readonly recovered: number;
}

/** Options of {@link StoreCaseContext.own}. */
export interface OwnOptions {
  /** Default: a new name. */
  readonly owner?: string | undefined;
  /** Default: all. */
  readonly shards?: readonly number[] | undefined;
  /** Default: the first instance's. */
  readonly store?: RelayStore | undefined;
  /** Default 60,000. */
  readonly leaseMs?: number | undefined;
}

/** Handed to each case. */
export interface StoreCaseContext {
  /** What the suite was called with. */
  readonly harness: StoreHarness;
  /** Of the table. */
  readonly layout: TableLayout;
  /** Its SQL for tests. */
  readonly dialect: TestDialect;
  /** How many shards the table has. */
  readonly shardCount: number;
  /** Of the first instance. */
  readonly database: Database;
  /** Of the first instance. */
  readonly store: RelayStore;
  /** Of the first instance. */
  readonly admin: MessageAdmin;
  /** Of the first instance. */
  readonly writer: MessageWriter;
  /** A second instance: other sessions, other objects, the same database. */
  readonly other: StoreInstance;
  /** Rows by hand. */
  readonly table: MessageTable;
  /** The archive, for reading. */
  readonly archive: MessageTable;
  /** Quoted names of rowpost's own tables, and the value of their `table_name` as a literal. */
  readonly own: OwnTables;
  /** Runs a statement by hand, on a connection of its own. */
  sql(text: string): Promise<QueryResult>;
  /**
   * Another store of the first instance, which remembers nothing of earlier cases. Closed after the
   * case.
   */
  openStore(options?: Partial<RelayStoreOptions>): Promise<RelayStore>;
  /** Puts a row: pending, without a time, unless the values say otherwise. */
  put(values?: PutValues): Promise<PutRow>;
  /** {@link StoreCaseContext.put}, for several. */
  putAll(values: readonly PutValues[]): Promise<PutRow[]>;
  /** A key that no row of this case has yet; in this shard, when one is named. */
  freshKey(shard?: number): string;
  /** The row as a scan or a claim would name it now. */
  token(row: PutRow): Promise<RowToken>;
  /** {@link StoreCaseContext.token}, for several. */
  tokens(rows: readonly PutRow[]): Promise<RowToken[]>;
  /** The row as it is. */
  row(row: PutRow | string): Promise<SeenRow>;
  /** Takes shards, whoever holds them. */
  acquire(options?: OwnOptions): Promise<Ownership>;
  /** The lease rows as they are. */
  leases(store?: RelayStore): Promise<readonly ShardLease[]>;
  /** All waiting messages, due ones first. */
  scan(store?: RelayStore): Promise<ScannedMessage[]>;
  /** An encoded message with a key of its own; `changes` replace parts of it. */
  message(changes?: Partial<EncodedMessage>): EncodedMessage;
  /** Enqueues in a transaction of its own. */
  enqueue(
    messages: readonly EncodedMessage[],
    options?: { readonly duplicates?: "throw" | "ignore"; readonly instance?: StoreInstance },
  ): Promise<EnqueueStatus[]>;
  /**
   * Starts something while a third connection holds these rows locked, and returns what comes of it
   * once that connection has committed.
   */
  whileLocked<T>(rows: readonly PutRow[], interleaving: Interleaving<T>): Promise<T>;
  /** The same with anything else that the third connection does first in its transaction. */
  whileOpen<T>(first: (run: RunSql) => Promise<unknown>, interleaving: Interleaving<T>): Promise<T>;
  /** Resolves when that many connections wait for a lock, or when `unless` says so. */
  waiting(connections: number, unless?: () => boolean): Promise<void>;
  /** Runs `work` and returns which columns of the row it changed, besides gmt_modified. */
  changesOf(row: PutRow | string, work: () => Promise<unknown>): Promise<(keyof LayoutColumns)[]>;
  /**
   * Runs `work`, which must change these columns of the row (those that the layout has) and no
   * others.
   */
  assertChanges<T>(row: PutRow, columns: readonly (keyof LayoutColumns)[], work: () => Promise<T>): Promise<T>;
  /** Runs `work`, which must leave these rows as they are, to the last column. */
  assertUnchanged<T>(rows: readonly PutRow[], work: () => Promise<T>): Promise<T>;
  /** Fails unless the instant was written as that many milliseconds from now. */
  assertInMs(actual: number | null, expectedMs: number, what: string): void;
}

/** Edits a row that is held locked. */
export type EditLocked = (row: PutRow, values: RowValues) => Promise<void>;

/** What happens while rows are locked. */
export interface Interleaving<T> extends Omit<WhileOpen<T>, "meanwhile"> {
  /** Once they wait: edits, or any SQL, in the locking transaction, which then commits. */
  readonly meanwhile?: ((edit: EditLocked, run: RunSql) => Promise<void>) | undefined;
}

/** Quoted names. */
export interface OwnTables {
  /** Name of the message table, as a literal. */
  readonly messages: string;
  /** Leases. */
  readonly shard: string;
  /** Running relays. */
  readonly relay: string;
  /** Rules. */
  readonly suspension: string;
  /** Archive. */
  readonly archive: string;
  /** `table_name = '…'` */
  readonly ours: string;
}

/** Time that may pass between a write and the look at it. */
const SLOWEST_MS = 15_000;

/**
 * Makes the context of one run of one case, on emptied tables. What `atEnd` collects is to be
 * called after the case.
 */
export function createStoreContext(bench: StoreBench, atEnd: (() => Promise<void>)[]): StoreCaseContext {
  const { dialect, first, harness, second, table } = bench;
  const { layout } = harness;
  const { store } = first;
  const keys = [...bench.pool];
  const shards = new Map(bench.pool.map(({ key, shard }) => [key, shard]));
  const own = ownTables(layout, dialect);
  const sql: RunSql = (text) => bench.sql(text);

  function freshKey(shard?: number): string {
    const index = keys.findIndex((each) => shard === undefined || each.shard === shard);
    const [taken] = index < 0 ? [] : keys.splice(index, 1);
    assert.ok(taken !== undefined, `the pool has no key left of shard ${shard ?? "any"}`);
    return taken.key;
  }

  async function putAll(values: readonly PutValues[]): Promise<PutRow[]> {
    const rows = values.map(({ shard, key = freshKey(shard), ...row }) => ({ type: "contract.checked", ...row, key }));
    const ids = await table.put(rows);
    return rows.map((row, index) => {
      const grouped = layout.columns.orderingKey === undefined ? undefined : row.orderingKey;
      return { id: String(ids[index]), key: row.key, shard: shards.get(grouped ?? row.key) ?? 0 };
    });
  }

  async function put(values: PutValues = {}): Promise<PutRow> {
    const [row] = await putAll([values]);
    assert.ok(row !== undefined);
    return row;
  }

  async function token({ id, shard }: PutRow): Promise<RowToken> {
    const { deliveryCount, identityHash, lockVersion } = await table.row(id);
    return { id, shard, deliveryCount, lockVersion: String(lockVersion), identityHash };
  }

  async function changesOf(row: PutRow | string, work: () => Promise<unknown>): Promise<(keyof LayoutColumns)[]> {
    const id = typeof row === "string" ? row : row.id;
    const before = await table.exact(id);
    await work();
    const after = await table.exact(id);
    assert.ok(before !== undefined && after !== undefined, `message ${id} is in the table before and after`);
    return (Object.keys(before) as (keyof LayoutColumns)[]).filter(
      (column) => column !== "gmtModified" && before[column] !== after[column],
    );
  }

  const waiting = (connections: number, unless?: () => boolean): Promise<void> =>
    waitingForLocks(bench, connections, unless);

  function inTheWay<T>(first: (run: RunSql) => Promise<unknown>, interleaving: Interleaving<T>): Promise<T> {
    return whileOpen(bench, first, {
      ...interleaving,
      meanwhile: (run) => interleaving.meanwhile?.((row, values) => table.edit(row.id, values, run), run),
    });
  }

  return {
    harness,
    layout,
    dialect,
    shardCount: bench.facts.shardCount,
    ...first,
    other: second,
    table,
    archive: bench.archive,
    own,
    sql,
    async openStore(options) {
      const opened = first.database.relayStore({ layout });
      atEnd.push(() => opened.close());
      await opened.open({ ...STORE_OPTIONS, ...options });
      return opened;
    },
    put,
    putAll,
    freshKey,
    token,
    tokens: (rows) => Promise.all(rows.map(token)),
    row: (row) => table.row(typeof row === "string" ? row : row.id),
    acquire: (options = {}) => acquire(store, options),
    leases: (used = store) => readLeases(used),
    scan: (used = store) =>
      used.scan({
        shards: undefined,
        afterId: "0",
        bodyLimit: Number.MAX_SAFE_INTEGER,
        immediateLimit: 1_000,
        dueLimit: 1_000,
      }),
    message: (changes = {}) => ({
      type: "contract.checked",
      topic: "orders",
      body: "{}",
      headers: null,
      contentType: null,
      orderingKey: null,
      delayMs: null,
      deliverAtMs: null,
      createdBy: "contract",
      ...changes,
      key: changes.key ?? freshKey(),
    }),
    enqueue(messages, { duplicates = "throw", instance = first } = {}) {
      return instance.database.transaction((tx) => instance.writer.insert(tx, messages, { duplicates }));
    },
    whileLocked(rows, interleaving) {
      const id = dialect.name(layout.columns.id);
      const ids = rows.map((row) => row.id).join(", ");
      const lock = `SELECT ${id} AS id FROM ${own.messages} WHERE ${id} IN (${ids}) ORDER BY ${id} ${dialect.forUpdate}`;
      return inTheWay((run) => run(lock), interleaving);
    },
    whileOpen: inTheWay,
    waiting,
    changesOf,
    async assertChanges(row, columns, work) {
      let result: Awaited<ReturnType<typeof work>> | undefined;
      const changed = await changesOf(row, async () => {
        result = await work();
      });
      const expected = columns.filter((column) => layout.columns[column] !== undefined);
      assert.deepEqual([...changed].sort(), expected.sort(), "columns that changed");
      return result as Awaited<ReturnType<typeof work>>;
    },
    async assertUnchanged(rows, work) {
      const before = await Promise.all(rows.map(({ id }) => table.exact(id)));
      const result = await work();
      for (const [index, row] of rows.entries()) {
        assert.deepEqual(await table.exact(row.id), before[index], `row ${index} stays as it was`);
      }
      return result;
    },
    assertInMs(actual, expectedMs, what) {
      const most = expectedMs + (layout.fractionDigits === 0 ? 1_000 : 2);
      assert.ok(
        actual !== null && actual <= most && actual >= expectedMs - SLOWEST_MS,
        `${what}: ${expectedMs} ms from when it was written, is ${actual} ms from now`,
      );
    },
  };
}

function ownTables(layout: TableLayout, dialect: TestDialect): OwnTables {
  const companions = companionTables(layout);
  const qualified = (name: string): string =>
    layout.schema === undefined ? dialect.name(name) : `${dialect.name(layout.schema)}.${dialect.name(name)}`;
  return {
    messages: qualified(layout.table),
    shard: qualified(companions.shard),
    suspension: qualified(companions.suspension),
    relay: qualified(companions.relay),
    archive: qualified(companions.archive),
    ours: `table_name = ${dialect.text(tableKey(layout))}`,
  };
}

/** Owners are told apart by their names, as relays are by their random ids. */
let owners = 0;

export function freshOwner(): string {
  owners += 1;
  return `owner-${owners}`;
}

async function readLeases(store: RelayStore): Promise<readonly ShardLease[]> {
  const { leases } = await store.leases.heartbeat({
    owner: "looker-on",
    label: "contract",
    leaseMs: 60_000,
    instanceTimeoutMs: 60_000,
    held: [],
  });
  await store.leases.leave("looker-on");
  return leases;
}

async function acquire(first: RelayStore, options: OwnOptions): Promise<Ownership> {
  const { owner = freshOwner(), shards, store = first, leaseMs = 60_000 } = options;
  const leases = await readLeases(store);
  const observed = leases.filter(({ shard }) => shards === undefined || shards.includes(shard));
  const { acquired, recovered } = await store.leases.acquire({ owner, leaseMs, observed });
  assert.equal(acquired.length, observed.length, "shards that nobody else wants are taken");
  return { owner, held: acquired, fence: fenceOf(owner, acquired, leases.length), recovered };
}

/** A fence of held shards. */
export function fenceOf(owner: string, held: readonly HeldShard[], shardCount: number): Fence {
  const epochs = Array.from({ length: shardCount }, (_, shard) => held.find((each) => each.shard === shard)?.epoch);
  return { owner, epochs };
}
