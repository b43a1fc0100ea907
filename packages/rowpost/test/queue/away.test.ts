/** What the handler calls is away: no message pays for it. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { queueMonth } from "../../src/message/queue-id.ts";
import { UnavailableError } from "../../src/queue/index.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { until } from "../until.ts";
import { gate, numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

describeOnEach("handlers whose service is away", (make) => {
  let shop: OpenQueue;

  beforeEach(async () => {
    shop = await openQueue(make, { partitions: 1, usual: { retry: { maxAttempts: 2, baseMs: 0 } } });
  });
  afterEach(() => shop.close());

  /** `attempt result`, by key, of all records of the month: 0 consumed, 1 failed, 2 dead. */
  async function records(id: string): Promise<Record<string, string[]>> {
    const table = `orders_message_info_consumption_${queueMonth(id)}`;
    const rows = await shop.place.query(`SELECT message_key, attempt, result FROM ${table} ORDER BY attempt`);
    const byKey: Record<string, string[]> = {};
    for (const { message_key: key, attempt, result } of rows) {
      byKey[String(key)] = [...(byKey[String(key)] ?? []), `${String(attempt)} ${String(result)}`];
    }
    return byKey;
  }

  it.each([false, true])(
    "no attempt is counted, and the order of the keys stays: transactional %s",
    {
      timeout: 60_000,
    },
    async (transactional) => {
      let isAway = true;
      let calls = 0;
      const handled: string[] = [];
      const messages = numbers(60).map((message, index) => ({ ...message, orderingKey: `key ${index % 6}` }));
      const [id] = (await shop.queue.append(messages)) as [string];
      await shop.members.start({
        transactional,
        retry: { maxAttempts: 1 },
        handler({ key }) {
          calls += 1;
          if (isAway) throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
          handled.push(key as string);
        },
      });
      // Ten in a row, and one more that asks. A partition's transaction asks by itself.
      await until(() => calls > (transactional ? 2 : 10));
      expect(handled).toEqual([]);
      expect(await records(id)).toEqual({});
      isAway = false;
      await until(async () => Object.keys(await records(id)).length === 60);
      const { letters } = await shop.queue.deadLetters({ topic: "orders", group: "billing" });
      expect(letters).toEqual([]);
      expect(new Set(Object.values(await records(id)).flat())).toEqual(new Set(["1 0"]));
      for (let key = 0; key < 6; key += 1) {
        const its = handled.filter((each) => Number(each) % 6 === key);
        expect(its).toEqual(messages.filter((_, index) => index % 6 === key).map((message) => message.key));
      }
    },
  );

  it("other types go on, and a message that meets it alone has failed by itself", { timeout: 60_000 }, async () => {
    let isAway = true;
    let calls = 0;
    const handled = new Set<string>();
    // The types do not reach each other, however many of one rest in front.
    const resting = numbers(300).map((message) => ({ ...message, key: `a${message.key}`, type: "a" }));
    await shop.queue.append(resting);
    await shop.members.start({
      batchSize: 50,
      isUnavailable: (error) => error instanceof UnavailableError,
      handler({ key, type }) {
        calls += 1;
        if (key === "never" || (type === "a" && isAway)) throw new UnavailableError("the bank is away");
        handled.add(key as string);
      },
    });
    await until(() => calls >= 10);
    const [id] = (await shop.queue.append(numbers(300, { type: "b" }))) as [string];
    await until(() => handled.size === 300);
    isAway = false;
    await until(() => handled.size === 600);
    await shop.queue.append([{ topic: "orders", key: "never", type: "b", body: 1 }]);
    await until(async () => {
      // Others of its type go well.
      await shop.queue.append([{ topic: "orders", key: "other", type: "b", body: 1 }]);
      return (await shop.queue.deadLetters({ topic: "orders", group: "billing" })).letters.length > 0;
    });
    expect((await records(id))["never"]).toEqual(["1 1", "2 2"]);
  });

  it("a stop leaves what rests to the next member", { timeout: 60_000 }, async () => {
    let calls = 0;
    const last = gate();
    let isStopping = false;
    const setTimer: Clock["setTimer"] = (run, ms) => {
      // The stop waits for handlers, and has cut back what it could.
      if (isStopping && ms === 50) last.open();
      return systemClock.setTimer(run, ms);
    };
    const handled: string[] = [];
    const [id] = (await shop.queue.append(numbers(40))) as [string];
    await shop.members.start({
      concurrency: 40,
      clock: { ...systemClock, setTimer },
      async handler({ key }) {
        calls += 1;
        if (Number(key) % 2 === 0) throw new UnavailableError("the bank is away");
        if (key === "39") await last.opened;
        handled.push(key as string);
      },
    });
    await until(() => calls >= 40);
    isStopping = true;
    // The last one runs behind those that rest, so they stay until it has its record.
    expect(await shop.members.stopAll()).toEqual([{ drained: true }]);
    expect(handled).toHaveLength(20);
    await shop.members.start({ handler: ({ key }) => void handled.push(key as string) });
    await until(async () => Object.keys(await records(id)).length === 40);
    expect(handled).toHaveLength(40);
    expect(new Set(handled).size).toBe(40);
  });
});
