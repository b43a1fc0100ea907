/** Handlers that take their process down or stand still: each attempt counts, others go on. */
import { once } from "node:events";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Ledger, openLedger } from "./ledger.ts";
import { describeOnEach } from "./places.ts";

const WAIT = { timeout: 50_000, interval: 20 };

describeOnEach("members that fall silent over a message", (make) => {
  let ledger: Ledger;

  beforeEach(async () => {
    ledger = await openLedger(make, "./poison.process.mjs");
  });
  afterEach(() => ledger.close());

  /** Keys whose handlers began, or ended, in order. */
  const keys = (word: "begun" | "ended"): string[] =>
    ledger.lines().flatMap((line) => (line.startsWith(`${word} `) ? [line.split(" ")[1] as string] : []));
  const until = (condition: () => boolean): Promise<unknown> => vi.waitUntil(condition, WAIT);
  const append = (count: number, special: Readonly<Record<number, unknown>>): Promise<string[]> =>
    ledger.queue.append(
      Array.from({ length: count }, (_, index) => ({
        topic: "orders",
        key: String(index),
        body: special[index] ?? index,
      })),
    );

  async function dead(): Promise<readonly { readonly id: string }[]> {
    return (await ledger.queue.deadLetters({ topic: "orders", group: "g" })).letters;
  }

  /** Until there is a dead letter and this many have ended. */
  function restartUntilDead(count: number, options: object): Promise<number> {
    const isOver = async (): Promise<boolean> => new Set(keys("ended")).size === count && (await dead()).length > 0;
    return restartUntil(isOver, options);
  }

  /** Runs members, one after the other, until it is over. How many have died? */
  async function restartUntil(isOver: () => Promise<boolean>, options: object): Promise<number> {
    for (let deaths = 0; ; deaths += 1) {
      const child = ledger.start({ options });
      const exit = once(child, "exit").then(() => true);
      if (!(await Promise.race([exit, vi.waitUntil(isOver, WAIT).then(() => false)]))) return deaths;
      expect(child.signalCode).toBe("SIGKILL");
    }
  }

  it.each([false, true])(
    "a message that kills its process is a dead letter after its attempts, transactional %s",
    {
      timeout: 120_000,
    },
    async (transactional) => {
      const ids = await append(60, { 20: "die" });
      const options = { transactional, leaseMs: 2_000, retry: { maxAttempts: 3 } };
      const deaths = await restartUntilDead(59, options);
      // Once beside others, then alone as often as it may be tried.
      expect(deaths).toBe(4);
      const letters = await dead();
      expect(letters.map(({ id }) => id)).toEqual([ids[20]]);
      expect(JSON.stringify(letters)).toMatch(/MEMBER_SILENT.*3 times/);
      const counts = new Map<string, number>();
      for (const key of keys("begun")) counts.set(key, (counts.get(key) ?? 0) + 1);
      expect(counts.get("20")).toBe(4);
      // Nobody else pays for it more than the first death, which met those that ran beside it.
      counts.delete("20");
      expect(Math.max(...counts.values())).toBeLessThanOrEqual(2);
    },
  );

  it("takes no message of another partition with it", { timeout: 120_000 }, async () => {
    await ledger.queue.alterTopic({ topic: "orders", partitions: 4 });
    // One in each partition: the others have begun when it dies, and have not ended.
    const [id] = await append(1, { 0: { takesMs: 700, dies: true } });
    for (let other = 0; other < 3; other += 1) await append(1, { 0: { takesMs: 1_500 } });
    const options = { leaseMs: 2_000, retry: { maxAttempts: 3 } };
    const isOver = async (): Promise<boolean> => keys("ended").length === 3 && (await dead()).length > 0;
    await restartUntil(isOver, options);
    expect((await dead()).map((letter) => letter.id)).toEqual([id]);
  });

  it("a redelivery that kills its process is a dead letter too", { timeout: 120_000 }, async () => {
    const ids = await append(30, { 10: "die later" });
    const options = { leaseMs: 2_000, retry: { maxAttempts: 3, baseMs: 0 } };
    // The first death is not known to be of its second attempt, and not counted.
    expect(await restartUntilDead(29, options)).toBe(4);
    expect((await dead()).map(({ id }) => id)).toEqual([ids[10]]);
  });

  it("a redelivery that fails while its member is careful counts each of its attempts", async () => {
    const ids = await append(20, { 10: { hangs: true } });
    const options = { leaseMs: 2_000, handlerTimeoutMs: 100, retry: { maxAttempts: 5, baseMs: 0 } };
    const attempts = (): string[] => ledger.lines().filter((line) => line.startsWith("begun 10 "));
    const first = ledger.start({ options });
    const exit = once(first, "exit");
    await until(() => attempts().length >= 2);
    first.kill("SIGKILL");
    await exit;
    ledger.start({ options });
    await vi.waitUntil(async () => (await dead()).length > 0, WAIT);
    expect((await dead()).map(({ id }) => id)).toEqual([ids[10]]);
    expect(attempts().at(-1)).toMatch(/^begun 10 5 /);
  });

  it("a handler that blocks the event loop for longer than the lease ends, and the log names it", {
    timeout: 120_000,
  }, async () => {
    await append(40, { 5: { blockMs: 3_000 } });
    const options = { leaseMs: 2_000 };
    for (const child of [ledger.start({ options }), ledger.start({ options })]) await once(child, "message");
    await until(() => new Set(keys("ended")).size === 40);
    const begun = keys("begun").filter((key) => key === "5").length;
    expect(begun).toBeGreaterThanOrEqual(1);
    expect(begun).toBeLessThanOrEqual(3);
    await until(() => ledger.lines().some((line) => line.startsWith("log the event loop stood still")));
  });
});
