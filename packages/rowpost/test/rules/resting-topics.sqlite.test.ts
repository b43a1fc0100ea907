/**
 * Topics that rest: each for its own time. A broker may name hours for one of them, or for one
 * message.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createManualClock, type ManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";

const HOUR_MS = 3_600_000;
const PENDING = 0;
/** By default. */
const MAX_ATTEMPTS = 16;
const SENT = 2;
const FAILED = 3;

let database: RelayTestDatabase;
let clock: ManualClock;
let relay: Relay;
let answers: Record<string, PublishResult | undefined>;

beforeEach(async () => {
  database = await createRelayDatabase("sqlite");
  clock = createManualClock();
  answers = {};
  const broker = memory({ outcome: ({ topic, key }) => answers[key] ?? answers[topic] });
  relay = createRelay({ database: database.connect(), clock, broker, logger: "silent" });
});
afterEach(async () => {
  await relay.stop();
  await database.drop();
});

function refused(scope: "destination" | "message", retryAfterMs?: number): PublishResult {
  return { status: "failed", scope, retriable: true, code: "HTTP_503", reason: "not now", retryAfterMs };
}

async function waiting(topic: string, longerThanSeconds: number): Promise<number> {
  const rows = await database.sql(
    `SELECT COUNT(*) AS n FROM local_message WHERE state = ${PENDING} AND topic = '${topic}'
      AND next_retry_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '+${longerThanSeconds} seconds')`,
  );
  return Number(rows[0]?.["n"]);
}

it("a topic rests for its own time, and its waiting rows are not written meanwhile", async () => {
  answers = { throttled: refused("destination", HOUR_MS), hiccup: refused("destination") };
  await database.insert(
    Array.from({ length: 400 }, (_, index) => ({
      key: String(index),
      topic: index % 2 === 0 ? "throttled" : "hiccup",
    })),
  );
  await relay.tick();
  const versions = "SELECT id, lock_version FROM local_message WHERE topic = 'throttled' ORDER BY id";
  const before = await database.sql(versions);
  answers = { throttled: refused("destination", HOUR_MS) };
  // A probe of the other topic finds out that it works; then its rows go.
  for (let tick = 0; tick < 20; tick += 1) {
    await clock.advance(1_000);
    // What was refused comes due by the server's clock, which the test does not turn.
    await database.sql("UPDATE local_message SET next_retry_at = NULL WHERE topic = 'hiccup' AND state = 0");
    await relay.tick();
  }
  expect(await database.sql("SELECT DISTINCT state FROM local_message WHERE topic = 'hiccup'")).toEqual([
    { state: SENT },
  ]);
  expect(await database.sql(versions)).toEqual(before);
});

it("a time that was named for one message holds up no other message of its topic", async () => {
  answers = { slow: refused("message", 24 * HOUR_MS) };
  await database.insert([{ key: "slow", topic: "orders" }]);
  await relay.tick();
  expect(await waiting("orders", 23 * 3_600)).toBe(1);
  await database.insert([{ key: "next", topic: "orders" }]);
  await clock.advance(1_000);
  await relay.tick();
  expect(await database.states()).toEqual({ [PENDING]: 1, [SENT]: 1 });
});

const absent = (kind: "away" | "missing"): PublishResult => ({
  ...({ status: "failed", scope: "message", retriable: true, code: "HTTP_502", reason: "bad gateway" } as const),
  absent: kind,
});

/** What was given back comes due by the server's clock, which the test does not turn. */
async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) {
    await clock.advance(31_000);
    await database.sql("UPDATE local_message SET next_retry_at = NULL WHERE state = 0");
    await relay.tick();
  }
}

it("a gateway whose service is away for an hour fails no message, and costs no attempt", async () => {
  answers = { orders: absent("away") };
  await database.insert([{ key: "1", topic: "orders" }]);
  await ticks(120);
  expect(await database.sql("SELECT state, retry_count FROM local_message")).toEqual([
    { state: PENDING, retry_count: 0 },
  ]);
  answers = {};
  await ticks(1);
  expect(await database.states()).toEqual({ [SENT]: 1 });
});

it("a message that a gateway answers so while others of its topic go uses up its attempts", async () => {
  answers = { poison: absent("away") };
  await database.insert([{ key: "poison", topic: "orders" }]);
  for (let tick = 0; tick < 30; tick += 1) {
    await database.insert([{ key: String(tick), topic: "orders" }]);
    await ticks(2);
  }
  expect(await database.states()).toEqual({ [FAILED]: 1, [SENT]: 30 });
});

it("what is missing is waited for during a deployment, then failed; and its slow retry begins when it is there", async () => {
  answers = { orders: absent("missing") };
  await database.insert([{ key: "1", topic: "orders" }]);
  await ticks(9);
  const tries = "SELECT state, retry_count FROM local_message WHERE message_key = '1'";
  expect(await database.sql(tries)).toEqual([{ state: PENDING, retry_count: 0 }]);
  await ticks(20);
  expect(await database.sql(tries)).toEqual([{ state: FAILED, retry_count: MAX_ATTEMPTS }]);
  answers = {};
  await database.insert([{ key: "2", topic: "orders" }]);
  await ticks(2);
  // Due at once by the server's clock; the leader's housekeeping sends it again.
  await vi.waitUntil(async () => {
    await ticks(1);
    return (await database.states())[SENT] === 2;
  });
});

it("many messages that fail for one cause are a few lines of the log", async () => {
  await relay.stop();
  const lines: string[] = [];
  const add = (message: string) => void lines.push(message);
  const logger = { debug() {}, info() {}, warn: add, error: add };
  const outcome = (): PublishResult => ({ ...refused("message"), retriable: false }) as PublishResult;
  relay = createRelay({ database: database.connect(), broker: memory({ outcome }), logger });
  await database.insert(Array.from({ length: 300 }, (_, index) => ({ key: String(index), topic: "orders" })));
  for (let tick = 0; tick < 8; tick += 1) await relay.tick();
  expect(await database.states()).toEqual({ [FAILED]: 300 });
  expect(lines.filter((line) => line === "a message failed")).toHaveLength(5);
});
