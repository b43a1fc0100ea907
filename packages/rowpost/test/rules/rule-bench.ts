/**
 * What the tests of the rules share: a real database, relays under a clock that the test turns, and
 * stores with one guard taken out.
 */
import { afterEach, beforeEach } from "vitest";
import type { PublishFailed, PublishResult } from "../../src/brokers/broker.ts";
import { type MemoryBroker, type MemoryBrokerOptions, memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import type { RelayOptions } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import type { RelayStore } from "../../src/relay/store.ts";
import { createManualClock, type ManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "../relay/bench-database.ts";

/** A failure of the broker's, by default about the message, and worth a retry. */
export function failure(change: Partial<PublishFailed>): PublishResult {
  return { status: "failed", scope: "message", retriable: true, code: "NO", reason: "refused", ...change };
}

/** Message keys, in order. */
export function keysOf(messages: readonly { readonly key: string }[]): string[] {
  return messages.map(({ key }) => key);
}

/** Numbers of the states in the default layout. */
export const STATE = { pending: 0, sending: 1, sent: 2, failed: 3, consumed: 4, suspended: 5 } as const;

/** Changes a store before a relay gets it: a lost reply, or a guard that is not there. */
export type StoreChange = (store: RelayStore) => RelayStore;

export interface RuleBench {
  readonly database: RelayTestDatabase;
  readonly clock: ManualClock;
  /** A relay that runs by `tick`, under the test's clock. */
  relay(options?: RuleRelayOptions): { readonly relay: Relay; readonly broker: MemoryBroker };
}

export interface RuleRelayOptions {
  readonly broker?: MemoryBrokerOptions;
  readonly relay?: Partial<RelayOptions>;
  readonly store?: StoreChange;
}

/** Sets up before each test of the block and cleans up after it. */
export function useRuleBench(service: RelayTestService): RuleBench {
  let database: RelayTestDatabase | undefined;
  let clock = createManualClock();
  const relays: Relay[] = [];

  beforeEach(async () => {
    clock = createManualClock();
    database = await createRelayDatabase(service);
  });
  afterEach(async () => {
    for (const relay of relays.splice(0)) await relay.stop();
    await database?.drop();
  });

  return {
    get database() {
      if (database === undefined) throw new Error("only within a test");
      return database;
    },
    get clock() {
      return clock;
    },
    relay({ broker: brokerOptions = {}, relay: options = {}, store } = {}) {
      if (database === undefined) throw new Error("only within a test");
      const broker = memory(brokerOptions);
      const plain = database.connect();
      // drainTimeoutMs 0: under a clock that stands still, a stop must not wait for it.
      const relay = createRelay({
        database: store === undefined ? plain : withStore(plain, store),
        broker,
        clock,
        drainTimeoutMs: 0,
        logger: "silent",
        ...options,
      });
      relays.push(relay);
      return { relay, broker };
    },
  };
}

function withStore(database: Database, change: StoreChange): Database {
  return { ...database, relayStore: (options) => change(database.relayStore(options)) };
}
