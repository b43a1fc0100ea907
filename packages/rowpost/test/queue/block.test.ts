/** `onFailed: "block"`: a failed message holds up later ones of its ordering key, and no others. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Queue } from "../../src/queue/index.ts";
import { until } from "../until.ts";
import type { Members } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

const SHORT = { baseMs: 1, maxMs: 1 };
const LONG = { baseMs: 1_000_000_000, maxMs: 1_000_000_000 };

describeOnEach("a key that is held up", (make) => {
  let opened: OpenQueue;
  let place: QueuePlace;
  let queue: Queue;
  let members: Members;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1, usual: { onFailed: "block" } });
    ({ place, queue, members } = opened);
  });
  afterEach(() => opened.close());

  /** Two keys in turn: `a0 b0 a1 b1 …`. */
  const turns = (from: number, to: number) =>
    Array.from({ length: 2 * (to - from) }, (_, index) => {
      const key = index % 2 === 0 ? "a" : "b";
      return { topic: "orders", orderingKey: key, body: `${key}${from + Math.floor(index / 2)}` };
    });
  const of = (key: string, seen: readonly string[]) => seen.filter((body) => body.startsWith(key));
  const row = (key: string, to: number) => Array.from({ length: to }, (_, index) => `${key}${index}`);
  const left = async () => Number((await place.query("SELECT COUNT(*) AS n FROM message_redelivery"))[0]?.["n"]);

  it.each([false, true])(
    "keeps its order until the failed one is consumed (transactional: %s)",
    async (transactional) => {
      const done: string[] = [];
      await members.start({
        transactional,
        retry: SHORT,
        concurrency: 2,
        batchSize: 4,
        handler: ({ body, attempt }) => {
          if (body === "a1" && attempt < 4) throw new Error("not yet");
          if (body === "a5" && attempt < 2) throw new Error("not yet");
          done.push(String(body));
        },
      });
      await queue.append(turns(0, 10));
      await until(() => done.length >= 15);
      await queue.append(turns(10, 15));
      await until(() => done.length === 30);
      expect(of("a", done)).toEqual(row("a", 15));
      expect(of("b", done)).toEqual(row("b", 15));
      await until(async () => (await left()) === 0);
    },
  );

  it("holds across a restart; other keys go on; and lets go when it is skipped", async () => {
    const done: string[] = [];
    let isFixed = false;
    let tries = 0;
    const handler = ({ body }: { readonly body: unknown }): void => {
      if (body === "a0" && !isFixed) {
        tries += 1;
        throw new Error("no stock");
      }
      done.push(String(body));
    };
    await members.start({ retry: LONG, handler });
    const [head = ""] = await queue.append(turns(0, 5));
    await until(async () => of("b", done).length === 5 && (await left()) === 5);
    await members.stopAll();
    await members.start({ retry: LONG, handler });
    await queue.append(turns(5, 8));
    await until(async () => of("b", done).length === 8 && (await left()) === 8);
    expect(of("a", done)).toEqual([]);
    const [status] = await queue.groups({ topic: "orders" });
    expect(status?.partitions[0]).toMatchObject({
      waiting: { count: 8 },
      behind: { count: 7 },
      oldestWaiting: { id: head, error: "no stock" },
    });
    // All of them by hand: the head comes, fails again, and nothing has overtaken it.
    const failures = tries;
    const by = { topic: "orders", group: "billing", author: "wang", reason: "test" };
    expect(await queue.redeliver({ ...by, all: true, state: "waiting" })).toEqual({ changed: 1, conflicts: [] });
    await until(async () => tries > failures && (await queue.groups({ topic: "orders" }))[0]?.waiting.count === 8);
    expect(of("a", done)).toEqual([]);
    const { letters } = await queue.deadLetters({ topic: "orders", group: "billing", state: "waiting" });
    for (const [index, { id }] of letters.entries()) {
      const [group] = (await queue.message("orders", id))?.groups ?? [];
      expect(group).toMatchObject({ state: "waiting", attempts: index === 0 ? expect.any(Number) : 0 });
      // It waits behind another one, and not until the year 9999.
      expect(group?.nextAttemptAt === undefined).toBe(index > 0);
    }
    isFixed = true;
    await queue.skip({ ...by, id: head });
    await until(() => of("a", done).length === 7);
    await queue.append(turns(8, 10));
    await until(() => done.length === 19);
    expect(of("a", done)).toEqual(row("a", 10).slice(1));
    await until(async () => (await left()) === 0);
  });

  it("goes on without a message that is dead", async () => {
    const done: string[] = [];
    await members.start({
      retry: { maxAttempts: 2, ...SHORT },
      handler: ({ body }) => {
        if (body === "a0" || body === "a2") throw new Error("no stock");
        done.push(String(body));
      },
    });
    await queue.append(turns(0, 6));
    await until(() => done.length === 10);
    expect(of("a", done)).toEqual(["a1", "a3", "a4", "a5"]);
    await until(async () => (await left()) === 2);
    expect((await queue.groups({ topic: "orders" }))[0]).toMatchObject({ dead: { count: 2 }, waiting: { count: 0 } });
  });
});
