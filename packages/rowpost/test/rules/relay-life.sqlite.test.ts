/** How a relay begins and ends, and what it tells meanwhile. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { RelayOptions } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import type { RelayStore } from "../../src/relay/store.ts";
import { DatabaseUnavailableError } from "../../src/runtime/errors.ts";
import { createMetricsRegistry } from "../../src/runtime/metrics-registry.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";

let database: RelayTestDatabase;
const relays: Relay[] = [];

beforeEach(async () => {
  database = await createRelayDatabase("sqlite");
});
afterEach(async () => {
  for (const relay of relays.splice(0)) await relay.stop();
  await database.drop();
});

function relayWith(change: (store: RelayStore) => Partial<RelayStore>, options: Partial<RelayOptions> = {}): Relay {
  const plain = database.connect();
  const relay = createRelay({
    database: {
      ...plain,
      relayStore: (request) => {
        const store = plain.relayStore(request);
        return { ...store, ...change(store) };
      },
    },
    broker: memory(),
    heartbeatMs: 20,
    housekeepingMs: 20,
    ...options,
  });
  relays.push(relay);
  return relay;
}

async function owners(): Promise<unknown[]> {
  return (await database.sql("SELECT owner AS owner FROM local_message_shard WHERE owner IS NOT NULL")).map(
    ({ owner }) => owner,
  );
}

it("a stop during the start gives back what the start takes", async () => {
  let opened = (): void => {};
  const gate = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const relay = relayWith((store) => ({
    open: async (options) => {
      await gate;
      return await store.open(options);
    },
  }));
  const starting = relay.start();
  const stopping = relay.stop();
  opened();
  await starting;
  expect(await stopping).toEqual({ drained: true, unsettled: 0 });
  expect(await owners()).toEqual([]);
});

it("a tick after one that could not open opens again, and a stop gives the leases back", async () => {
  let tries = 0;
  const broker = memory();
  const relay = relayWith(
    (store) => ({
      async open(options) {
        tries += 1;
        if (tries === 1) throw new DatabaseUnavailableError("away");
        return await store.open(options);
      },
    }),
    { broker },
  );
  await database.insert([{ key: "a" }]);
  await expect(relay.tick()).rejects.toThrow("away");
  expect(await relay.tick()).toMatchObject({ sent: 1 });
  expect(await owners()).toEqual([relay.owner]);
  expect(await relay.stop()).toEqual({ drained: true, unsettled: 0 });
  expect([tries, await owners()]).toEqual([2, []]);
});

it("a second stop waits for the first", async () => {
  let begun = (): void => {};
  let answer = (): void => {};
  const publishing = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const answered = new Promise<undefined>((resolve) => {
    answer = () => resolve(undefined);
  });
  const outcome = (): Promise<undefined> => {
    begun();
    return answered;
  };
  const relay = relayWith(() => ({}), { broker: memory({ outcome }) });
  await database.insert([{ key: "1" }]);
  await relay.start();
  await publishing;
  const first = relay.stop();
  const second = relay.stop();
  setImmediate(answer);
  expect(await second).toEqual({ drained: true, unsettled: 0 });
  expect(await database.states()).toEqual({ 2: 1 });
  expect(await first).toEqual(await second);
});

it("a stop ends a drain that waits for the broker", async () => {
  const away = { status: "failed", scope: "connection", retriable: true, code: "ECONNREFUSED", reason: "no" } as const;
  const relay = relayWith(() => ({}), { broker: memory({ outcome: () => away }) });
  await database.insert([{ key: "1" }]);
  const isAway = new Promise<void>((resolve) => relay.on("brokerAway", () => resolve()));
  const draining = relay.drain({ timeoutMs: 600_000 });
  await isAway;
  await relay.stop();
  expect(await draining).toMatchObject({ complete: false, sent: 0 });
});

it("an outcome that a stop could not write in time is given up, not tried for the rest of the lease", async () => {
  const relay = relayWith(() => ({ settle: () => Promise.reject(new DatabaseUnavailableError("away")) }), {
    drainTimeoutMs: 0,
  });
  await database.insert([{ key: "1" }]);
  const lost = new Promise<void>((resolve) => relay.on("outcomeLost", () => resolve()));
  const away = new Promise<void>((resolve) => relay.on("databaseAway", () => resolve()));
  await relay.start();
  await away;
  expect(await relay.stop()).toEqual({ drained: false, unsettled: 1 });
  await lost;
});

it("does not tell that the database is back while it is away", async () => {
  const clock = createManualClock();
  let away = false;
  const guard =
    <Arguments extends unknown[], Result>(work: (...list: Arguments) => Promise<Result>) =>
    (...list: Arguments): Promise<Result> =>
      away ? Promise.reject(new DatabaseUnavailableError("away")) : work(...list);
  const relay = relayWith(
    (store) => ({
      scan: guard((request: Parameters<typeof store.scan>[0]) => store.scan(request)),
      leases: {
        ...store.leases,
        heartbeat: guard((request: Parameters<typeof store.leases.heartbeat>[0]) => store.leases.heartbeat(request)),
      },
      housekeeping: {
        ...store.housekeeping,
        listSending: guard((request: Parameters<typeof store.housekeeping.listSending>[0]) =>
          store.housekeeping.listSending(request),
        ),
        listTimed: guard((request: Parameters<typeof store.housekeeping.listTimed>[0]) =>
          store.housekeeping.listTimed(request),
        ),
      },
    }),
    { clock, heartbeatMs: 2_000, housekeepingMs: 1_000, drainTimeoutMs: 0 },
  );
  const told: string[] = [];
  relay.on("databaseAway", () => {
    told.push("away");
  });
  relay.on("databaseBack", () => {
    told.push("back");
  });
  await relay.start();
  away = true;
  // Longer than the lease: the loops have nothing to ask the database for any more.
  for (let step = 0; step < 400; step += 1) await turn(100);
  expect(told).toEqual(["away"]);
  away = false;
  while (told.length < 2) await turn(100);
  expect(told).toEqual(["away", "back"]);

  async function turn(ms: number): Promise<void> {
    await clock.advance(ms);
    await new Promise((resolve) => setImmediate(resolve));
  }
});

it("a gauge goes back to 0 with its last message", async () => {
  const metrics = createMetricsRegistry();
  const clock = createManualClock();
  const refused = { status: "failed", scope: "message", retriable: false, code: "NO", reason: "no" } as const;
  let working = false;
  const relay = relayWith(() => ({}), {
    clock,
    metrics,
    drainTimeoutMs: 0,
    retry: { baseMs: 3_600_000, maxMs: 3_600_000 },
    broker: memory({ outcome: () => (working ? undefined : { ...refused, retriable: true }) }),
  });
  await database.insert([{ key: "1" }]);
  await relay.tick();
  expect(metrics.value("rowpost_pending", { topic: "orders" })).toBe(1);
  working = true;
  await database.sql("UPDATE local_message SET next_retry_at = NULL");
  await clock.advance(20_000);
  await relay.tick();
  expect(await database.states()).toEqual({ 2: 1 });
  expect(metrics.value("rowpost_pending", { topic: "orders" })).toBe(0);
});
