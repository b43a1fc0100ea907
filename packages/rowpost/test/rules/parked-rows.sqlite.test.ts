/** Rows of a broker that is away, while another works: parked for about as long as it has been away, and back at once when it answers (rule R12). */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { memory } from "../../src/brokers/memory.ts";
import { routes } from "../../src/brokers/routes.ts";
import { createRelay, type Relay } from "../../src/outbox/relay.ts";
import { createManualClock, type ManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";

const PENDING = 0;
const SENT = 2;
const MESSAGES = 600;
const REFUSED: PublishResult = {
  ...{ status: "failed", scope: "connection", retriable: true, code: "ECONNREFUSED", reason: "nobody there" },
};

let database: RelayTestDatabase;
let clock: ManualClock;
let relay: Relay;
let away: boolean;
let order: string[];

beforeEach(async () => {
  database = await createRelayDatabase("sqlite");
  clock = createManualClock();
  away = true;
  order = [];
  const bad = memory({
    outcome({ key }) {
      if (away) return REFUSED;
      order.push(key);
      return undefined;
    },
  });
  relay = createRelay({ database: database.connect(), clock, broker: routes({ bad }, { otherwise: memory() }) });
  await database.insert(
    Array.from({ length: MESSAGES }, (_, index) => ({
      ...{ key: String(index), topic: "bad" },
      ...(index % 2 === 0 ? {} : { orderingKey: `k${index % 7}` }),
    })),
  );
});
afterEach(async () => {
  await relay.stop();
  await database.drop();
});

async function ticks(count: number, ms: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) {
    await relay.tick();
    await clock.advance(ms);
  }
}

async function laterThan(seconds: number): Promise<number> {
  const rows = await database.sql(
    `SELECT COUNT(*) AS n FROM local_message WHERE state = ${PENDING} AND topic = 'bad'
      AND next_retry_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '+${seconds} seconds')`,
  );
  return Number(rows[0]?.["n"]);
}

/** Ticks until most of the messages are parked for longer than this. */
async function untilParked(seconds: number): Promise<void> {
  for (let tick = 0; (await laterThan(seconds)) < MESSAGES * 0.8; tick += 1) {
    if (tick === 100) throw new Error(`after ${tick} ticks ${await laterThan(seconds)} are parked for ${seconds} s`);
    await ticks(1, 100);
  }
}

/** The broker has been away for this long, and every park has ended. */
async function awayFor(ms: number): Promise<void> {
  await untilParked(0);
  await clock.advance(ms);
  await database.sql("UPDATE local_message SET next_retry_at = NULL, lock_version = lock_version + 1");
}

it("are parked longer the longer it is away, and leave the scans to others", async () => {
  await untilParked(0);
  expect(await laterThan(10)).toBe(0);
  await awayFor(30_000);
  await untilParked(20);
  await database.insert([{ key: "good", topic: "good" }]);
  expect(await relay.tick()).toMatchObject({ sent: 1 });
});

it("come forward at once when it answers, each key in its order, no attempt counted", async () => {
  await awayFor(50_000);
  await untilParked(30);
  away = false;
  // A probe is due within a second; from then on as fast as the rounds come.
  await ticks(40, 100);
  expect(await database.states()).toEqual({ [SENT]: MESSAGES });
  for (let key = 0; key < 7; key += 1) {
    const numbers = order.map(Number).filter((number) => number % 2 === 1 && number % 7 === key);
    expect(numbers).toEqual([...numbers].sort((left, right) => left - right));
  }
  const [row] = await database.sql(
    "SELECT SUM(retry_count) AS retries, SUM(delivery_count) AS claims FROM local_message",
  );
  expect([Number(row?.["retries"]), Number(row?.["claims"])]).toEqual([0, MESSAGES]);
});

it("a drain does not take them for sent", async () => {
  await untilParked(0);
  for (let tick = 0; tick < 20; tick += 1) {
    expect((await relay.tick()).exhausted).toBe(false);
    await clock.advance(100);
  }
});

it("what another relay has parked comes due by itself", async () => {
  await untilParked(0);
  await relay.stop();
  away = false;
  relay = createRelay({ database: database.connect(), broker: routes({ bad: memory() }) });
  await relay.start();
  await expect.poll(() => database.states(), { timeout: 15_000 }).toEqual({ [SENT]: MESSAGES });
});
