/** What a relay says of itself is in the table as soon as its broker goes away or comes back. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { http } from "../../src/brokers/http.ts";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import type { RelayStatus } from "../../src/relay/store.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const REFUSED: PublishResult = {
  status: "failed",
  scope: "connection",
  retriable: true,
  code: "ECONNREFUSED",
  reason: "nobody there",
};

/** Defines the cases. */
export function defineSelfReportCases(service: RelayTestService): void {
  const clock = createManualClock();
  let database: RelayTestDatabase;
  let relay: Relay;
  let isAway: boolean;

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    isAway = true;
    const broker = memory({ outcome: () => (isAway ? REFUSED : undefined) });
    relay = createRelay({ database: database.connect(), broker, clock, logger: "silent" });
  });
  afterEach(async () => {
    await relay.stop();
    await database.drop();
  });

  async function seen(): Promise<RelayStatus> {
    const own = database.connect();
    const admin = own.messageAdmin({ layout: own.defaultLayout });
    const [instance] = (await admin.status()).instances;
    await admin.close();
    if (instance === undefined) throw new Error("no relay has reported itself");
    return instance;
  }

  it("is there from its first round, and rewritten every ten seconds and no sooner", async () => {
    await relay.tick();
    const { label, report } = await seen();
    expect(label).toMatch(new RegExp(`^\\S+:${process.pid}$`));
    expect(report?.brokers).toEqual([{ name: "memory" }]);
    expect(report?.shards).toHaveLength(service === "sqlite" ? 1 : 16);
    await database.sql("UPDATE local_message_relay SET report = NULL");
    await clock.advance(9_000);
    await relay.tick();
    expect((await seen()).report).toBeUndefined();
    await clock.advance(1_000);
    await relay.tick();
    expect((await seen()).report).toBeDefined();
  });

  it("warns at its start of another relay that sends elsewhere, and of none that sends to the same place", async () => {
    await relay.tick();
    const warned: unknown[] = [];
    const warn = (line: string, fields?: object): void => {
      if (line.includes("sends them elsewhere")) warned.push(fields);
    };
    const logger = { debug: () => {}, info: () => {}, warn, error: warn };
    const same = createRelay({ database: database.connect(), broker: memory(), clock, logger });
    await same.tick();
    expect(warned).toEqual([]);
    const broker = http({ url: "http://ann:secret@127.0.0.1:9/hook?key=secret" });
    const other = createRelay({ database: database.connect(), broker, clock, logger });
    await other.tick();
    const elsewhere = {
      relay: expect.stringMatching(/:\d+$/),
      sendsTo: expect.stringMatching(/^memory at /),
      here: "http at http://127.0.0.1:9/hook",
    };
    expect(warned).toEqual([elsewhere, elsewhere]);
    await Promise.all([same.stop(), other.stop()]);
    await broker.close();
  });

  it("says at once that the broker is away and why, and at once that it is back", async () => {
    await relay.tick();
    await database.insert([{ key: "1" }]);
    await clock.advance(1_000);
    await relay.tick();
    expect((await seen()).report).toMatchObject({
      brokers: [{ name: "memory", reason: "ECONNREFUSED: nobody there", awayForMs: expect.any(Number) as number }],
      lastError: { what: "broker memory: ECONNREFUSED: nobody there" },
    });
    isAway = false;
    await clock.advance(1_000);
    await relay.tick();
    expect((await seen()).report?.brokers).toEqual([{ name: "memory" }]);
    expect(relay.counts.sent).toBe(1);
  });
}
