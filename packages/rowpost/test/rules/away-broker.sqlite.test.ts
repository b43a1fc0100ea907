/**
 * Rows of a broker that is away, while another works: nobody reads or writes them, and they go as
 * soon as it answers (rule: isolation).
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { memory } from "../../src/brokers/memory.ts";
import { routes } from "../../src/brokers/routes.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createManualClock, type ManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";

const SENT = 2;
const MESSAGES = 600;
const REFUSED: PublishResult = {
  status: "failed",
  scope: "connection",
  retriable: true,
  code: "ECONNREFUSED",
  reason: "nobody there",
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
      key: String(index),
      topic: "bad",
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

/** How often rows of the topic were written, all together. */
async function writes(): Promise<number> {
  const [row] = await database.sql("SELECT SUM(lock_version) AS n FROM local_message WHERE topic = 'bad'");
  return Number(row?.["n"]);
}

it("costs no write while it is away but for its probes, and the others' messages go at once", async () => {
  await ticks(10, 100);
  const before = await writes();
  await database.insert([{ key: "good", topic: "good" }]);
  // The table is asked for new topics five times a second, and a round that probes takes no other.
  let sent = 0;
  for (let tick = 0; sent === 0 && tick < 5; tick += 1) {
    await clock.advance(200);
    sent += (await relay.tick()).sent;
  }
  expect(sent).toBe(1);
  await ticks(50, 1_000);
  // A probe is claimed and given back: two writes, at most once a second.
  expect((await writes()) - before).toBeLessThanOrEqual(2 * 56);
});

it("all go when it answers, each key in its order, no attempt counted", async () => {
  await ticks(60, 1_000);
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
  for (let tick = 0; tick < 20; tick += 1) {
    expect((await relay.tick()).exhausted).toBe(false);
    await clock.advance(100);
  }
});
