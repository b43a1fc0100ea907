/**
 * A relay in a process of its own is killed with SIGKILL while it holds every shard. The next one
 * sends everything long before the lease ends, which is longer than these tests may take; and what
 * a session lock does not tell, it leaves to the lease (rule: session-lock).
 */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { useLedger } from "../crash/ledger.ts";
import type { RelayTestDatabase, RelayTestService } from "../relay/bench-database.ts";

const MESSAGES = 60;
const BATCH = 20;
/** Ten times what a test may take. */
const LEASE_MS = 200_000;

/** Defines the tests for one server. */
export function defineTakeoverCases(service: RelayTestService): void {
  const bench = useLedger(service, MESSAGES, LEASE_MS);
  const { published, start } = bench;

  function judge(keys: readonly string[], copies: number): void {
    const first = [...new Set(keys)];
    expect(first).toHaveLength(MESSAGES);
    for (let key = 0; key < 3; key += 1) {
      const own = first.filter((each) => Number(each) % 3 === key).map(Number);
      expect(own).toEqual([...own].sort((left, right) => left - right));
    }
    expect(keys.length - first.length).toBeLessThanOrEqual(copies);
  }

  describe("a relay that is killed", () => {
    it.each([
      ["claimed", 0],
      ["published", BATCH],
    ] as const)("at %s: the one started next takes over before the lease ends", async (point, copies) => {
      const killed = start({ point, hit: 1 });
      expect(await once(killed, "exit")).toEqual([null, "SIGKILL"]);
      expect(await once(start({}), "exit")).toEqual([0, null]);
      judge(published(), copies);
    });

    it("the one that runs beside it takes over before the lease ends", async () => {
      const broker = memory();
      const relay = createRelay({ database: bench.database.connect(), broker, leaseMs: LEASE_MS, onFailed: "block" });
      const killed = start({ point: "published", hit: 1 });
      try {
        await once(killed, "exit");
        await relay.start();
        await untilSent(bench.database, MESSAGES);
      } finally {
        await relay.stop();
      }
      judge([...published(), ...broker.published().map(({ key }) => key)], BATCH);
    });
  });

  it("guard removed: without its lock in the registry the lease decides", async () => {
    const killed = start({ point: "claimed", hit: 1 });
    await once(killed, "exit");
    await bench.database.sql("UPDATE local_message_relay SET label = 'pid:1 lock='");
    const { database: counted, done } = heartbeatsOf(bench.database.connect(), 4);
    // Ticks would do for the heartbeats, but the looks between them are what must find nothing.
    const heir = createRelay({ database: counted, broker: memory(), leaseMs: LEASE_MS, heartbeatMs: 300 });
    await heir.start();
    await done;
    await heir.stop();
    expect(await bench.database.states()).toEqual({ 0: MESSAGES - BATCH, 1: BATCH });
  });
}

/** A database whose heartbeats are counted; `done` resolves after so many. */
function heartbeatsOf(plain: Database, count: number): { readonly database: Database; readonly done: Promise<void> } {
  let left = count;
  let finish = (): void => {};
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const database: Database = {
    ...plain,
    relayStore(options) {
      const store = plain.relayStore(options);
      return {
        ...store,
        leases: {
          ...store.leases,
          async heartbeat(request) {
            const view = await store.leases.heartbeat(request);
            left -= 1;
            if (left === 0) finish();
            return view;
          },
        },
      };
    },
  };
  return { database, done };
}

async function untilSent(database: RelayTestDatabase, count: number): Promise<void> {
  while ((await database.states())[2] !== count) await new Promise((resolve) => setTimeout(resolve, 20));
}
