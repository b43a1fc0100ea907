/**
 * The law of isolation, by order and by counts (rule: isolation): whatever one row, key, topic or
 * endpoint does, the others go on, memory stays bounded in bytes, and what is held back is neither
 * read nor changed. How fast the others are meanwhile is measured by the benchmarks `isolation-…`.
 */
import { describe, expect, it } from "vitest";
import type { Relay } from "../../src/relay/relay.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { RelayTestService } from "../relay/bench-database.ts";
import { type RuleBench, type RuleRelayOptions, STATE, useRuleBench } from "../rules/rule-bench.ts";
import { closeNeighborsAfterEach, createNeighbors, KINDS, type Kind, type Neighbors, readsOf } from "./neighbors.ts";

const MIB = 1_048_576;
/** A test waits for signals; this ends one that would never come. */
const LIMIT_MS = 120_000;

/** What the cases work with. */
interface Scene {
  readonly bench: RuleBench;
  readonly service: RelayTestService;
  readonly kind: Kind;
}

/** Defines the tests for one server. */
export function defineIsolationCases(service: RelayTestService): void {
  const bench = useRuleBench(service);
  closeNeighborsAfterEach();
  describe.each(KINDS)("%s broker", (kind) => {
    const scene: Scene = { bench, service, kind };
    describe("an endpoint that never answers", () => endpointCases(scene));
    describe("a failed head with followers", () => keyCases(scene));
    describe("a backlog of a refused topic", () => backlogCases(scene));
    describe("large bodies", () => bytesCases(scene));
  });
}

function messagesOf(topic: string, count: number, first = 0) {
  return Array.from({ length: count }, (_, index) => ({ key: `${topic}-${first + index}`, topic }));
}

/** A relay on these neighbors that notes what it reads. */
function relayOn({ bench }: Scene, neighbors: Neighbors, options: RuleRelayOptions["relay"] = {}) {
  const { reads, store } = readsOf();
  const { relay } = bench.relay({ store, relay: { broker: neighbors.broker, ...options } });
  return { relay, reads };
}

/** Versions of a topic's rows: each change of a row makes its own grow. */
async function versions({ bench }: Scene, topic: string): Promise<Readonly<Record<string, number>>> {
  const rows = await bench.database.sql(
    `SELECT id AS id, lock_version AS version FROM local_message WHERE topic = '${topic}'`,
  );
  return Object.fromEntries(rows.map((row) => [String(row["id"]), Number(row["version"])]));
}

type Versions = Awaited<ReturnType<typeof versions>>;

function changedIn(before: Versions, after: Versions): number {
  return Object.keys(before).filter((id) => before[id] !== after[id]).length;
}

/**
 * Times within reach have come: what waits for a moment, a minute or an hour of the server's clock
 * would be looked at again from now on.
 */
async function letTimesCome({ bench }: Scene): Promise<void> {
  await bench.database.sql(
    `UPDATE local_message SET next_retry_at = '2001-01-01 00:00:00.000'
      WHERE state = ${STATE.pending} AND next_retry_at < '2999-01-01 00:00:00.000'`,
  );
}

async function ticks(relay: Relay, count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) await relay.tick();
}

function endpointCases(scene: Scene): void {
  const { bench, kind } = scene;
  // No publish ends within the test: what arrives went beside those that hang.
  const patient = { clock: systemClock, publishTimeoutMs: 300_000, leaseMs: 400_000 } as const;

  async function expectOthersGo(hung: number, options: RuleRelayOptions["relay"]): Promise<void> {
    const { database } = bench;
    const neighbors = await createNeighbors(kind);
    neighbors.set("hung", "hang");
    await database.insert(messagesOf("hung", hung));
    const { relay } = relayOn(scene, neighbors, { ...patient, ...options });
    await relay.start();
    await expect.poll(() => neighbors.unanswered("hung"), { timeout: LIMIT_MS }).toBeGreaterThan(0);
    for (let batch = 0; batch < 10; batch += 1) {
      await database.insert(messagesOf("healthy", 20, batch * 20));
      await neighbors.untilAccepted("healthy", (batch + 1) * 20);
    }
    expect(neighbors.accepted("hung")).toEqual([]);
    expect(neighbors.unanswered("hung")).toBeGreaterThan(0);
    // And nothing of it is lost.
    neighbors.set("hung", "well");
    await neighbors.untilAccepted("hung", hung);
  }

  it(
    "leaves the others places in the window, however many of its messages wait",
    async () => {
      await expectOthersGo(100, { batchSize: 20, windowSize: 40 });
    },
    LIMIT_MS,
  );

  it(
    "leaves the others their way through the broker, at the default window",
    async () => {
      await expectOthersGo(60, {});
    },
    LIMIT_MS,
  );

  it(
    "never makes the broker count as away",
    async () => {
      const { database } = bench;
      const neighbors = await createNeighbors(kind);
      neighbors.set("hung", "hang");
      const { relay } = relayOn(scene, neighbors, {
        clock: systemClock,
        publishTimeoutMs: 200,
        retry: { baseMs: 1, factor: 1, maxMs: 1, maxAttempts: 1_000 },
      });
      let away = 0;
      relay.on("brokerAway", () => {
        away += 1;
      });
      let retries = 0;
      relay.on("retry", () => {
        retries += 1;
      });
      await relay.start();
      await database.insert(messagesOf("hung", 1));
      for (let round = 1; round <= 3; round += 1) {
        await expect.poll(() => retries, { timeout: LIMIT_MS }).toBeGreaterThanOrEqual(round);
        expect(away).toBe(0);
        await database.insert(messagesOf("healthy", 10, round * 10));
        await neighbors.untilAccepted("healthy", round * 10);
      }
      expect(away).toBe(0);
    },
    LIMIT_MS,
  );
}

function keyCases(scene: Scene): void {
  const { bench, kind } = scene;
  const FOLLOWERS = 600;

  /** The head failed long ago, its followers wait, and so do messages of another topic. */
  async function blocked() {
    const { database } = bench;
    const keyed = { topic: "blocked", orderingKey: "k" } as const;
    await database.insert([
      { key: "head", ...keyed },
      ...messagesOf("follower", FOLLOWERS).map(({ key }) => ({ key, ...keyed })),
    ]);
    await database.sql(`UPDATE local_message SET state = ${STATE.failed} WHERE message_key = 'head'`);
    await database.insert(messagesOf("healthy", 100));
    const neighbors = await createNeighbors(kind);
    return { neighbors, ...relayOn(scene, neighbors, { batchSize: 50, windowSize: 200 }) };
  }

  /** Ticks until every follower stands behind its head and nothing of them changes any more. */
  async function comeToRest(relay: Relay): Promise<void> {
    for (let round = 0; round < 100; round += 1) {
      const before = await versions(scene, "blocked");
      await ticks(relay, 5);
      await bench.clock.advance(1_000);
      const after = await versions(scene, "blocked");
      if (JSON.stringify(after) === JSON.stringify(before)) return;
    }
    throw new Error("the followers were still being changed after 500 ticks");
  }

  const keysInOrder = ["head", ...messagesOf("follower", FOLLOWERS).map(({ key }) => key)];

  it(
    "lets the others go, and its followers are neither read nor changed once they are set behind it",
    async () => {
      const { relay, reads, neighbors } = await blocked();
      await comeToRest(relay);
      expect(neighbors.accepted("healthy")).toHaveLength(100);
      await letTimesCome(scene);
      const before = await versions(scene, "blocked");
      reads.clear();
      for (let round = 0; round < 50; round += 1) {
        if (round % 10 === 0) await bench.database.insert(messagesOf("healthy", 10, 100 + round));
        await relay.tick();
        await bench.clock.advance(1_000);
      }
      await ticks(relay, 2);
      const after = await versions(scene, "blocked");
      expect(changedIn(before, after)).toBe(0);
      expect(reads.ids.filter((id) => id in before).length).toBe(0);
      expect(neighbors.accepted("healthy")).toHaveLength(150);
      expect(neighbors.handed("blocked")).toBe(0);
    },
    LIMIT_MS,
  );

  it(
    "each follower is changed once on its way behind the head",
    async () => {
      const { relay } = await blocked();
      const before = await versions(scene, "blocked");
      await comeToRest(relay);
      await letTimesCome(scene);
      await comeToRest(relay);
      const after = await versions(scene, "blocked");
      const changes = Object.keys(before).map((id) => Number(after[id]) - Number(before[id]));
      expect(Math.max(...changes)).toBe(1);
    },
    LIMIT_MS,
  );

  async function expectAllGoInOrder(relay: Relay, neighbors: Neighbors, keys: readonly string[]): Promise<void> {
    for (let round = 0; neighbors.accepted("blocked").length < keys.length; round += 1) {
      if (round === 200) break;
      await relay.tick();
      await bench.clock.advance(1_000);
    }
    expect(neighbors.accepted("blocked")).toEqual(keys);
  }

  it(
    "when a person retries the head, it goes and its followers after it, in order",
    async () => {
      const { relay, neighbors } = await blocked();
      await comeToRest(relay);
      const database = bench.database.connect();
      const admin = database.messageAdmin({ layout: database.defaultLayout });
      const action = { author: "li", reason: "mended" };
      await admin.retry({ filter: { states: ["failed"], topic: "blocked" }, action, limit: 10 });
      await admin.close();
      await expectAllGoInOrder(relay, neighbors, keysInOrder);
    },
    LIMIT_MS,
  );

  it(
    "when the head is taken away by hand, its followers go, in order",
    async () => {
      const { relay, neighbors } = await blocked();
      await comeToRest(relay);
      await bench.database.sql("DELETE FROM local_message WHERE message_key = 'head'");
      await expectAllGoInOrder(relay, neighbors, keysInOrder.slice(1));
    },
    LIMIT_MS,
  );
}

function backlogCases(scene: Scene): void {
  const { bench, kind } = scene;
  const BACKLOG = 3_000;
  const BATCH = 50;

  async function behindBacklog() {
    const { database } = bench;
    await database.insert(messagesOf("refused", BACKLOG));
    await database.insert(messagesOf("healthy", 100));
    const neighbors = await createNeighbors(kind);
    neighbors.set("refused", "refuse");
    return { neighbors, ...relayOn(scene, neighbors, { batchSize: BATCH, windowSize: 4 * BATCH, leaseMs: 3_600_000 }) };
  }

  it(
    "stands before the others in the table, and they go after a few batches of it",
    async () => {
      const { relay, reads, neighbors } = await behindBacklog();
      const refused = await versions(scene, "refused");
      for (let tick = 0; tick < 200 && neighbors.accepted("healthy").length < 100; tick += 1) await relay.tick();
      expect(neighbors.accepted("healthy")).toHaveLength(100);
      // The clock stands still: the first scans find out that the topic is refused, the others pass
      // it by.
      expect(reads.ids.filter((id) => id in refused).length).toBeLessThanOrEqual(6 * BATCH);
    },
    LIMIT_MS,
  );

  it(
    "while its topic rests none of its rows is read or changed, and new messages of others go",
    async () => {
      const { relay, reads, neighbors } = await behindBacklog();
      await ticks(relay, 20);
      await letTimesCome(scene);
      const before = await versions(scene, "refused");
      const handed = neighbors.handed("refused");
      reads.clear();
      for (let round = 0; round < 50; round += 1) {
        if (round % 10 === 0) await bench.database.insert(messagesOf("healthy", 10, 100 + round));
        await relay.tick();
      }
      await ticks(relay, 2);
      const after = await versions(scene, "refused");
      expect(changedIn(before, after)).toBe(0);
      expect(reads.ids.filter((id) => id in before).length).toBe(0);
      expect(neighbors.handed("refused")).toBe(handed);
      expect(neighbors.accepted("healthy")).toHaveLength(150);
    },
    LIMIT_MS,
  );

  it(
    "is probed with one message a rest, and goes when the topic is well again",
    async () => {
      const { relay, neighbors } = await behindBacklog();
      await ticks(relay, 20);
      const handed = neighbors.handed("refused");
      for (let round = 0; round < 10; round += 1) {
        await bench.clock.advance(60_000);
        await ticks(relay, 3);
      }
      expect(neighbors.handed("refused") - handed).toBeLessThanOrEqual(10);
      neighbors.set("refused", "well");
      for (let round = 0; round < 400 && neighbors.accepted("refused").length < BACKLOG; round += 1) {
        await letTimesCome(scene);
        await bench.clock.advance(1_000);
        await relay.tick();
      }
      expect(neighbors.accepted("refused")).toHaveLength(BACKLOG);
    },
    LIMIT_MS,
  );
}

function bytesCases(scene: Scene): void {
  const { bench, kind, service } = scene;
  const BODIES = 24;
  const BODY_BYTES = 4 * MIB;
  /** The budget of a scan, and a body that did not fit any more. */
  const READ_BOUND = 16 * MIB + BODY_BYTES;
  /** What a relay holds in flight at most. */
  const HELD_BOUND = 64 * MIB;

  /** JSON texts of 4 MiB, made by the server. */
  async function insertLarge(): Promise<void> {
    const filler = {
      mariadb: `REPEAT('x', ${BODY_BYTES - 2})`,
      postgres: `repeat('x', ${BODY_BYTES - 2})`,
      sqlite: `replace(hex(zeroblob(${BODY_BYTES - 2})), '00', 'x')`,
    }[service as "mariadb" | "postgres" | "sqlite"];
    await bench.database.insert(messagesOf("large", BODIES));
    const body = service === "mariadb" ? `CONCAT('"', ${filler}, '"')` : `'"' || ${filler} || '"'`;
    await bench.database.sql(`UPDATE local_message SET message_body = ${body} WHERE topic = 'large'`);
  }

  it(
    "are read and held within the bounds, beside others, and all go",
    async () => {
      await insertLarge();
      const neighbors = await createNeighbors(kind);
      neighbors.set("large", "hang");
      const { relay, reads } = relayOn(scene, neighbors, {
        clock: systemClock,
        publishTimeoutMs: 300_000,
        leaseMs: 400_000,
      });
      await relay.start();
      // Until the relay has taken what it takes: handed over by scan after scan, then nothing more.
      await expect.poll(() => neighbors.unanswered("large"), { timeout: LIMIT_MS }).toBeGreaterThan(0);
      let handed = -1;
      for (let still = 0; still < 10; still += 1) {
        if (neighbors.handed("large") !== handed) still = 0;
        handed = neighbors.handed("large");
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      await bench.database.insert(messagesOf("healthy", 100));
      await neighbors.untilAccepted("healthy", 100);
      expect(neighbors.accepted("large")).toEqual([]);
      neighbors.set("large", "well");
      await neighbors.untilAccepted("large", BODIES);
      expect(neighbors.bytes.highest / MIB).toBeLessThanOrEqual(HELD_BOUND / MIB);
      expect(reads.mostBytes / MIB).toBeLessThanOrEqual(READ_BOUND / MIB);
    },
    LIMIT_MS,
  );

  it(
    "do not make the scans of others small: these are through before the last fifth of them",
    async () => {
      await insertLarge();
      await bench.database.insert(messagesOf("healthy", 240));
      const neighbors = await createNeighbors(kind);
      const { relay, reads } = relayOn(scene, neighbors, { clock: systemClock, publishTimeoutMs: 60_000 });
      await relay.start();
      await neighbors.untilAccepted("healthy", 240);
      expect(neighbors.accepted("large").length).toBeLessThan(BODIES * 0.8);
      await neighbors.untilAccepted("large", BODIES);
      expect(reads.mostBytes / MIB).toBeLessThanOrEqual(READ_BOUND / MIB);
    },
    LIMIT_MS,
  );
}
