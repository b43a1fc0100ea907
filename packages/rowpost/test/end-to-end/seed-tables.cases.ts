/**
 * Rows that a program of another language inserts into the seed documents' tables, made by the
 * documents' own DDL: relayed to a real RocketMQ, read back with RocketMQ's own client.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { rocketmq } from "../../src/brokers/rocketmq/index.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { createLayout, messageTableLayout, tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { STATE_WORDS_ZH } from "../../src/message/states.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import type { Relay } from "../../src/relay/relay.ts";
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
import { type DatabaseServiceName, testService } from "../services.ts";
import { createSeedPlace, type SeedPlace, type SeedRow } from "./seed-place.ts";

const chineseWords: TableLayout = createLayout({ base: messageTableLayout, states: STATE_WORDS_ZH });

interface PlaceCase {
  readonly title: string;
  readonly layout: TableLayout;
  readonly zone?: string;
}

const PLACES: readonly PlaceCase[] = [
  { title: "t_local_message", layout: tLocalMessageLayout },
  { title: "message_table", layout: messageTableLayout },
];
/** Only where the table is made by the documents' DDL and instants have no zone of their own. */
const MYSQL_PLACES: readonly PlaceCase[] = [
  ...PLACES,
  { title: "t_local_message on a server at -03:30", layout: tLocalMessageLayout, zone: "-03:30" },
  { title: "message_table with states in Chinese on a server at +08:00", layout: chineseWords, zone: "+08:00" },
];

/**
 * A message handed to the broker: its header, and when it went and was answered, by the monotonic
 * clock.
 */
interface Attempt {
  readonly key: string;
  readonly number: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
}

/** Attempts that a message has here. Waits are short, but these tables count whole seconds. */
const RETRY = { maxAttempts: 3, baseMs: 100, factor: 1, maxMs: 100, slowRetryEveryMs: 3_600_000 };
/**
 * The second attempt of these lies days ahead, so that what the first one left can be looked at.
 */
const PATIENT = { name: "patient", retry: { baseMs: 1_000_000_000, maxMs: 1_000_000_000 } };
/** Waits longer than a missing topic rests, so that a wait cut short shows. */
const SLOW = { name: "slow", retry: { baseMs: 2_000, maxMs: 2_000 } };
/** As many as a missing topic is probed with in one second; half of them are patient. */
const BAD = 90;
const GOOD = 300;

/** Defines the tests for one server; RocketMQ must be there as well. */
export function defineSeedTableCases(service: DatabaseServiceName): void {
  const server: ServerAddress = serverAddress(testService("rocketmq").address);
  const topics = { orders: uniqueName("orders"), ledger: uniqueName("ledger") };
  const nowhere = uniqueName("nowhere");
  const nowhereElse = uniqueName("nowhere-else");
  let reader: Reader;

  beforeAll(async () => {
    await createTopic(server, topics.orders);
    await createTopic(server, topics.ledger, "FIFO");
    reader = await createOfficialReader(server, [topics.orders, topics.ledger]);
  });
  afterAll(async () => {
    await Promise.all([reader?.close(), ...Object.values(topics).map((topic) => deleteTopic(server, topic))]);
  });

  const attempts: Attempt[] = [];

  /** The real one, and notes when. A missing topic has been missing for five minutes already. */
  function timedBroker(): Broker {
    const broker = rocketmq({ endpoints: `127.0.0.1:${server.port}`, onWarning: () => undefined });
    return {
      ...broker,
      async publish(batch, options) {
        const startMs = performance.now();
        const results = await broker.publish(batch, options);
        const endMs = performance.now();
        for (const { key, headers } of batch) {
          attempts.push({ key, number: headers["rowpost-attempt"], startMs, endMs });
        }
        return results.map((result) => (result.status === "failed" ? { ...result, absent: undefined } : result));
      },
    };
  }

  for (const { title, layout, zone } of service === "postgres" ? PLACES : MYSQL_PLACES) {
    describe(title, () => {
      const { states } = layout;
      // Keys tell the places apart: they share the topics.
      const mine = (key: string): string => `${title}/${key}`;
      let place: SeedPlace;
      let relay: Relay;
      const broker = timedBroker();

      /**
       * Inserted before the relay starts, because rows in unknown states are looked for every ten
       * seconds.
       */
      const poisoned: readonly (SeedRow & { readonly says: RegExp })[] = [
        {
          key: mine("odd"),
          state: typeof states.pending === "number" ? 9 : "取消",
          topic: topics.orders,
          says: /UNKNOWN_STATE.*(9|取消)/,
        },
        { key: "", topic: topics.orders, says: /BROKEN_ROW.*key/ },
        { key: mine("no topic"), topic: "", says: /BROKEN_ROW.*topic/ },
        { key: mine("no body"), topic: topics.orders, body: "", says: /MESSAGE_BODY_EMPTY/ },
      ];

      beforeAll(async () => {
        place = await createSeedPlace(service, { layout, zone });
        await place.insert([
          ...poisoned,
          ...Array.from({ length: BAD }, (_, index) => ({
            key: mine(`bad ${index}`),
            topic: nowhere,
            ...(index % 2 === 0 ? { type: PATIENT.name } : {}),
          })),
          ...Array.from({ length: GOOD }, (_, index) => ({ key: mine(`good ${index}`), topic: topics.orders })),
        ]);
        relay = place.relay(broker, { retry: RETRY, types: [PATIENT, SLOW], housekeepingMs: 200 });
      });
      afterAll(async () => {
        await place?.drop();
        await broker.close();
      });

      async function consumed(topic: string, keys: readonly string[]): Promise<ReadonlyMap<string, ConsumedMessage>> {
        const find = (all: readonly ConsumedMessage[]): Map<string, ConsumedMessage> =>
          new Map(
            all
              .map((message) => [message.properties.get("rowpost-key") ?? "", message] as const)
              .filter(([key]) => keys.includes(key)),
          );
        return find(await reader.waitFor(topic, (all) => find(all).size === keys.length));
      }

      test("a topic that is missing and rows that nobody can send hold up nobody", async () => {
        const bad = mine("bad 0");
        await relay.start();
        await expect.poll(() => place.states(), SOON).toMatchObject({ [states.sent]: GOOD });
        await expect.poll(async () => (await place.row(bad)).retries, SOON).toBe(1);
        const { reason, nextRetryS, state } = await place.row(bad);
        expect(state).toBe(states.pending);
        expect(reason).toContain("TOPIC_NOT_FOUND");
        expect(nextRetryS).toBeGreaterThan(Date.now() / 1000);
        for (const { key, says } of poisoned) {
          await expect.poll(async () => (await place.row(key)).state, SOON).toBe(states.failed);
          expect((await place.row(key)).reason).toMatch(says);
        }
      });

      test.concurrent("rows arrive with key, tag, properties and body, and get their final state", async () => {
        const rows = [
          {
            key: mine("order 4711"),
            type: "order_create",
            topic: topics.orders,
            body: '{"order": 4711, "note": "含税 💴"}',
          },
          { key: mine("锁-1"), type: "stock|lock", topic: topics.orders, body: "no JSON, but text" },
          { key: mine("fifo"), type: "order_create", topic: topics.ledger, body: "[1,2]" },
        ];
        const beforeS = Math.floor(Date.now() / 1000);
        await place.insert(rows);
        const found = new Map([
          ...(await consumed(
            topics.orders,
            rows.slice(0, 2).map(({ key }) => key),
          )),
          ...(await consumed(topics.ledger, [rows[2]?.key ?? ""])),
        ]);
        const [order, lock, fifo] = rows.map(({ key }) => found.get(key));
        const plainId = (type: string, key: string): string => `${encodeURIComponent(type)}:${encodeURIComponent(key)}`;
        expect(order).toMatchObject({
          messageId: plainId("order_create", mine("order 4711")),
          keys: [mine("order 4711").replaceAll(" ", "%20")],
          tag: "order_create",
          group: undefined,
          body: Buffer.from('{"order": 4711, "note": "含税 💴"}'),
        });
        expect(Object.fromEntries(order?.properties ?? [])).toEqual({
          "rowpost-id": `order_create:${mine("order 4711")}`,
          "rowpost-type": "order_create",
          "rowpost-key": mine("order 4711"),
          "rowpost-attempt": "1",
        });
        expect(lock).toMatchObject({ tag: "stock_lock", body: Buffer.from("no JSON, but text") });
        expect(Object.fromEntries(lock?.properties ?? [])).toMatchObject({
          "rowpost-type": "stock|lock",
          "content-type": "text/plain",
        });
        // A FIFO topic demands a group. The table has no ordering key, so each message is one of
        // its own.
        expect(fifo).toMatchObject({
          group: mine("fifo").length > 63 ? expect.stringMatching(/^sha256-/) : mine("fifo"),
          body: Buffer.from("[1,2]"),
        });

        for (const { key } of rows) {
          await expect.poll(async () => (await place.row(key)).state, SOON).toBe(states.sent);
          const row = await place.row(key);
          expect(row).toMatchObject({ retries: 0, reason: null, nextRetryS: null });
          expect(row.messageId).toBe(layout.columns.messageId === undefined ? undefined : found.get(key)?.messageId);
          expect(row.lastAttemptS).toBeGreaterThanOrEqual(beforeS - 1);
          expect(row.lastAttemptS).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000));
        }
      });

      test.concurrent("a message without its topic waits with the reason, never tries early, and fails after its attempts", async () => {
        const key = mine("alone");
        const promised: number[] = [];
        const ends = [
          relay.on("retry", ({ message, retryInMs }) => void (message.key === key && promised.push(retryInMs))),
          relay.on("failed", ({ message }) => void (message.key === key && promised.push(0))),
        ];
        await place.insert([{ key, type: SLOW.name, topic: nowhereElse }]);
        await expect.poll(() => promised.length, { ...SOON, timeout: 15_000 }).toBe(RETRY.maxAttempts);
        for (const end of ends) end();
        const mineOnly = attempts.filter((attempt) => attempt.key === key);
        expect(mineOnly.map(({ number }) => number)).toEqual(["1", "2", "3"]);
        mineOnly.slice(1).forEach(({ startMs }, index) => {
          // The wait begins when its outcome is written, which is after the answer; 2 ms are lost
          // to rounding.
          expect(startMs - (mineOnly[index]?.endMs ?? 0)).toBeGreaterThanOrEqual((promised[index] ?? 0) - 2);
        });
        const row = await place.row(key);
        expect(row).toMatchObject({
          state: states.failed,
          retries: RETRY.maxAttempts,
          reason: expect.stringContaining("TOPIC_NOT_FOUND"),
        });
        // The slow retry.
        const inS = (row.nextRetryS ?? 0) - Date.now() / 1000;
        expect(inS).toBeGreaterThan(RETRY.slowRetryEveryMs / 1000 - 300);
        expect(inS).toBeLessThanOrEqual(RETRY.slowRetryEveryMs / 1000 + 1);
      });

      test.concurrent("a delay is honored and never early, whoever asked for it", async () => {
        const plain = mine("plain delay");
        const enqueued = ["delayed by enqueue", "at an instant"].map(mine) as [string, string];
        await place.insert([{ key: plain, topic: topics.orders, afterS: 2 }]);
        const due = new Map([[plain, ((await place.row(plain)).nextRetryS ?? 0) * 1000]]);
        const startMs = Date.now();
        await createOutbox({ database: place.database, layout }).transaction(async (tx) => {
          const outbox = createOutbox({ database: place.database, layout });
          const base = { type: "reminder", topic: topics.orders, body: {} };
          await outbox.enqueue(tx, [
            { ...base, key: enqueued[0], delayMs: 1_300 },
            { ...base, key: enqueued[1], deliverAt: new Date(startMs + 1_250) },
          ]);
        });
        due.set(enqueued[0], startMs + 1_300).set(enqueued[1], startMs + 1_250);
        const found = await consumed(topics.orders, [plain, ...enqueued]);
        for (const [key, dueMs] of due) {
          const born = found.get(key)?.bornAtMs ?? 0;
          expect(born, key).toBeGreaterThanOrEqual(dueMs);
        }
        expect(place.zoneAsked()).not.toBe(0);
      });

      test("in the end every other row has its final state, and each was sent once", async () => {
        const sent = GOOD + 3 + 3;
        await expect
          .poll(() => place.states(), { ...SOON, timeout: 20_000 })
          .toEqual({ [states.sent]: sent, [states.failed]: poisoned.length + BAD / 2 + 1, [states.pending]: BAD / 2 });
        const copies = [...reader.messages(topics.orders), ...reader.messages(topics.ledger)]
          .map(({ properties }) => properties.get("rowpost-key") ?? "")
          .filter((key) => key.startsWith(`${title}/`));
        expect(copies).toHaveLength(sent);
        expect(new Set(copies).size).toBe(sent);
      });
    });
  }
}

const SOON = { timeout: 30_000, interval: 50 };
