/** Who closes the broker, and what its check means for `start`. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Broker, BrokerError, createRelay, type Logger, memory, type RelayOptions } from "../../src/index.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase } from "./bench-database.ts";

let database: RelayTestDatabase;
beforeEach(async () => {
  database = await createRelayDatabase("sqlite");
});
afterEach(() => database.drop());

/** A memory broker that counts how often it is closed. */
function countingBroker(change: Partial<Broker> = {}): { readonly broker: Broker; readonly closed: () => number } {
  let closed = 0;
  const inner = memory();
  const broker: Broker = {
    ...inner,
    close: () => {
      closed += 1;
      return inner.close();
    },
    ...change,
  };
  return { broker, closed: () => closed };
}

function relayOf(broker: Broker, options: Partial<RelayOptions> = {}) {
  return createRelay({ database: database.connect(), broker, logger: "silent", ...options });
}

it("stop, drain and a start that fails close the broker; closeBroker: false leaves it open", async () => {
  const ends: Readonly<Record<string, (broker: Broker) => Promise<unknown>>> = {
    stop: async (broker) => {
      const relay = relayOf(broker);
      await relay.start();
      await relay.stop();
      await relay.stop();
    },
    "stop before start": (broker) => relayOf(broker).stop(),
    drain: (broker) => relayOf(broker).drain(),
    start: (broker) =>
      relayOf(broker, { database: brokenDatabase() })
        .start()
        .catch(() => undefined),
  };
  for (const [name, end] of Object.entries(ends)) {
    const { broker, closed } = countingBroker();
    await end(broker);
    expect([name, closed()]).toEqual([name, 1]);
  }
  const { broker, closed } = countingBroker();
  const relay = relayOf(broker, { closeBroker: false });
  await relay.start();
  await relay.stop();
  expect(closed()).toBe(0);
});

it("a stop does not wait for a broker that never closes, and says so", async () => {
  const said: string[] = [];
  const { broker } = countingBroker({ close: () => new Promise(() => undefined) });
  const nothing = (): void => undefined;
  const logger: Logger = { debug: nothing, info: nothing, warn: nothing, error: (line) => said.push(line) };
  const relay = relayOf(broker, { logger });
  await relay.start();
  expect(await relay.stop()).toEqual({ drained: true, unsettled: 0 });
  expect(said).toEqual(["the broker could not be closed"]);
});

/** Its tables were never made. */
function brokenDatabase(): RelayOptions["database"] {
  const connected = database.connect();
  const { defaultLayout } = connected;
  const layout = { ...defaultLayout, table: "nowhere" };
  return { ...connected, defaultLayout: layout };
}

it("of two relays with one broker the last to stop closes it", async () => {
  const { broker, closed } = countingBroker();
  const [one, two] = [relayOf(broker), relayOf(broker)];
  await one.start();
  await one.stop();
  expect(closed()).toBe(0);
  await two.start();
  await two.stop();
  expect(closed()).toBe(1);
});

it("a relay with a closed broker does not start, and says so", async () => {
  const broker = memory();
  await relayOf(broker).drain();
  await expect(relayOf(broker).start()).rejects.toMatchObject({
    code: "CLOSED",
    message: expect.stringContaining("new one"),
  });
});

it("start rejects with what the broker refuses for good, and runs for a broker that is away", async () => {
  const refused = new BrokerError("UNAUTHORIZED", "who are you?");
  const away = new BrokerError("ECONNREFUSED", "nobody there", { retriable: true });
  const { broker, closed } = countingBroker({ check: () => Promise.reject(refused) });
  const relay = relayOf(broker);
  await expect(relay.start()).rejects.toBe(refused);
  expect([closed(), await leases()]).toEqual([1, 0]);
  await expect(relayOf(countingBroker({ check: () => Promise.reject(refused) }).broker).tick()).rejects.toBe(refused);
  for (const error of [away, new Error("a fault of the adapter")]) {
    const lines: string[] = [];
    const running = relayOf(countingBroker({ check: () => Promise.reject(error) }).broker, { logger: listing(lines) });
    await running.start();
    expect(lines).toEqual([`the broker cannot be used yet; messages wait until it can: ${error.message}`]);
    await running.stop();
  }
});

it("a broker that does not answer its check holds the start for the publish timeout at most, and no stop", async () => {
  const clock = createManualClock();
  const silent = (): Broker => countingBroker({ check: () => new Promise(() => undefined) }).broker;
  const lines: string[] = [];
  const relay = relayOf(silent(), { clock, publishTimeoutMs: 1_000, drainTimeoutMs: 0, logger: listing(lines) });
  const starting = relay.start();
  await expect.poll(() => clock.pendingTimers()).toBeGreaterThan(0);
  await clock.advance(1_000);
  await starting;
  expect(lines).toEqual(["the broker cannot be used yet; messages wait until it can: no answer within 1000 ms"]);
  await relay.stop();
  const stopped = relayOf(silent());
  const never = stopped.start();
  await stopped.stop();
  await never;
});

function listing(lines: string[]): Logger {
  const nothing = (): void => undefined;
  return {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: (message, fields) => void lines.push(`${message}: ${String(fields?.["reason"]).replace(/^[A-Z]+: /, "")}`),
  };
}

/** Shards that somebody still holds. */
async function leases(): Promise<number> {
  const rows = await database.sql("SELECT COUNT(*) AS n FROM local_message_shard WHERE owner IS NOT NULL");
  return Number(rows[0]?.["n"]);
}
