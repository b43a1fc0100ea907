/**
 * One effect for each message and consumer, although every message is delivered 1 to 4 times, at
 * once and in any order, by two processes that are killed at random; and more than one without the
 * inbox (rule: one-effect).
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createInbox } from "../../src/inbox/index.ts";
import { describeOnAll, type QueuePlace } from "../queue/places.ts";

const PROGRAM = fileURLToPath(new URL("./consumer.process.mjs", import.meta.url));
const MESSAGES = 120;
const CONSUMERS = ["points", "mail"];
/** Deliveries that a process has at once. */
const WIDTH = 6;
const KILLS = 8;
/** A failing one is printed with the failure; put it here to see it again. */
const SEED = Number(process.env["ROWPOST_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

interface Delivery {
  readonly id: number;
  readonly consumer: string;
  readonly key: string;
  /** In a transaction of the consumer's own, not of the inbox's. */
  readonly inOwn: boolean;
}

interface Answer {
  readonly id: number;
  readonly outcome: "handled" | "duplicate" | "failed";
  readonly code?: string;
  readonly retriable?: boolean;
}

/** Numbers from 0 to 1, always the same ones (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A broker with memory: what was not answered when its consumer died is delivered again. */
interface Deliveries {
  readonly kills: number;
  /** Under way at a kill: nobody knows whether they took effect. */
  readonly redelivered: number;
  readonly answers: readonly Answer[];
}

describeOnAll("deliveries to two consumers that are killed at random", (make) => {
  let place: QueuePlace;
  const children = new Set<ChildProcess>();
  beforeEach(async () => {
    place = await make();
    await createInbox({ database: place.open() }).migrate();
    await place.query("CREATE TABLE effects (consumer VARCHAR(64) NOT NULL, message VARCHAR(64) NOT NULL)");
  });
  afterEach(async () => {
    for (const child of children) child.kill("SIGKILL");
    children.clear();
    await place.drop();
  });

  async function run(withInbox: boolean): Promise<Deliveries> {
    const random = randomFrom(SEED);
    const waiting = deliveriesOf(random);
    const total = waiting.length;
    const answers: Answer[] = [];
    let kills = 0;
    let redelivered = 0;
    let nextKill = killAfter();

    function killAfter(): number {
      return Math.floor((total / (KILLS + 2)) * (0.5 + random()));
    }

    /** One place of the two: a process, and the next one when that was killed. */
    async function serve(): Promise<void> {
      while (answers.length < total) {
        const child = fork(PROGRAM, [JSON.stringify({ ...place.address, withInbox })], { execArgv: [] });
        children.add(child);
        const underway = new Map<number, Delivery>();
        const fill = (): void => {
          while (underway.size < WIDTH && child.connected) {
            const delivery = waiting.pop();
            if (delivery === undefined) return;
            underway.set(delivery.id, delivery);
            child.send(delivery);
          }
        };
        child.on("message", (answer: Answer | "ready") => {
          if (answer !== "ready") settle(child, underway, answer);
          fill();
          if (answers.length === total) for (const each of children) each.kill("SIGKILL");
        });
        // The second one comes behind its last answer.
        await Promise.all([once(child, "exit"), once(child, "disconnect")]);
        children.delete(child);
        redelivered += underway.size;
        waiting.push(...underway.values());
      }
    }

    function settle(child: ChildProcess, underway: Map<number, Delivery>, answer: Answer): void {
      const delivery = underway.get(answer.id);
      if (delivery === undefined) return;
      underway.delete(answer.id);
      if (answer.outcome === "failed") {
        expect(answer, `seed ${SEED}`).toMatchObject({ retriable: true });
        waiting.unshift(delivery);
        return;
      }
      answers.push(answer);
      nextKill -= 1;
      if (nextKill > 0 || kills === KILLS) return;
      kills += 1;
      nextKill = killAfter();
      const all = [...children];
      (all[Math.floor(random() * all.length)] ?? child).kill("SIGKILL");
    }

    await Promise.all([serve(), serve()]);
    return { answers, kills, redelivered };
  }

  /** How many messages of a consumer had one effect, how many two, … */
  const effects = async (): Promise<readonly (readonly [effects: number, messages: number])[]> => {
    const rows = await place.query(
      "SELECT n, COUNT(*) AS messages FROM (SELECT COUNT(*) AS n FROM effects GROUP BY consumer, message) AS counted GROUP BY n ORDER BY n",
    );
    return rows.map(({ messages, n }) => [Number(n), Number(messages)]);
  };

  it("with the inbox: one effect each", { timeout: 60_000 }, async () => {
    const { answers, kills, redelivered } = await run(true);
    expect(kills, `seed ${SEED}`).toBe(KILLS);
    expect(redelivered, `seed ${SEED}`).toBeGreaterThan(0);
    expect(answers.filter(({ outcome }) => outcome === "duplicate").length, `seed ${SEED}`).toBeGreaterThan(MESSAGES);
    expect(await effects(), `seed ${SEED}`).toEqual([[1, MESSAGES * CONSUMERS.length]]);
    const [row] = await place.query("SELECT COUNT(*) AS n FROM message_inbox");
    expect(Number(row?.["n"]), `seed ${SEED}`).toBe(MESSAGES * CONSUMERS.length);
  });

  it("guard removed: without the inbox there are more", { timeout: 60_000 }, async () => {
    await run(false);
    const counts = await effects();
    expect(
      counts.some(([each]) => each > 1),
      `seed ${SEED}`,
    ).toBe(true);
  });
});

/** Each message for each consumer, 1 to 4 times, shuffled. */
function deliveriesOf(random: () => number): Delivery[] {
  const all: Delivery[] = [];
  for (let index = 0; index < MESSAGES; index += 1) {
    for (const consumer of CONSUMERS) {
      const times = 1 + Math.floor(random() * 4);
      for (let copy = 0; copy < times; copy += 1) {
        all.push({ id: all.length, consumer, key: `order-${index}`, inOwn: random() < 0.5 });
      }
    }
  }
  return all
    .map((delivery) => ({ delivery, place: random() }))
    .sort((left, right) => left.place - right.place)
    .map(({ delivery }) => delivery);
}
