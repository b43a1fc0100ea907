/** What a relay says of itself is in the table as soon as its broker goes away or comes back. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import type { RelayStatus } from "../../src/relay/store.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const REFUSED: PublishResult = {
  ...{ status: "failed", scope: "connection", retriable: true, code: "ECONNREFUSED", reason: "nobody there" },
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
