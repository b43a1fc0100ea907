/**
 * A handler that hangs, or takes long: it keeps nobody else waiting, what is finished meanwhile is
 * not handled again, and bodies do not gather.
 */
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueMonth } from "../../src/message/queue-id.ts";
import { until } from "../until.ts";
import { gate, numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

const MIB = 1_048_576;

describeOnEach("handlers that take long", (make) => {
  let shop: OpenQueue;

  beforeEach(async () => {
    shop = await openQueue(make, { partitions: 1 });
  });
  afterEach(() => shop.close());

  /** Records of the month of this message: `key attempt result error`. */
  async function records(id: string): Promise<string[]> {
    const table = `orders_message_info_consumption_${queueMonth(id)}`;
    const rows = await shop.place.query(
      `SELECT message_key, attempt, result, error FROM ${table} ORDER BY message_id, attempt`,
    );
    return rows.map((row) => [row["message_key"], row["attempt"], row["result"], row["error"] ?? ""].join(" ").trim());
  }

  it("a hung head leaves the others their way and their records, and they are not handled again", {
    timeout: 60_000,
  }, async () => {
    const hung = gate();
    const [seen, seenLater]: [string[], string[]] = [[], []];
    const ids = await shop.queue.append(numbers(1_000));
    const [id] = ids as [string];
    await shop.members.start({
      batchSize: 20,
      drainTimeoutMs: 0,
      leaseMs: 1_000,
      async handler({ key }) {
        seen.push(key as string);
        if (key === "0") await hung.opened;
      },
    });
    await until(async () => seen.length === 1_000 && (await records(id)).length === 999);
    expect(await shop.members.stopAll()).toEqual([{ drained: false }]);
    await shop.members.start({ batchSize: 20, handler: ({ key }) => void seenLater.push(key as string) });
    await until(async () => (await records(id)).length === 1_000);
    expect(seenLater).toEqual(["0"]);
    hung.open();
  });

  it("a pause behind a hung head, and what is recorded behind it is not handled again", {
    timeout: 60_000,
  }, async () => {
    const hung = gate();
    const seen: string[] = [];
    await shop.members.start({
      async handler({ body, key }) {
        seen.push(key as string);
        if (body === "hung") await hung.opened;
      },
    });
    for (let call = 0; call < 11; call += 1) await shop.queue.append(numbers(1_000));
    // More than it looks for in the records by itself.
    await until(() => seen.length === 11_000);
    const [id] = (await shop.queue.append([{ topic: "orders", key: "head", body: "hung" }, ...numbers(99)])) as [
      string,
    ];
    await until(async () => (await records(id)).length === 11_099);
    const by = { topic: "orders", group: "billing", author: "ann", reason: "test" };
    await shop.queue.pause(by);
    // Some rounds of the member, which tells nobody that it sees the pause.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const [last] = (await shop.queue.append([{ topic: "orders", key: "last", body: 1 }])) as [string];
    await shop.queue.resume(by);
    await until(() => seen.includes("last"));
    hung.open();
    await until(async () => (await records(last)).length === 11_101);
    expect(seen).toHaveLength(11_101);
  });

  it("a slow key leaves the others their way, however many of its messages come between", {
    timeout: 60_000,
  }, async () => {
    const slow = gate();
    const seen: string[] = [];
    const messages = numbers(1_500).map((message, index) =>
      index % 2 === 0 ? { ...message, orderingKey: "slow" } : message,
    );
    await shop.queue.append(messages);
    await shop.members.start({
      batchSize: 50,
      async handler({ key, orderingKey }) {
        if (orderingKey === "slow") await slow.opened;
        else seen.push(key as string);
      },
    });
    await until(() => seen.length === 750);
    slow.open();
  });

  it("a key whose messages take 50 ms each leaves the others their way", { timeout: 60_000 }, async () => {
    const seen = { slow: 0, quick: 0 };
    const messages = numbers(3_000).map((message, index) => ({
      ...message,
      orderingKey: index % 10 === 0 ? "slow" : `key ${index}`,
    }));
    for (let next = 0; next < messages.length; next += 500) await shop.queue.append(messages.slice(next, next + 500));
    await shop.members.start({
      batchSize: 50,
      async handler({ orderingKey }) {
        if (orderingKey === "slow") await new Promise((resolve) => setTimeout(resolve, 50));
        seen[orderingKey === "slow" ? "slow" : "quick"] += 1;
      },
    });
    await until(() => seen.quick === 2_700);
    expect(seen.slow).toBeLessThan(150);
  });

  it("holds bodies of 32 MiB at most that are not handled", { timeout: 60_000 }, async () => {
    const slow = gate();
    let begun = 0;
    const body = "x".repeat(3 * MIB);
    for (let call = 0; call < 10; call += 1) {
      await shop.queue.append(
        Array.from({ length: 4 }, (_, index) => ({ topic: "orders", key: `${call} ${index}`, body })),
      );
    }
    await shop.members.start({
      concurrency: 100,
      async handler() {
        begun += 1;
        await slow.opened;
      },
    });
    await until(() => begun >= 8);
    // Until it has taken what it takes.
    for (let [still, last] = [0, begun]; still < 20; still += 1, last = begun) {
      if (begun !== last) still = 0;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    expect(begun).toBeLessThanOrEqual(11);
    slow.open();
    await until(() => begun === 40);
  });

  it.each([false, true])(
    "a handler that is late has failed, and how it ends counts for nothing: transactional %s",
    {
      timeout: 60_000,
    },
    async (transactional) => {
      const hung = gate();
      const said: string[] = [];
      let signal: AbortSignal | undefined;
      const [id] = (await shop.queue.append(numbers(2))) as [string, string];
      const warn = (line: string): void => void said.push(line);
      const logger = { debug: () => undefined, info: () => undefined, warn, error: warn };
      await shop.members.start({
        transactional,
        logger,
        handlerTimeoutMs: 800,
        warnAfterMs: 100,
        retry: { baseMs: 0 },
        async handler({ key, attempt }, context) {
          // Behind another one of its transaction.
          if (key !== "1" || attempt > 1) return;
          ({ signal } = context);
          await hung.opened;
        },
      });
      await until(async () => (await records(id)).length === 3);
      const found = await records(id);
      expect(found.map((line) => line.slice(0, 5))).toEqual(["0 1 0", "1 1 1", "1 2 0"]);
      expect(found[1]).toMatch(/HANDLER_TIMEOUT|did not end within 800 ms/);
      expect(signal?.aborted).toBe(true);
      hung.open();
      await setImmediate();
      await until(() => said.some((line) => line.startsWith("a handler ended after its time was over")));
      expect(said).toContainEqual(expect.stringContaining("is being handled for long"));
    },
  );
});
