/**
 * The clock of the database is set back by three hours. Nobody may set that of the test's server,
 * so the relay's monotonic clock goes on by three hours instead, which is the same to it, and the
 * rows are as they are after such a step.
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const STEP_MS = 3 * 3_600_000;
const LINE = "the database's clock was set back";
const nothing = (): void => undefined;

const IN_TWO_HOURS: Readonly<Record<"mysql" | "postgres" | "sqlite", string>> = {
  mysql: "UTC_TIMESTAMP(3) + INTERVAL 2 HOUR",
  postgres: "now() + interval '2 hours'",
  sqlite: "strftime('%Y-%m-%d %H:%M:%f', 'now', '+2 hours')",
};

export function defineSteppedClockCases(service: RelayTestService): void {
  let table: RelayTestDatabase;
  beforeEach(async () => {
    table = await createRelayDatabase(service);
  });
  afterEach(() => table.drop());

  it("brings forward what has failed, once, and leaves what is delayed", async () => {
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    const told: (object | undefined)[] = [];
    const warn = (line: string, fields?: object): void => void (line === LINE && told.push(fields));
    const broker = memory();
    const relay = createRelay({
      database: table.connect(),
      broker,
      clock,
      housekeepingMs: 10,
      logger: { debug: nothing, info: nothing, warn, error: nothing },
    });
    const turns = async (): Promise<void> => {
      for (let turn = 0; turn < 6; turn += 1) await relay.tick();
    };
    const later = IN_TWO_HOURS[service === "postgres" || service === "sqlite" ? service : "mysql"];
    await turns();
    await table.insert([{ key: "failed" }, { key: "delayed" }, { key: "failed and delayed" }]);
    await table.sql(
      `UPDATE local_message SET next_retry_at = ${later}, deliver_at = CASE WHEN message_key = 'failed' THEN NULL ELSE ${later} END,
  retry_count = CASE WHEN message_key = 'delayed' THEN 0 ELSE 3 END`,
    );
    await turns();
    expect(broker.published()).toEqual([]);
    aheadMs += STEP_MS;
    await turns();
    // A smaller one: there is nothing left to bring.
    aheadMs += 20_000;
    await turns();
    await relay.stop();
    expect(broker.published().map(({ key }) => key)).toEqual(["failed"]);
    expect(told).toMatchObject([{ broughtForward: 1 }, { broughtForward: 0 }]);
  });
}
