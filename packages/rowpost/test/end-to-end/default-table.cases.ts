/**
 * The default table to a real RocketMQ: order per key at the consumer, messages that cannot go,
 * topics that are missing, and an outage.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { rocketmq } from "../../src/brokers/rocketmq/index.ts";
import type { RelayOptions } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/tcp-proxy.ts";
import {
  type ConsumedMessage,
  createOfficialReader,
  createTopic,
  deleteTopic,
  type Reader,
  type ServerAddress,
  serverAddress,
  uniqueName,
} from "../brokers/rocketmq-server.ts";
import { createRelayDatabase, type PlainMessage, type RelayTestDatabase } from "../relay/bench-database.ts";
import { testService } from "../services.ts";
import { createOrderlyReader, type OrderlyReader } from "./orderly-reader.ts";

const PENDING = 0;
const SENDING = 1;
const SENT = 2;
const FAILED = 3;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** What is really held. */
function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const SOON = { timeout: 30_000, interval: 50 };

/** Defines the tests for one server; RocketMQ must be there as well. */
export function defineDefaultTableCases(service: "mariadb" | "postgres"): void {
  const server: ServerAddress = serverAddress(testService("rocketmq").address);
  const topics = { orders: uniqueName("orders"), ledger: uniqueName("ledger"), outage: uniqueName("outage") };
  const soon = uniqueName("soon");
  let reader: Reader;
  let orderly: OrderlyReader;
  let proxy: TcpProxy;
  let database: RelayTestDatabase;
  const relays: Relay[] = [];
  const brokers: Broker[] = [];
  let publishCalls = 0;

  beforeAll(async () => {
    for (const topic of [topics.orders, topics.outage]) await createTopic(server, topic);
    await createTopic(server, topics.ledger, "FIFO");
    [reader, orderly, proxy] = await Promise.all([
      createOfficialReader(server, [topics.orders, topics.outage]),
      createOrderlyReader(server, topics.ledger),
      createTcpProxy({ target: { port: server.port } }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([reader?.close(), orderly?.close(), proxy?.close()]);
    for (const topic of [...Object.values(topics), soon]) await deleteTopic(server, topic);
  });
  beforeEach(async () => {
    database = await createRelayDatabase(service);
  });
  afterEach(async () => {
    await proxy.accept();
    for (const relay of relays.splice(0)) await relay.stop();
    for (const broker of brokers.splice(0)) await broker.close();
    await database.drop();
  });

  function makeRelay(options: Partial<RelayOptions> = {}): Relay {
    const broker = rocketmq({ endpoints: `127.0.0.1:${proxy.port}`, onWarning: () => undefined });
    const counting: Broker = {
      ...broker,
      publish(batch, publishing) {
        publishCalls += 1;
        return broker.publish(batch, publishing);
      },
    };
    const relay = createRelay({ database: database.connect(), broker: counting, ...options });
    brokers.push(broker);
    relays.push(relay);
    return relay;
  }

  const keyOf = ({ properties }: ConsumedMessage): string => properties.get("rowpost-key") ?? "";

  function unkeyed(count: number, prefix: string, topic: string, body = '{"n":1}'): PlainMessage[] {
    return Array.from({ length: count }, (_, index) => ({ key: `${prefix}-${index}`, topic, body }));
  }

  /** Inserts in statements of 1,000. */
  async function insertAll(messages: readonly PlainMessage[]): Promise<void> {
    for (let from = 0; from < messages.length; from += 1_000) await database.insert(messages.slice(from, from + 1_000));
  }

  async function sum(expression: string, condition = "1 = 1"): Promise<number> {
    const [row] = await database.sql(`SELECT SUM(${expression}) AS n FROM local_message WHERE ${condition}`);
    return Number(row?.["n"] ?? 0);
  }

  test("2,000 messages, half of them in order: none lost, none twice, each key in its order at the consumer", async () => {
    const KEYS = 25;
    const messages = Array.from({ length: 2_000 }, (_, index) =>
      index % 2 === 0
        ? { key: `mixed-${index}`, topic: topics.orders }
        : { key: `mixed-${index}`, topic: topics.ledger, orderingKey: `customer ${(index >> 1) % KEYS}` },
    );
    const relay = makeRelay();
    await relay.start();
    // While it runs, so that keys are spread over many batches.
    for (let from = 0; from < messages.length; from += 200) await database.insert(messages.slice(from, from + 200));
    const numberOf = ({ key }: { readonly key: string }): number => Number(key.slice("mixed-".length));
    await expect.poll(() => orderly.arrived.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(1_000);
    const loose = await reader.waitFor(topics.orders, (all) => all.length >= 1_000);
    expect(loose.map((message) => numberOf({ key: keyOf(message) })).sort((left, right) => left - right)).toEqual(
      Array.from({ length: 1_000 }, (_, index) => 2 * index),
    );
    expect(orderly.arrived).toHaveLength(1_000);
    for (let key = 0; key < KEYS; key += 1) {
      const group = `customer ${key}`;
      const numbers = orderly.arrived.filter((message) => message.group === group).map(numberOf);
      expect(numbers, group).toEqual(Array.from({ length: 1_000 / KEYS }, (_, index) => 2 * (index * KEYS + key) + 1));
    }
    await expect.poll(() => database.states(), SOON).toEqual({ [SENT]: 2_000 });
    expect(await sum("retry_count")).toBe(0);
    expect(await sum("delivery_count")).toBe(2_000);
    const [row] = await database.sql(
      "SELECT COUNT(DISTINCT message_id) AS n FROM local_message WHERE sent_at IS NOT NULL",
    );
    expect(Number(row?.["n"])).toBe(2_000);
  }, 60_000);

  test("what cannot be sent fails at once with the reason, and its neighbors go", async () => {
    const poison = (key: string): PlainMessage => ({ key, topic: topics.orders, body: "{}" });
    await database.insert([
      ...unkeyed(50, "before", topics.orders),
      ...["huge", "header", "body", "headers", "no json headers", "base64", "odd", "empty ordering"].map(poison),
      { key: "", topic: topics.orders },
      ...unkeyed(50, "after", topics.orders),
      // The messages of a failed one's ordering key wait behind it; other keys go.
      { key: "huge-keyed", topic: topics.ledger, orderingKey: "a" },
      { key: "behind", topic: topics.ledger, orderingKey: "a" },
      { key: "beside", topic: topics.ledger, orderingKey: "b" },
    ]);
    const huge = "CONCAT('\"', REPEAT('x', 4194304), '\"')";
    const edits: readonly (readonly [key: string, change: string, reason: RegExp])[] = [
      ["huge", `message_body = ${huge}`, /^MESSAGE_BODY_TOO_LARGE: /],
      ["huge-keyed", `message_body = ${huge}`, /^MESSAGE_BODY_TOO_LARGE: /],
      // A name that RocketMQ keeps for itself: found by dividing the batch.
      ["header", `headers = '{"KEYS":"x"}'`, /^ILLEGAL_MESSAGE_PROPERTY_KEY: /],
      ["body", "message_body = '{broken'", /^BROKEN_BODY: /],
      ["headers", "headers = '[1]'", /^BROKEN_HEADERS: /],
      ["no json headers", "headers = '{'", /^BROKEN_HEADERS: /],
      ["base64", "content_type = 'image/png;base64', message_body = '#'", /^BROKEN_BODY: /],
      ["odd", "state = 9", /^UNKNOWN_STATE: .*9/],
      ["empty ordering", "ordering_key = ''", /^BROKEN_ROW: .*ordering key/],
      ["", "updated_by = 'somebody'", /^BROKEN_ROW: .*key/],
    ];
    for (const [key, change] of edits)
      await database.sql(`UPDATE local_message SET ${change} WHERE message_key = '${key}'`);
    const relay = makeRelay();
    const failed: string[] = [];
    relay.on("failed", ({ message, slowRetryInMs }) => void failed.push(`${message.key} ${slowRetryInMs}`));
    await relay.start();
    await expect.poll(() => database.states(), SOON).toEqual({ [SENT]: 101, [FAILED]: edits.length, [PENDING]: 1 });
    for (const [key, , reason] of edits) {
      const [row] = await database.sql(
        `SELECT fail_reason AS reason, next_retry_at AS next, retry_count AS retries FROM local_message WHERE message_key = '${key}'`,
      );
      expect(String(row?.["reason"]), key).toMatch(reason);
      expect(row?.["next"], key).toBeNull();
      expect(Number(row?.["retries"]), key).toBeLessThanOrEqual(1);
    }
    expect(failed).toContain("huge null");
    const gone = await reader.waitFor(
      topics.orders,
      (all) => all.filter((each) => /^(before|after)-/.test(keyOf(each))).length >= 100,
    );
    expect(gone.map(keyOf).filter((key) => edits.some(([poisoned]) => poisoned === key))).toEqual([]);
  });

  test("messages without their topic are slowed, hold up no other, and go when it is made", async () => {
    const [GOOD, MISSING] = [1_500, 500];
    const missing = unkeyed(MISSING, "missing", soon);
    // Mixed, so that every batch has some.
    await insertAll(
      unkeyed(GOOD, "beside", topics.outage).flatMap((message, index) => [message, ...missing.slice(index, index + 1)]),
    );
    const relay = makeRelay({ retry: { baseMs: 200, factor: 1, maxMs: 200, maxAttempts: 100 } });
    const startMs = performance.now();
    await relay.start();
    await expect.poll(() => relay.counts.sent, { ...SOON, interval: 5 }).toBe(GOOD);
    const seconds = (performance.now() - startMs) / 1_000;
    // At most what was on its way when the first answer came, and then a hundred a second.
    expect(relay.counts.retried).toBeLessThanOrEqual(250 + 100 * (seconds + 3));
    expect(await sum("1", `topic = '${soon}' AND state = ${SENT}`)).toBe(0);
    // Not made by a deployment yet: no attempt is counted, and the relay says why it waits.
    expect(await sum("retry_count", `topic = '${soon}'`)).toBe(0);
    expect(relay.report().restingTopics).toMatchObject([
      { topic: soon, reason: expect.stringContaining("TOPIC_NOT_FOUND") as string },
    ]);
    await createTopic(server, soon);
    await expect.poll(() => database.states(), SOON).toEqual({ [SENT]: GOOD + MISSING });
  }, 60_000);

  test("RocketMQ away for some seconds: nothing lost, no attempt burned, little held, and batches instead of probes when it is back", async () => {
    const WINDOW = 500;
    const [FIRST, CUT, DURING] = [1_000, 1_500, 3_000];
    const ALL = FIRST + CUT + DURING;
    const relay = makeRelay({ batchSize: 250, windowSize: WINDOW });
    let sent = 0;
    relay.on("sent", () => {
      sent += 1;
    });
    await relay.start();
    const body = JSON.stringify("x".repeat(2_000));
    await insertAll(unkeyed(FIRST, "first", topics.outage, body));
    await expect.poll(() => sent, SOON).toBe(FIRST);

    // Away in the middle of it.
    await insertAll(unkeyed(CUT, "cut", topics.outage, body));
    await expect.poll(() => sent, { ...SOON, interval: 1 }).toBeGreaterThan(FIRST + 100);
    const away = new Promise<void>((resolve) => relay.on("brokerAway", () => resolve()));
    const back = new Promise<void>((resolve) => relay.on("brokerBack", () => resolve()));
    await proxy.refuse();
    await proxy.cut();
    await away;
    await insertAll(unkeyed(DURING, "during", topics.outage, body));
    // What was on its way when the connection broke has its outcome in the table; from here on only
    // a probe goes out.
    const sending = (): Promise<number> => sum("1", `state = ${SENDING}`);
    await expect.poll(sending, SOON).toBeLessThanOrEqual(1);
    let mostSending = 0;
    const sentBefore = sent;
    const heapBefore = heapBytes();
    for (const untilMs = performance.now() + 3_000; performance.now() < untilMs; ) {
      mostSending = Math.max(mostSending, await sending());
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const heapGrowth = heapBytes() - heapBefore;
    expect(sent).toBe(sentBefore);
    // Those whose connection was cut under them may be on the broker: that is an attempt. No other
    // one is.
    const unsure = await sum("1", "retry_count > 0");
    expect(await sum("retry_count")).toBe(unsure);
    expect(unsure).toBeLessThanOrEqual(WINDOW);
    expect(await sum("retry_count", "message_key LIKE 'during-%'")).toBe(0);
    expect(mostSending).toBeLessThanOrEqual(1);
    // 6 MB of bodies wait in the table, and nowhere else.
    expect(heapGrowth).toBeLessThan(3_000_000);

    const callsBefore = publishCalls;
    await proxy.accept();
    await back;
    await expect.poll(() => sent, SOON).toBeGreaterThanOrEqual(ALL - unsure);
    const waiting = ALL - unsure - sentBefore;
    const calls = publishCalls - callsBefore;
    console.info(
      `${service}: ${waiting} sent in ${calls} calls; unsure ${unsure}, most sending ${mostSending}, heap ${(heapGrowth / 1e6).toFixed(1)} MB more`,
    );
    // A probe is one message; those before the connection was there are among the calls.
    expect(calls).toBeLessThan(waiting / 10);

    await expect.poll(() => database.states(), SOON).toEqual({ [SENT]: ALL });
    expect(await sum("delivery_count - retry_count")).toBe(ALL);
    const isOurs = (message: ConsumedMessage): boolean => /^(first|cut|during)-/.test(keyOf(message));
    const all = (
      await reader.waitFor(topics.outage, (some) => new Set(some.filter(isOurs).map(keyOf)).size === ALL, 40_000)
    ).filter(isOurs);
    expect(all.length - ALL).toBeLessThanOrEqual(unsure);
  }, 120_000);
}
