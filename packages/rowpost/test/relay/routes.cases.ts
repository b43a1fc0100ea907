/**
 * Two real brokers behind routes, one of them refused, silent or slow: the other's messages go on as before, and the broken one's are
 * all sent afterwards, in order, at full speed at once.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { http } from "../../src/brokers/http.ts";
import { routes } from "../../src/brokers/routes.ts";
import { createRelay, type Relay } from "../../src/outbox/relay.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/tcp-proxy.ts";
import { type HttpReceiver, startHttpReceiver } from "../brokers/http-receiver.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const SENT = 2;
/** Messages for each topic, every {@link EVERY_MS}: so few that a machine with much else to do relays them at once as well. */
const BURST = 5;
const EVERY_MS = 100;
const WINDOW_MS = 2_000;
/** A machine that stood still at the end of the window has this long to catch up; shorter than any stop that a fault could cause. */
const MOMENT_MS = 1_000;
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
  },
  // Longer than the publish timeout: the outcome of what was handed over is unknown.
  silent: { begin: (proxy) => proxy.mute(), end: (proxy) => proxy.unmute(), uncounted: false },
  // So slow that its messages of one answer's time are more than a window holds.
  slow: {
    begin(proxy) {
      proxy.delayMs = 800;
    },
    end(proxy) {
      proxy.delayMs = 0;
    },
    uncounted: false,
  },
};

/** Defines the cases. */
export function defineRoutesCases(service: RelayTestService): void {
  let database: RelayTestDatabase;
  let receivers: { readonly bad: HttpReceiver; readonly good: HttpReceiver };
  let proxy: TcpProxy;
  let relay: Relay;
  let startRelay: (change?: Partial<Broker>) => Promise<void>;
  let closeBroker: () => Promise<void>;
  let sent: Record<string, number>;
  let inserted: Record<string, number>;

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    receivers = { bad: await startHttpReceiver(), good: await startHttpReceiver() };
    proxy = await createTcpProxy({ target: { port: receivers.bad.port } });
    const broker = routes(
      { "bad.*": http({ url: `http://127.0.0.1:${proxy.port}/` }) },
      { otherwise: http({ url: receivers.good.url }) },
    );
    closeBroker = () => broker.close();
    sent = { "bad.orders": 0, "bad.stock": 0, good: 0 };
    inserted = { ...sent };
    startRelay = async (change = {}) => {
      relay = createRelay({
        ...{ database: database.connect(), broker: { ...broker, ...change }, publishTimeoutMs: PUBLISH_TIMEOUT_MS },
        ...{ batchSize: WINDOW_SIZE / 2, windowSize: WINDOW_SIZE },
      });
      relay.on("sent", ({ message: { topic } }) => {
        sent[topic] = (sent[topic] ?? 0) + 1;
      });
      await relay.start();
    };
  });

  afterEach(async () => {
    proxy.unmute();
    await proxy.accept();
    await relay.stop();
    await closeBroker();
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

  /** Inserts messages for a while. Returns the share of the good broker's messages of that time that were sent a moment after its end. */
  async function offer(): Promise<number> {
    const before = { sent: sent["good"] ?? 0, inserted: inserted["good"] ?? 0 };
    const startMs = performance.now();
    for (let turn = 1; performance.now() < startMs + WINDOW_MS; turn += 1) {
      for (const topic of TOPICS) {
        const from = inserted[topic] ?? 0;
        await database.insert(burst(topic, from));
        inserted[topic] = from + BURST;
      }
      const restMs = startMs + turn * EVERY_MS - performance.now();
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
    }
    await new Promise((resolve) => setTimeout(resolve, MOMENT_MS));
    return ((sent["good"] ?? 0) - before.sent) / ((inserted["good"] ?? 0) - before.inserted);
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

  /** Keys in the order in which they first arrived. */
  function arrived(receiver: HttpReceiver): string[] {
    return [...new Set(receiver.requests.map(({ headers }) => String(headers["rowpost-key"])))];
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

  describe.each(Object.entries(FAULTS))("one broker is %s", (what, fault) => {
    it("the other goes on at its rate, and afterwards everything is sent in order", async () => {
      await startRelay();
      // The same messages for the same machine, and both brokers well.
      const usual = await offer();
      await expect
        .poll(() => totalSent("bad.orders", "bad.stock"), SOON)
        .toBe(totalInserted("bad.orders", "bad.stock"));
      const { retries: before } = await attempts();

      await fault.begin(proxy);
      const beside = await offer();
      const sentMeanwhile = totalSent("bad.orders", "bad.stock");
      const bad = totalInserted("bad.orders", "bad.stock");

      const endMs = performance.now();
      await fault.end(proxy);
      await expect.poll(() => totalSent("bad.orders", "bad.stock"), SOON).toBe(bad);
      const recoveredMs = performance.now() - endMs;
      console.info(
        `${service}, ${what}: sent at once: usually ${usual.toFixed(3)}, beside it ${beside.toFixed(3)}; ${bad - sentMeanwhile} waiting ones sent within ${Math.round(recoveredMs)} ms`,
      );
      expect(beside).toBeGreaterThanOrEqual(usual * 0.9);

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

  // What the guard keeps apart does not depend on the database.
  if (service !== "mariadb") return;
  it.each(Object.entries(FAULTS))(
    "guard removed: to a relay that sees one broker, one that is %s stops both",
    async (_, fault) => {
      await startRelay({ routes: undefined });
      const usual = await offer();
      await fault.begin(proxy);
      expect(await offer()).toBeLessThan(usual * 0.7);
      await fault.end(proxy);
    },
    60_000,
  );
}
