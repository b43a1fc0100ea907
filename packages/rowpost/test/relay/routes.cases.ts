/**
 * Two real brokers behind routes, one of them refused, silent or slow: the other's messages all go
 * meanwhile, and the broken one's are all sent afterwards, in order.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { http } from "../../src/brokers/http.ts";
import { routes } from "../../src/brokers/routes.ts";
import type { RelayOptions } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/tcp-proxy.ts";
import { type HttpReceiver, startHttpReceiver } from "../brokers/http-receiver.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const SENT = 2;
/** Messages for each topic, every {@link EVERY_MS}. */
const BURST = 5;
const EVERY_MS = 100;
const TURNS = 20;
const TOPICS = ["bad.orders", "bad.stock", "good"];
const PUBLISH_TIMEOUT_MS = 3_000;
/** The broken broker's messages of half a second. */
const WINDOW_SIZE = 50;
const SOON = { timeout: 60_000, interval: 20 };

interface Fault {
  readonly begin: (proxy: TcpProxy) => void | Promise<void>;
  readonly end: (proxy: TcpProxy) => void | Promise<void>;
  /** Nothing was handed over, so nothing may count as an attempt. */
  readonly uncounted: boolean;
  /** The relay has met it. */
  readonly isMet: (seen: Seen) => boolean;
}

/** What a relay has told, and how many messages of the broken broker wait. */
interface Seen {
  readonly away: number;
  readonly retries: number;
  readonly waiting: number;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  refused: {
    async begin(proxy) {
      await proxy.refuse();
      // Idle ones: nothing is under way.
      await proxy.cut();
    },
    end: (proxy) => proxy.accept(),
    uncounted: true,
    isMet: ({ away }) => away > 0,
  },
  // Longer than the publish timeout: the outcome of what was handed over is unknown.
  silent: {
    begin: (proxy) => proxy.mute(),
    end: (proxy) => proxy.unmute(),
    uncounted: false,
    isMet: ({ retries }) => retries > 0,
  },
  // So slow that its messages of one answer's time are more than a window holds.
  slow: {
    begin(proxy) {
      proxy.delayMs = 800;
    },
    end(proxy) {
      proxy.delayMs = 0;
    },
    uncounted: false,
    isMet: ({ waiting }) => waiting > 2 * WINDOW_SIZE,
  },
};

/** Defines the cases. */
export function defineRoutesCases(service: RelayTestService): void {
  let database: RelayTestDatabase;
  let receivers: { readonly bad: HttpReceiver; readonly good: HttpReceiver };
  let proxy: TcpProxy;
  let relay: Relay;
  let broker: Broker;
  let sent: Record<string, number>;
  let inserted: Record<string, number>;
  let told: { away: number; retries: number };

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    receivers = { bad: await startHttpReceiver(), good: await startHttpReceiver() };
    proxy = await createTcpProxy({ target: { port: receivers.bad.port } });
    broker = routes(
      { "bad.*": http({ url: `http://127.0.0.1:${proxy.port}/` }) },
      { otherwise: http({ url: receivers.good.url }) },
    );
    sent = { "bad.orders": 0, "bad.stock": 0, good: 0 };
    inserted = { ...sent };
    told = { away: 0, retries: 0 };
  });

  function makeRelay(change: Partial<Broker>, options: Partial<RelayOptions>): void {
    relay = createRelay({
      database: database.connect(),
      broker: { ...broker, ...change },
      publishTimeoutMs: PUBLISH_TIMEOUT_MS,
      batchSize: WINDOW_SIZE / 2,
      windowSize: WINDOW_SIZE,
      ...options,
    });
    relay.on("sent", ({ message: { topic } }) => {
      sent[topic] = (sent[topic] ?? 0) + 1;
    });
    relay.on("brokerAway", () => {
      told.away += 1;
    });
    relay.on("retry", () => {
      told.retries += 1;
    });
  }

  afterEach(async () => {
    proxy.unmute();
    await proxy.accept();
    await relay.stop();
    await broker.close();
    await proxy.close();
    await receivers.bad.close();
    await receivers.good.close();
    await database.drop();
  });

  /** Half of them with one of five ordering keys of its topic. */
  function burst(topic: string, from: number) {
    return Array.from({ length: BURST }, (_, index) => {
      const number = from + index;
      const key = `${topic}-${number}`;
      return number % 2 === 0 ? { key, topic } : { key, topic, orderingKey: `${topic}-k${number % 5}` };
    });
  }

  async function insertBursts(topics: readonly string[]): Promise<void> {
    for (const topic of topics) {
      const from = inserted[topic] ?? 0;
      await database.insert(burst(topic, from));
      inserted[topic] = from + BURST;
    }
  }

  /** Inserts for both, each turn when the good broker's messages of the last one are sent. */
  async function offer(isMet: (seen: Seen) => boolean): Promise<void> {
    const waiting = (): number => totalInserted("bad.orders", "bad.stock") - totalSent("bad.orders", "bad.stock");
    for (let turn = 1; turn <= TURNS || !isMet({ ...told, waiting: waiting() }); turn += 1) {
      expect(turn).toBeLessThan(100 * TURNS);
      await insertBursts(TOPICS);
      await expect.poll(() => sent["good"], SOON).toBe(inserted["good"]);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  const totalOf = (counts: Readonly<Record<string, number>>, topics: readonly string[]): number =>
    topics.reduce((sum, topic) => sum + (counts[topic] ?? 0), 0);
  const totalSent = (...topics: readonly string[]): number => totalOf(sent, topics);
  const totalInserted = (...topics: readonly string[]): number => totalOf(inserted, topics);

  async function attempts(): Promise<{ readonly retries: number; readonly claims: number }> {
    const sums = "SELECT SUM(retry_count) AS retries, SUM(delivery_count) AS claims FROM local_message";
    const [row] = await database.sql(sums);
    return { retries: Number(row?.["retries"]), claims: Number(row?.["claims"]) };
  }

  /** Keys in the order in which they first arrived; the check at the start is no message. */
  function arrived(receiver: HttpReceiver): string[] {
    const posts = receiver.requests.filter(({ headers }) => headers["rowpost-key"] !== undefined);
    return [...new Set(posts.map(({ headers }) => String(headers["rowpost-key"])))];
  }

  function expectOrder(keys: readonly string[]): void {
    for (const topic of new Set(keys.map((key) => key.slice(0, key.lastIndexOf("-"))))) {
      for (let queue = 0; queue < 5; queue += 1) {
        const numbers = keys
          .filter((key) => key.startsWith(`${topic}-`))
          .map((key) => Number(key.slice(topic.length + 1)))
          .filter((number) => number % 2 === 1 && number % 5 === queue);
        expect(numbers).toEqual([...numbers].sort((left, right) => left - right));
      }
    }
  }

  describe.each(Object.entries(FAULTS))("one broker is %s", (_, fault) => {
    it("the other's messages all go meanwhile, and afterwards everything is sent in order", async () => {
      makeRelay({}, {});
      await relay.start();
      await offer(() => true);
      await expect
        .poll(() => totalSent("bad.orders", "bad.stock"), SOON)
        .toBe(totalInserted("bad.orders", "bad.stock"));
      const { retries: before } = await attempts();

      await fault.begin(proxy);
      await offer(fault.isMet);
      const bad = totalInserted("bad.orders", "bad.stock");
      expect(totalSent("bad.orders", "bad.stock")).toBeLessThan(bad);
      await fault.end(proxy);
      await expect.poll(() => totalSent("bad.orders", "bad.stock"), SOON).toBe(bad);

      await expect.poll(() => database.states(), SOON).toEqual({ [SENT]: bad + (inserted["good"] ?? 0) });
      expect(arrived(receivers.bad)).toHaveLength(bad);
      expect(arrived(receivers.good)).toHaveLength(inserted["good"] ?? 0);
      expectOrder(arrived(receivers.bad));
      expectOrder(arrived(receivers.good));
      const { retries, claims } = await attempts();
      expect(claims - retries).toBe(bad + (inserted["good"] ?? 0));
      if (fault.uncounted) expect(retries).toBe(before);
    }, 180_000);
  });

  /** How many good ones go while a broker is refused? The clock stands still: it is not probed. */
  async function goodOnesWhileAway(change: Partial<Broker>): Promise<number> {
    makeRelay(change, { clock: createManualClock(), drainTimeoutMs: 0 });
    await FAULTS["refused"]?.begin(proxy);
    await insertBursts(["bad.orders"]);
    while (told.away === 0) await relay.tick();
    await insertBursts(["good"]);
    for (let tick = 0; tick < 5; tick += 1) await relay.tick();
    return sent["good"] ?? 0;
  }

  it("a broker that is away keeps nothing of the other's waiting", async () => {
    expect(await goodOnesWhileAway({})).toBe(BURST);
  });

  it("guard removed: to a relay that sees one broker, one that is away keeps everything waiting", async () => {
    expect(await goodOnesWhileAway({ routes: undefined })).toBe(0);
  });
}
