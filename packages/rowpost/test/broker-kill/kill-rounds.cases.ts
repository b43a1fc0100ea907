/**
 * The broker is taken away in the middle of a drain and comes back, round after round, on real
 * servers: with SIGKILL where the test has a server of its own, cut and refused by a TCP proxy
 * where the server is shared. What must hold is counted at a real consumer: no message is lost, the
 * first copies of an ordering key arrive in their order, copies are only of messages that were on
 * their way, and only those cost an attempt.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createRelayDatabase, type PlainMessage, type RelayTestDatabase } from "../relay/bench-database.ts";
import type { BrokerUnderTest } from "./broker-under-test.ts";

/**
 * 20 is what the project promises and what is run before a release, with 20,000 messages each; CI
 * has time for a small one.
 */
const ROUNDS = Number(process.env["ROWPOST_CRASH_ROUNDS"] ?? 1);
const MESSAGES = ROUNDS < 20 ? 5_000 : 20_000;
/** One in so many has an ordering key: brokers take the messages of a key one after the other. */
const KEYED_EVERY = 10;
const KEYS = 50;
const BATCH = 250;
/** Messages that can be on their way at once: what an outage may cost in attempts and copies. */
const WINDOW = 1_000;
/**
 * While the broker is not itself again the relay asks with one message at a time, less and less
 * often. Their outcome may be unknown as well.
 */
const PROBES = 50;
const PUBLISH_TIMEOUT_MS = 5_000;
/**
 * A server that is back at once is not missed by anybody: the relay must have time to notice, to
 * wait and to ask again.
 */
const AWAY_MS = 1_500;
const SENT = 2;
const DRAIN_WITHIN_MS = 90_000;

/** What the adapter was given and answered in one round. */
interface Ledger {
  sent: number;
  onTheWay: number;
  /** Failed messages by scope and code. */
  readonly failed: Map<string, number>;
}

/** One round, as far as the broker's part is over. */
interface Played {
  readonly database: RelayTestDatabase;
  readonly topics: readonly string[];
  readonly ledger: Ledger;
  readonly atOutage: { readonly sent: number; readonly onTheWay: number };
  readonly awayMs: number;
  readonly tookMs: number;
}

/**
 * Defines the rounds of one broker, on MariaDB and PostgreSQL in turn. `start` is called once,
 * before the first.
 */
export function defineKillRounds(title: string, start: () => Promise<BrokerUnderTest>): void {
  describe.sequential(`${title} in the middle of a drain`, () => {
    let target: BrokerUnderTest;
    beforeAll(async () => {
      target = await start();
    }, 120_000);
    afterAll(() => target?.close());

    const numbers = Array.from({ length: ROUNDS }, (_, index) => index + 1);
    it.each(numbers)(`round %i of ${ROUNDS}`, (number) => playRound(title, target, number), 240_000);
  });
}

async function playRound(title: string, target: BrokerUnderTest, number: number): Promise<void> {
  const name = `rowpost-kill-${process.pid}-${randomBytes(3).toString("hex")}`;
  const topics = { loose: `${name}-loose`, ordered: `${name}-ordered` };
  const service = number % 2 === 1 ? "mariadb" : "postgres";
  const database = await createRelayDatabase(service);
  try {
    await target.makeTopic(topics.loose, "loose");
    await target.makeTopic(topics.ordered, "ordered");
    const messages = messagesFor(topics);
    for (let from = 0; from < MESSAGES; from += 1_000) await database.insert(messages.slice(from, from + 1_000));
    const played = await drainThroughOutage(target, database, Object.values(topics));
    await judge(`${title}, round ${number} on ${service}`, target, played);
  } finally {
    await database.drop();
    for (const topic of Object.values(topics)) await target.removeTopic(topic);
  }
}

function messagesFor(topics: { readonly loose: string; readonly ordered: string }): PlainMessage[] {
  return Array.from({ length: MESSAGES }, (_, number) =>
    number % KEYED_EVERY === 0
      ? { key: String(number), topic: topics.ordered, orderingKey: customerOf(number) }
      : { key: String(number), topic: topics.loose },
  );
}

/** Ordering key of a message in the ordered topic. */
function customerOf(number: number): string {
  return `customer ${(number / KEYED_EVERY) % KEYS}`;
}

/**
 * Starts a relay on the waiting rows, takes the broker away once, and returns when every row is
 * sent.
 */
async function drainThroughOutage(
  target: BrokerUnderTest,
  database: RelayTestDatabase,
  topics: readonly string[],
): Promise<Played> {
  const adapter = target.createBroker();
  await adapter.check();
  const ledger: Ledger = { sent: 0, onTheWay: 0, failed: new Map() };
  const outageAfter = Math.floor(MESSAGES * (0.1 + 0.6 * Math.random()));
  let begin: () => void = () => undefined;
  const outage = new Promise<void>((resolve) => {
    // Before, while or after the broker stores the batch that was just handed over.
    begin = () => setTimeout(resolve, 5 * Math.random());
  }).then(async () => {
    const atOutage = { sent: ledger.sent, onTheWay: ledger.onTheWay };
    const goneMs = performance.now();
    await target.takeAway();
    await delay(AWAY_MS);
    await target.bringBack();
    return { atOutage, awayMs: performance.now() - goneMs };
  });
  const broker = overheard(adapter, ledger, () => {
    if (ledger.sent >= outageAfter) begin();
  });
  const options = { batchSize: BATCH, windowSize: WINDOW, publishTimeoutMs: PUBLISH_TIMEOUT_MS };
  const relay = createRelay({ database: database.connect(), broker, ...options });
  try {
    const startedMs = performance.now();
    await relay.start();
    const { atOutage, awayMs } = await outage;
    await untilAllSent(database, ledger);
    return { database, topics, ledger, atOutage, awayMs, tookMs: performance.now() - startedMs };
  } finally {
    await relay.stop();
    await adapter.close();
  }
}

async function untilAllSent(database: RelayTestDatabase, ledger: Ledger): Promise<void> {
  const end = performance.now() + DRAIN_WITHIN_MS;
  for (;;) {
    const { [SENT]: sent = 0 } = await database.states();
    if (sent === MESSAGES) return;
    if (performance.now() > end) break;
    await delay(50);
  }
  const rows = await database.sql(
    `SELECT topic, state, COUNT(*) AS n, MAX(retry_count) AS retries, MIN(next_retry_at) AS next, MIN(fail_reason) AS reason
     FROM local_message WHERE state <> ${SENT} GROUP BY topic, state`,
  );
  throw new Error(`not all sent after ${DRAIN_WITHIN_MS} ms: ${JSON.stringify({ rows, failed: [...ledger.failed] })}`);
}

/**
 * The same broker with everything that goes in and out written down; `onHandedOver` runs right
 * after a batch was handed to it.
 */
function overheard(broker: Broker, ledger: Ledger, onHandedOver: () => void): Broker {
  return {
    name: broker.name,
    features: broker.features,
    async publish(batch, options) {
      ledger.onTheWay += batch.length;
      const answer = broker.publish(batch, options);
      onHandedOver();
      const results = await answer;
      ledger.onTheWay -= batch.length;
      for (const result of results) {
        if (result.status === "sent") ledger.sent += 1;
        if (result.status !== "failed") continue;
        const failure = `${result.scope} ${result.code}`;
        ledger.failed.set(failure, (ledger.failed.get(failure) ?? 0) + 1);
      }
      return results;
    },
    check: () => broker.check(),
    close: () => broker.close(),
  };
}

async function judge(round: string, target: BrokerUnderTest, played: Played): Promise<void> {
  const { database, ledger, atOutage } = played;
  const readFromMs = performance.now();
  const arrived = (await Promise.all(played.topics.map((topic) => target.readAll(topic)))).flat().map(Number);
  const readMs = performance.now() - readFromMs;
  const first = [...new Set(arrived)];
  const here = new Set(first);
  const lost = Array.from({ length: MESSAGES }, (_, number) => number).filter((number) => !here.has(number));
  const copies = arrived.length - first.length;
  const unsure = failures(ledger, "unknown");
  const [row] = await database.sql(
    "SELECT SUM(retry_count) AS retries, SUM(delivery_count - retry_count) AS sends FROM local_message",
  );
  const retries = Number(row?.["retries"]);
  console.info(
    `${round}: ${MESSAGES} messages in ${seconds(played.tookMs)}, taken away for ${seconds(played.awayMs)} with ${atOutage.sent} sent and ` +
      `${atOutage.onTheWay} on their way; lost ${lost.length}, reordered ${reordered(first)}, copies ${copies}, attempts counted ${retries}, read in ${seconds(readMs)}; failures: ` +
      ([...ledger.failed].map(([failure, count]) => `${count} x ${failure}`).join(", ") || "none"),
  );
  expect(lost).toEqual([]);
  expect(first).toHaveLength(MESSAGES);
  expect(reordered(first)).toBe(0);
  // It was in the middle of it, and it was noticed.
  expect(atOutage.sent).toBeLessThan(MESSAGES);
  expect(ledger.failed.size).toBeGreaterThan(0);
  // A copy is a message whose first attempt had no answer; only such attempts count, and only what
  // was on its way can be one.
  expect(copies).toBeLessThanOrEqual(target.keepsCopies ? unsure : 0);
  // Each of its two topics has a window.
  expect(unsure).toBeLessThanOrEqual(2 * WINDOW + PROBES);
  expect(failures(ledger, "message")).toBe(0);
  expect(retries).toBe(unsure);
  expect(Number(row?.["sends"])).toBe(MESSAGES);
}

function failures(ledger: Ledger, scope: string): number {
  return [...ledger.failed].reduce((sum, [failure, count]) => sum + (failure.startsWith(`${scope} `) ? count : 0), 0);
}

/** How many messages of the ordered topic came after a later one of their key. */
function reordered(first: readonly number[]): number {
  const last = new Map<string, number>();
  let count = 0;
  for (const number of first) {
    if (number % KEYED_EVERY !== 0) continue;
    const customer = customerOf(number);
    if (number < (last.get(customer) ?? -1)) count += 1;
    last.set(customer, number);
  }
  return count;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
