/**
 * Two members at a time, which are killed at random and started again, while their handlers die,
 * hang, block the event loop, or have bodies of 1 MB. Nothing is lost, only what dies or hangs
 * becomes a dead letter, and what a transaction does takes effect once.
 *
 * ROWPOST_CRASH_ROUNDS: 20 before a release.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { describeWithService } from "../services.ts";
import { type Ledger, openLedger } from "./ledger.ts";
import { type QueuePlace, serverPlace, sqlitePlace } from "./places.ts";

const given = process.env["ROWPOST_CRASH_ROUNDS"];
const ROUNDS = Number(given ?? 1);
const MESSAGES = 60;
/** Fewer than `maxAttempts`: nobody else becomes a dead letter by chance. */
const KILLS = 2;
const PAD = "x".repeat(1_000_000);
const OPTIONS = { leaseMs: 2_000, handlerTimeoutMs: 500, warnAfterMs: 300, retry: { maxAttempts: 3, baseMs: 10 } };
const WAIT = { timeout: 120_000, interval: 20 };

/** What the handler of a message does, by its place in a round. */
function bodyAt(index: number): unknown {
  if (index === 21) return "die";
  const effect = true;
  if (index === 7) return { effect, hangs: true };
  if (index === 13) return { effect, blockMs: 2_500 };
  return index % 10 === 0 ? { effect, pad: PAD } : { effect };
}

describeWithService(["mariadb", "postgres"], "members that are killed while their handlers misbehave", ({ name }) =>
  defineRounds(() => serverPlace(name)),
);

// A handler that blocks within its transaction has SQLite's only lock for longer than others wait
// for it, a member's start too: how long a round takes is chance there.
if (given !== undefined) {
  describe("members that are killed while their handlers misbehave on sqlite", () => defineRounds(sqlitePlace));
}

function defineRounds(make: () => Promise<QueuePlace>): void {
  let ledger: Ledger;
  let members: ChildProcess[];
  let isOver: boolean;

  beforeEach(async () => {
    ledger = await openLedger(make, "./poison.process.mjs");
    await ledger.queue.alterTopic({ topic: "orders", partitions: 4 });
    await ledger.place.query("CREATE TABLE effects (id VARCHAR(30) NOT NULL)");
    members = [];
    isOver = false;
  });
  afterEach(async () => {
    isOver = true;
    await ledger.close();
  });

  function start(options: object): void {
    const child = ledger.start({ options });
    members.push(child);
    child.once("exit", () => {
      members.splice(members.indexOf(child), 1);
      if (!isOver) start(options);
    });
  }

  const ended = (): Set<string> =>
    new Set(ledger.lines().flatMap((line) => (line.startsWith("ended ") ? [line.split(" ")[1] as string] : [])));
  const until = (condition: () => boolean | Promise<boolean>): Promise<unknown> => vi.waitUntil(condition, WAIT);
  async function dead(): Promise<string[]> {
    const letters = await ledger.queue.deadLetters({ topic: "orders", group: "g", limit: 1_000 });
    return letters.letters.map(({ message }) => message?.key ?? "gone").toSorted();
  }

  it.each([false, true])(
    `${ROUNDS} rounds, transactional %s: lost 0, and nothing stands still`,
    { timeout: ROUNDS * 200_000 },
    async (transactional) => {
      const options = { ...OPTIONS, transactional };
      const wrong: string[] = [];
      const right = new Map<string, string>();
      for (const _ of [1, 2]) start(options);
      for (let round = 0; round < ROUNDS; round += 1) {
        const keys = Array.from({ length: MESSAGES }, (_, index) => `${round}-${index}`);
        const messages = keys.map((key, index) => ({ topic: "orders", key, body: bodyAt(index) }));
        const ids = await ledger.queue.append(messages);
        wrong.push(`${round}-7`, `${round}-21`);
        for (const [index, key] of keys.entries()) if (!wrong.includes(key)) right.set(key, ids[index] as string);
        for (let kill = 0; kill < KILLS; kill += 1) {
          const before = ledger.lines().length;
          const more = 1 + Math.floor(Math.random() * 20);
          await until(() => ledger.lines().length >= before + more);
          const victim = members[Math.floor(Math.random() * members.length)];
          victim?.kill("SIGKILL");
          if (victim?.exitCode === null && victim.signalCode === null) await once(victim, "exit");
        }
        await until(() => [...right.keys()].every((key) => ended().has(key)));
        await until(async () => (await dead()).length >= wrong.length);
      }
      expect(await dead()).toEqual(wrong.toSorted());
      if (!transactional) return;
      // The last ones may be written yet.
      await until(async () => (await effects()).length >= right.size);
      expect((await effects()).toSorted()).toEqual([...right.values()].toSorted());
    },
  );

  async function effects(): Promise<string[]> {
    return (await ledger.place.query("SELECT id FROM effects")).map(({ id }) => String(id));
  }
}
