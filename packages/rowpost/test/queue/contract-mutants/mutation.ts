/** How a sound store of the queue is made to break one promise. */
import type { Database } from "../../../src/databases/database.ts";
import type { Groups } from "../../../src/queue/groups/looking.ts";
import type { Retention } from "../../../src/queue/retention/dropping.ts";
import type { Rewinding } from "../../../src/queue/rewinding/rewinding.ts";
import { openRooms, type QueueRooms } from "../../../src/queue/rooms.ts";
import type { Searching } from "../../../src/queue/searching/searching.ts";
import type {
  AppendCall,
  AppendRequest,
  AppendResult,
  ConsumptionStore,
  GroupKey,
  QueuedMessage,
  QueueStore,
  Settlement,
  TopicStore,
} from "../../../src/queue/store.ts";
import type { Verifying } from "../../../src/queue/verifying/verifying.ts";
import type { LeaseStore } from "../../../src/relay/store.ts";
import type { Executor } from "../../../src/transactions/executor.ts";
import type { QueueStoreHarness } from "../../contracts/queue-contract/harness.ts";

type Sound = QueueStore & QueueRooms;

/** What replaces parts of the store, and rooms. */
export type Mutation = (store: Sound, database: Database) => Partial<Sound>;

/** The promise that it breaks, how, and the beginnings of the names of the cases that must fail. */
export type Mutant = readonly [promise: string, mutation: Mutation, ...failing: string[]];

const besideTransactions = new WeakSet<Mutation>();

/** It opens a transaction within another one, which SQLite cannot: it fails on a server. */
export function beside(mutation: Mutation): Mutation {
  besideTransactions.add(mutation);
  return mutation;
}

export function needsServer(mutation: Mutation): boolean {
  return besideTransactions.has(mutation);
}

/** With the mutation's parts instead of its own. */
export function broken(harness: QueueStoreHarness, mutation: Mutation): QueueStoreHarness {
  const mutated = (database: Database, store: QueueStore): Sound => {
    const rooms = openRooms(database.queue.sql);
    const sound = { ...rooms, ...store, close: async () => void (await Promise.all([rooms.close(), store.close()])) };
    return { ...sound, ...mutation(sound, database) };
  };
  return {
    ...harness,
    async createDatabase() {
      const database = await harness.createDatabase();
      const store = (): QueueStore => mutated(database, database.queue.store());
      return { ...database, queue: { ...database.queue, store } };
    },
    // The store is mutated already, and has them.
    rooms: ({ store }) => store as Sound,
  };
}

/** Appends in another way. */
export function appendingBy(by: (call: AppendCall, request: AppendRequest, tx: Executor) => unknown): Mutation {
  return (store) => ({
    beginAppend(tx) {
      const call = store.beginAppend(tx);
      return { ...call, append: async (request) => (await by(call, request, tx)) as AppendResult };
    },
  });
}

/** Changes what is appended. */
export function appending(change: (request: AppendRequest) => AppendRequest): Mutation {
  return appendingBy((call, request) => call.append(change(request)));
}

/** Changes each message that is appended. */
export function appendingEach(change: (message: QueuedMessage) => QueuedMessage): Mutation {
  return appending((request) => ({ ...request, messages: request.messages.map(change) }));
}

/** Stores are closures: their methods can be taken out of them. */
type Loose<Store> = { readonly [Name in Exclude<keyof Store, never>]: Store[Name] };
type Change<Store> = (sound: Loose<Store>, store: Sound, database: Database) => Partial<Store>;

export function topics(change: Change<TopicStore>): Mutation {
  return (store, database) => ({ topics: { ...store.topics, ...change(store.topics, store, database) } });
}

export function groups(change: Change<Groups>): Mutation {
  return (store, database) => ({ groups: { ...store.groups, ...change(store.groups, store, database) } });
}

export function searching(change: Change<Searching>): Mutation {
  return (store, database) => ({ searching: { ...store.searching, ...change(store.searching, store, database) } });
}

export function rewinding(change: Change<Rewinding>): Mutation {
  return (store, database) => ({ rewinding: { ...store.rewinding, ...change(store.rewinding, store, database) } });
}

export function retention(change: Change<Retention>): Mutation {
  return (store, database) => ({ retention: { ...store.retention, ...change(store.retention, store, database) } });
}

export function verifying(change: Change<Verifying>): Mutation {
  return (store, database) => ({ verifying: { ...store.verifying, ...change(store.verifying, store, database) } });
}

/** A group's side; the key of the group is the last argument. */
export function consuming(
  change: (
    sound: Loose<ConsumptionStore>,
    key: GroupKey,
    store: Sound,
    database: Database,
  ) => Partial<ConsumptionStore>,
): Mutation {
  return (store, database) => ({
    consumption(key, options) {
      const sound = store.consumption(key, options);
      return { ...sound, ...change(sound, key, store, database) };
    },
  });
}

export function leasing(change: (sound: Loose<LeaseStore>) => Partial<LeaseStore>): Mutation {
  return consuming(({ leases }) => ({ leases: { ...leases, ...change(leases) } }));
}

/** Changes every settlement, in whichever transaction it is written. */
export function settling(
  change: (settlement: Settlement, sound: Loose<ConsumptionStore>) => Settlement | Promise<Settlement>,
): Mutation {
  return consuming((sound) => ({
    settle: async (owner, settlement, place) => await sound.settle(owner, await change(settlement, sound), place),
    settleIn: async (tx, owner, settlement, place) =>
      await sound.settleIn(tx, owner, await change(settlement, sound), place),
  }));
}

/** Runs statements by hand, on a session of its own. */
export async function byHand(database: Database, ...statements: readonly string[]): Promise<void> {
  const session = await database.connect({ purpose: "tool" });
  try {
    for (const text of statements) await session.run({ name: "by hand", text, params: [] });
  } finally {
    await session.close();
  }
}
