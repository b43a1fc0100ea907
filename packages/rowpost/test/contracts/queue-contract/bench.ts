/**
 * What the cases of one run share: the database with the queue's tables, two instances, and
 * connections for SQL by hand. Each case has a topic of its own, so nothing has to be emptied.
 */
import type { Database, Session } from "../../../src/databases/database.ts";
import { openRooms, type QueueRooms } from "../../../src/queue/rooms.ts";
import type { QueueStore } from "../../../src/queue/store.ts";
import { type CountWaiting, createLockWaitCounter } from "../lock-waits.ts";
import { type RunSql, type TestDialect, testDialect } from "../test-dialect.ts";
import type { QueueStoreHarness } from "./harness.ts";

/** One running copy of a program on the database. */
export interface QueueInstance {
  /** With sessions of its own. */
  readonly database: Database;
  /** Of the queue. */
  readonly store: QueueStore;
  /** Of the queue too. */
  readonly rooms: QueueRooms;
}

/** An open database with its two instances. */
export interface QueueBench {
  /** What the suite was called with. */
  readonly harness: QueueStoreHarness;
  /** Both instances are one. */
  readonly sharedDatabase: boolean;
  /** Its SQL for tests. */
  readonly dialect: TestDialect;
  /** One instance. */
  readonly first: QueueInstance;
  /** Another one. */
  readonly second: QueueInstance;
  /** By hand, on a connection of its own. */
  readonly sql: RunSql;
  /** Undefined: nobody ever waits in the engine. */
  readonly countWaiting: CountWaiting | undefined;
  /** A third connection, for transactions that stand in the way. */
  blocker(): Promise<Session>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Locks are waited for longer than any case holds one. */
export const LOCK_WAIT_MS = 5_000;

/** Makes the queue's tables in the harness's database and opens two instances on it. */
export async function openQueueBench(harness: QueueStoreHarness): Promise<QueueBench> {
  const databases = [await harness.createDatabase(), await harness.createDatabase()] as const;
  const open = (database: Database): QueueInstance => {
    const instance = { database, store: database.queue.store() };
    return { ...instance, rooms: harness.rooms?.(instance) ?? openRooms(database.queue.sql) };
  };
  const [first, second] = [open(databases[0]), open(databases[1])];
  await first.store.migrate();
  const hand = await first.database.connect({ purpose: "tool" });
  let third: Session | undefined;
  const sql: RunSql = (text) => hand.run({ name: "byHand", text, params: [] });
  return {
    harness,
    first,
    second,
    sql,
    sharedDatabase: databases[0] === databases[1],
    dialect: testDialect(first.database.dialect),
    countWaiting: createLockWaitCounter(first.database.dialect, sql),
    async blocker() {
      if (third === undefined || third.dead) {
        third = await second.database.connect({ purpose: "tool", lockWaitTimeoutMs: LOCK_WAIT_MS });
      }
      return third;
    },
    async close() {
      await third?.close();
      await hand.close();
      for (const { store, rooms, database } of [first, second]) {
        await rooms.close();
        await store.close();
        await database.close();
      }
    },
  };
}
