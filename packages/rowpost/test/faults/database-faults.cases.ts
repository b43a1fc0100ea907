/**
 * The connection to the database is cut, refused, or goes silent while a batch is between the
 * broker and the table. The relay keeps the outcomes, connects again by itself, and publishes
 * nothing twice that it can avoid.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import type { FaultPoint } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/tcp-proxy.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";

const SENT = 2;

/** Defines the cases for one server. */
export function defineDatabaseFaultCases(service: "mariadb" | "postgres"): void {
  let database: RelayTestDatabase;
  let proxy: TcpProxy;
  let through: Database;
  let relay: Relay | undefined;

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    const url = new URL(database.url);
    proxy = await createTcpProxy({ target: { host: url.hostname, port: Number(url.port) } });
    url.host = `127.0.0.1:${proxy.port}`;
    through = service === "postgres" ? postgres({ url: url.href }) : mysql({ url: url.href });
  });
  afterEach(async () => {
    await proxy.accept();
    await relay?.stop();
    await through.close();
    await proxy.close();
    await database.drop();
  });

  /**
   * Sends ten messages and lets the fault happen when `point` is first reached. Resolves when all
   * are recorded as sent.
   */
  async function sendWithFault(
    point: FaultPoint,
    fault: () => void | Promise<void>,
    options: { readonly leaseMs?: number } = {},
  ) {
    const broker = memory();
    let happened = false;
    const made = createRelay({
      database: through,
      broker,
      leaseMs: options.leaseMs ?? 20_000,
      publishTimeoutMs: 1_000,
      onFaultPoint: async (reached) => {
        if (happened || reached !== point) return;
        happened = true;
        await fault();
      },
    });
    relay = made;
    const away = new Promise<void>((resolve) => made.on("databaseAway", () => resolve()));
    await database.insert(
      Array.from({ length: 10 }, (_, index) => ({ key: String(index), orderingKey: `k${index % 2}` })),
    );
    await made.start();
    // A cut that the next statement mends at once is no outage, and no event.
    await Promise.race([away, untilSent(10)]);
    proxy.unmute();
    await proxy.accept();
    await untilSent(10);
    return { broker, relay: made };
  }

  async function untilSent(count: number): Promise<void> {
    for (;;) {
      const states = await database.states();
      if (states[SENT] === count) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  describe("between the receipt and its record", () => {
    it("a cut connection and a database that refuses for a while: nothing is published twice", async () => {
      const { broker, relay: made } = await sendWithFault("beforeSettle", async () => {
        await proxy.refuse();
        await proxy.cut();
      });
      expect(
        broker
          .published()
          .map(({ key }) => key)
          .sort(),
      ).toEqual(Array.from({ length: 10 }, (_, index) => String(index)));
      expect(made.counts).toMatchObject({ fenced: 0, outcomesLost: 0 });
    });

    it("a silent connection: the settle times out, is written again, and nothing is published twice", async () => {
      const { broker } = await sendWithFault("beforeSettle", () => proxy.mute(), { leaseMs: 4_000 });
      expect(broker.published()).toHaveLength(10);
    });
  });

  it("a relay that loses its lease session publishes nothing before it has another one (rule: session-lock)", async () => {
    const broker = memory();
    const made = createRelay({
      database: through,
      broker,
      leaseMs: 20_000,
      publishTimeoutMs: 1_000,
      onFaultPoint: async (reached) => {
        if (reached === "beforeSettle") settling();
        if (reached === "heartbeat" && isCut) heartbeat();
        if (reached !== "beforePublish" || happened) return;
        happened = true;
        await proxy.refuse();
        await proxy.cut();
        isCut = true;
        await knows;
      },
    });
    let happened = false;
    let isCut = false;
    let settling = (): void => {};
    relay = made;
    // The second heartbeat since: the first has failed, so the relay knows of its lease session,
    // and not only of one of the others that were cut with it.
    let heartbeats = 0;
    let heartbeat = (): void => {};
    const knows = new Promise<void>((resolve) => {
      heartbeat = () => {
        heartbeats += 1;
        if (heartbeats === 2) resolve();
      };
    });
    // What was claimed is written back, or its receipt is.
    const settles = new Promise<void>((resolve) => {
      settling = resolve;
    });
    await database.insert([{ key: "1" }]);
    await made.start();
    await settles;
    expect(broker.published()).toEqual([]);
    await proxy.accept();
    await untilSent(1);
    expect(broker.published()).toHaveLength(1);
    expect(made.counts).toMatchObject({ returned: 1, fenced: 0, outcomesLost: 0 });
  });

  it("a cut while the claim is under way: whatever became of it, every message is sent, and in order", async () => {
    const { broker } = await sendWithFault("beforeClaim", () => proxy.cut());
    for (const orderingKey of ["k0", "k1"]) {
      const keys = broker
        .published()
        .filter((message) => message.orderingKey === orderingKey)
        .map(({ key }) => Number(key));
      expect(keys).toEqual([...keys].sort((left, right) => left - right));
    }
    expect(new Set(broker.published().map(({ key }) => key)).size).toBe(10);
  });
}
