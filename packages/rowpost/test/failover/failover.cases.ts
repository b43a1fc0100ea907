/**
 * A real primary dies, or hands over, and its replica becomes the primary. Orders are placed and
 * relayed all the while, through an address that stays the same.
 */
import { afterEach, describe, expect, it } from "vitest";
import { memory, type OutcomeHook } from "../../src/brokers/memory.ts";
import type { Database, TableLayout } from "../../src/databases/database.ts";
import { defaultLayout, messageTableLayout, tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { createQueue } from "../../src/queue/index.ts";
import type { FaultPoint, RelayOptions } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { compareIds } from "../../src/runtime/compare-ids.ts";
import { until } from "../until.ts";
import { createShop, judge, makeTables, rows, unfinished } from "./orders.ts";
import { type Pair, type PairKind, usePairs } from "./pair.ts";
import { nameSwitch, proxySwitch, type Switch } from "./switch.ts";

type FaultHook = (point: FaultPoint) => Promise<void>;

/** Longer than a test may take: no lease ends by itself. */
const LEASE_MS = 300_000;
const BATCH = 20;
/** As in a table that was migrated before versions began anywhere, or that is the user's own. */
const FROM_ZERO = "ALTER TABLE local_message ALTER COLUMN lock_version SET DEFAULT 0";

/**
 * The relay takes what a hook throws for an error of the database, and tries again: kept, so that
 * the test can end with it.
 */
function keepErrors(hook: FaultHook, errors: unknown[]): FaultHook {
  return async (point) => {
    try {
      await hook(point);
    } catch (error) {
      errors.push(error);
      throw error;
    }
  };
}

/** Defines the tests for one kind of server. */
export function defineFailoverCases(kind: PairKind): void {
  const pairs = usePairs(kind);
  const relays: Relay[] = [];
  const switches: Switch[] = [];

  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await Promise.all(switches.splice(0).map((each) => each.close()));
  });

  /** A pair with tables, and a shop and a relay at the address of the switch. */
  async function setUp(how: typeof nameSwitch | typeof proxySwitch, layout?: TableLayout) {
    const pair = await pairs.start();
    const turn = await how(pair.primary);
    switches.push(turn);
    const database = pairs.open(turn.address);
    await makeTables(database, layout);
    await pair.caughtUp();
    const broker = memory({ maxMessages: 100_000 });
    return { pair, turn, broker, shop: createShop(database, "", layout), relay: relayOn(turn.address, broker) };
  }

  function relayOn(address: string, broker: ReturnType<typeof memory>, more: Partial<RelayOptions> = {}): Relay {
    const relay = createRelay({
      database: pairs.open(address),
      broker,
      leaseMs: LEASE_MS,
      publishTimeoutMs: 5_000,
      heartbeatMs: 500,
      batchSize: BATCH,
      windowSize: BATCH,
      drainTimeoutMs: 2_000,
      logger: "silent",
      ...more,
    });
    relays.push(relay);
    return relay;
  }

  function openReplica({ replica }: Pair): Database {
    return pairs.open(`${replica.host}:${replica.port}`);
  }

  /** The lock that the relay has reported last stands on this server. */
  async function isHeld(on: Database): Promise<boolean> {
    const label = (await rows(on, "SELECT label FROM local_message_relay"))[0]?.["label"];
    const lock = /lock=(\S+)/.exec(String(label))?.[1] ?? "";
    const session = await on.connect({ purpose: "tool" });
    try {
      return lock !== "" && (await session.freeLocks([lock])).length === 0;
    } finally {
      await session.close();
    }
  }

  /** All shards are this relay's, and so is the lock. */
  async function expectHeld(on: Database, relay: Relay): Promise<void> {
    expect(await rows(on, "SELECT DISTINCT owner FROM local_message_shard")).toEqual([{ owner: relay.owner }]);
    expect(await isHeld(on)).toBe(true);
  }

  const keysOf = (broker: ReturnType<typeof memory>): string[] => broker.published().map(({ key }) => key);

  describe("with replication that commits wait for", () => {
    it("a primary that is killed under load, behind a name: nothing is lost, and the relay goes on by itself", async () => {
      const { pair, turn, broker, shop, relay } = await setUp(nameSwitch);
      await pair.waitForReplica();
      await relay.start();
      const close = shop.open();
      await Promise.all([shop.more(60), broker.waitFor(60, { withinMs: 60_000 })]);
      await pair.primary.kill();
      await pair.promote();
      turn.turnTo(pair.replica);
      await shop.more(60);
      await close();
      const on = openReplica(pair);
      await until(async () => (await unfinished(on)) === 0);
      await judge({ delivered: keysOf(broker), on });
      const there = new Set((await rows(on, "SELECT id FROM orders")).map(({ id }) => id));
      expect(shop.committed.filter((key) => !there.has(key))).toEqual([]);
      await expectHeld(on, relay);
    });

    it("a switchover under load: nothing is lost, and nothing is sent twice", async () => {
      const { pair, turn, broker, shop, relay } = await setUp(proxySwitch);
      await relay.start();
      const close = shop.open();
      await Promise.all([shop.more(60), broker.waitFor(60, { withinMs: 60_000 })]);
      await pair.refuseWrites();
      await pair.caughtUp();
      await pair.promote();
      turn.turnTo(pair.replica);
      // The pool of an application keeps its connections to a server that only refuses to write.
      await pair.primary.endSessions();
      await shop.more(60);
      await close();
      const on = openReplica(pair);
      await until(async () => (await unfinished(on)) === 0);
      expect(await judge({ delivered: keysOf(broker), on })).toBe(0);
      expect(relay.counts).toMatchObject({ fenced: 0, outcomesLost: 0 });
      await expectHeld(on, relay);
    });
  });

  it("a switchover while nothing is to be sent, and the old primary keeps its connections: the relay finds the new one (rule: one-server)", async () => {
    const { pair, turn, broker, shop, relay } = await setUp(proxySwitch);
    await relay.start();
    await shop.place(4);
    await broker.waitFor(12, { withinMs: 60_000 });
    await until(async () => (await unfinished(pairs.open(turn.address))) === 0);
    await pair.refuseWrites();
    await pair.caughtUp();
    await pair.promote();
    turn.turnTo(pair.replica);
    const on = openReplica(pair);
    await createShop(on, "after").place(2);
    await broker.waitFor(18, { withinMs: 60_000 });
    await until(async () => (await unfinished(on)) === 0);
    expect(await judge({ delivered: keysOf(broker), on })).toBe(0);
  });

  describe("with replication that was behind", () => {
    /**
     * The primary dies with its last orders, of which the replica knows nothing; others follow, and
     * get the ids of the lost messages. A physical replica of PostgreSQL would leave out up to 32
     * of these, a logical one or a restored dump none: the sequence goes on where the table ends.
     */
    async function loseLast(pair: Pair, turn: Switch, layout?: TableLayout): Promise<void> {
      await pair.primary.kill();
      await pair.promote();
      const on = openReplica(pair);
      if (kind === "postgres") {
        const table = (layout ?? defaultLayout).table;
        await rows(on, `SELECT setval(pg_get_serial_sequence('${table}', 'id'), (SELECT max(id) FROM ${table}))`);
      }
      turn.turnTo(pair.replica);
      await createShop(on, "after", layout).place(16);
    }

    /** Of each shard that somebody holds, its holder. */
    async function holders(on: Database, layout: TableLayout): Promise<unknown[]> {
      const held = await rows(on, `SELECT owner FROM ${layout.companion}_shard WHERE owner IS NOT NULL`);
      return held.map(({ owner }) => owner);
    }

    it.each([defaultLayout, messageTableLayout, tLocalMessageLayout])(
      "two relays, table $table, versions from 0: what one of them sent of the lost messages settles none that the other is sending (rule: claim-token)",
      async (layout) => {
        const { pair, turn, broker, shop } = await setUp(nameSwitch, layout);
        const old = pairs.open(turn.address);
        if (layout === defaultLayout) await rows(old, FROM_ZERO);
        const on = openReplica(pair);
        let isBehind = false;
        let isDead = false;
        let release = (): void => {};
        const isSettled = new Promise<void>((resolve) => {
          release = resolve;
        });
        let meet = (): void => {};
        const isSending = new Promise<void>((resolve) => {
          meet = resolve;
        });
        const said: string[] = [];
        const warn = (line: string): void => void said.push(line);
        const logger = { debug: () => {}, info: () => {}, warn, error: warn };
        const errors: unknown[] = [];
        // Has published messages that the new primary has never heard of, and writes their outcomes
        // while the other relay sends those that have their ids now.
        let isOver = false;
        let placing = Promise.resolve();
        const afterPlacing: FaultHook = async (reached) => {
          if (reached === "scanned") await placing;
        };
        const late = keepErrors(async (reached) => {
          await afterPlacing(reached);
          if (isDead && reached === "settled") {
            isOver = true;
            release();
          }
          if (!isBehind || isDead || reached !== "beforeSettle") return;
          isDead = true;
          await loseLast(pair, turn, layout);
          await isSending;
        }, errors);
        const refusedOnce = new Set<string>();
        const outcome: OutcomeHook = async ({ key }) => {
          if (!key.includes("after") || refusedOnce.has(key)) return undefined;
          refusedOnce.add(key);
          meet();
          await isSettled;
          return { status: "failed", scope: "message", retriable: true, code: "BUSY", reason: "busy", retryAfterMs: 1 };
        };
        const other = memory({ maxMessages: 100_000, outcome });
        const first = relayOn(turn.address, broker, { onFaultPoint: late, layout, logger });
        const second = relayOn(turn.address, other, { onFaultPoint: afterPlacing, layout });
        await Promise.all([first.start(), second.start()]);
        await until(async () => new Set(await holders(old, layout)).size === 2);
        await shop.place(8);
        await until(async () => (await unfinished(old, layout)) === 0);
        await pair.caughtUp();
        await pair.cutReplication();
        const before = shop.committed.length;
        isBehind = true;
        placing = shop.place(14);
        await placing;
        await until(async () => {
          if (errors.length > 0) throw errors[0];
          return isOver && (await unfinished(on, layout)) === 0;
        });
        const delivered = [...keysOf(broker), ...keysOf(other)];
        await judge({ delivered, on, gone: shop.committed.slice(before), isOrdered: false });
        expect(refusedOnce.size).toBeGreaterThan(0);
        expect(said.filter((line) => line.includes("another one stands under its id")).length).toBeGreaterThan(0);
      },
    );

    it.each([
      ["on", "beforeClaim", "0"],
      ["on", "beforeSettle", "anywhere"],
      ["off", "beforeClaim", "0"],
      ["off", "beforeSettle", "anywhere"],
      ["off", "beforeSettle", "0"],
    ] as const)(
      "sendingMark %s: a primary dies with its last commits while a batch is at %s, versions begin at %s: all that the new one has is delivered (rule: one-server)",
      async (sendingMark, point, versions) => {
        const { pair, turn, broker, shop } = await setUp(nameSwitch);
        const old = pairs.open(turn.address);
        if (versions === "0") await rows(old, FROM_ZERO);
        const on = openReplica(pair);
        let isBehind = false;
        let isDead = false;
        let isBack = false;
        let heartbeats = 0;
        let placing = Promise.resolve();
        const onFaultPoint: FaultHook = async (reached) => {
          if (reached === "heartbeat") heartbeats += 1;
          if (reached === "scanned") await placing;
          if (!isBehind || isDead || reached !== point) return;
          isDead = true;
          await loseLast(pair, turn);
          // Meanwhile the relay gets its leases and its lock on the new primary: that alone must
          // not let the batch go on. The second heartbeat from now on begins behind a whole one.
          await until(() => isHeld(on));
          const enough = heartbeats + 2;
          await until(() => heartbeats >= enough);
          isBack = true;
        };
        const errors: unknown[] = [];
        const hook = keepErrors(onFaultPoint, errors);
        await relayOn(turn.address, broker, { onFaultPoint: hook, sendingMark }).start();
        await shop.place(4);
        await until(async () => (await unfinished(old)) === 0);
        await pair.caughtUp();
        await pair.cutReplication();
        isBehind = true;
        const before = shop.committed.length;
        placing = shop.place(14);
        await placing;
        await until(async () => {
          if (errors.length > 0) throw errors[0];
          return isBack && (await unfinished(on)) === 0;
        });
        await judge({ delivered: keysOf(broker), on, gone: shop.committed.slice(before) });
      },
    );
  });

  describe("two servers that both take themselves for the primary", () => {
    it("the old one hangs: another relay sends on at once, and the one that hangs with it sends nothing more", async () => {
      const pair = await pairs.start();
      const turn = await proxySwitch(pair.primary);
      switches.push(turn);
      await makeTables(pairs.open(turn.address));
      await createShop(pairs.open(turn.address)).place(12);
      // What both have sent, in the order of time.
      const delivered: string[] = [];
      const outcome: OutcomeHook = ({ key }) => void delivered.push(key);
      const brokers = [memory({ outcome }), memory({ outcome })] as const;
      let hang = (): void => {};
      const hangs = new Promise<void>((resolve) => {
        hang = resolve;
      });
      let isOver = false;
      const onFaultPoint: FaultHook = async (reached) => {
        if (isOver || reached !== "published") return;
        isOver = true;
        await pair.caughtUp();
        await pair.primary.freeze();
        hang();
      };
      const old = relayOn(turn.address, brokers[0], { onFaultPoint });
      await old.start();
      await hangs;
      await pair.promote();
      turn.turnTo(pair.replica);
      const on = openReplica(pair);
      await relayOn(`${pair.replica.host}:${pair.replica.port}`, brokers[1]).start();
      // The leases of the old relay are far from their end, but its lock is not known here (rule:
      // session-lock).
      await until(async () => (await unfinished(on)) === 0);
      expect(brokers[0].published()).toHaveLength(BATCH);
      expect(await judge({ delivered, on })).toBe(BATCH);
      // What an operator has to do with it.
      await pair.primary.kill();
      await until(() => old.counts.fenced + old.counts.outcomesLost === BATCH);
      await createShop(on, "after").place(12);
      await until(async () => (await unfinished(on)) === 0);
      expect(await judge({ delivered, on })).toBe(BATCH);
    });

    it("the old one takes no writes: a relay that stays there publishes nothing", async () => {
      const pair = await pairs.start();
      const address = `${pair.primary.host}:${pair.primary.port}`;
      await makeTables(pairs.open(address));
      const broker = memory();
      const said: string[] = [];
      const note = (_line: string, fields?: Readonly<Record<string, unknown>>): void => {
        said.push(`${String(fields?.["part"])}: ${String(fields?.["error"])}`);
      };
      const onFaultPoint: FaultHook = async (reached) => {
        if (reached === "beforeClaim") await pair.refuseWrites();
      };
      const logger = { debug: () => {}, info: () => {}, warn: note, error: note };
      await relayOn(address, broker, { onFaultPoint, logger }).start();
      await createShop(pairs.open(address)).place(1);
      const isRefused = (): boolean => said.some((line) => /^relay: .*(read-only|read only)/.test(line));
      await until(() => isRefused() || broker.published().length > 0);
      expect(broker.published()).toEqual([]);
    });
  });

  it("a queue that has lost its last appends gives ids above theirs, and its consumer misses none that follow", async () => {
    const pair = await pairs.start();
    const turn = await proxySwitch(pair.primary);
    switches.push(turn);
    const database = pairs.open(turn.address);
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 1 });
    const given: string[] = [];
    const append = async (of: typeof queue, keys: readonly string[]): Promise<void> => {
      for (const key of keys) given.push(...(await of.append([{ topic: "orders", key, body: {} }])));
    };
    const handled = new Map<string, string>();
    let goOn = (): void => {};
    const isBack = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const consumer = await queue.consume({
      topic: "orders",
      group: "billing",
      leaseMs: LEASE_MS,
      logger: "silent",
      // What is lost is read and under way when the primary dies; it is finished on the new one.
      async handler({ key, id }) {
        handled.set(String(key), id);
        if (String(key).startsWith("lost")) await isBack;
      },
    });
    await append(queue, ["kept-1", "kept-2"]);
    await until(() => handled.size === 2);
    await pair.caughtUp();
    await pair.cutReplication();
    await append(queue, ["lost-1", "lost-2", "lost-3"]);
    await until(() => handled.size === 5);
    await pair.primary.kill();
    await pair.promote();
    turn.turnTo(pair.replica);
    const after = createQueue({ database: openReplica(pair) });
    await append(after, ["after-1", "after-2"]);
    expect(given).toEqual([...given].sort(compareIds));
    goOn();
    await until(() => handled.has("after-2"));
    await append(after, ["after-3", "after-4"]);
    await until(() => handled.has("after-4"));
    expect([...handled.values()]).toEqual(given);
    expect([...handled.keys()]).toEqual([
      "kept-1",
      "kept-2",
      "lost-1",
      "lost-2",
      "lost-3",
      "after-1",
      "after-2",
      "after-3",
      "after-4",
    ]);
    await consumer.stop();
    await Promise.all([queue.close(), after.close()]);
  });
}
