import { describe, expect, it } from "vitest";
import { takesTopic } from "../../runtime/topic-patterns.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createScanPlan } from "./scan-plan.ts";

function bench({ waiting = [] as string[], isAble = true, topics = undefined as readonly string[] | undefined } = {}) {
  const clock = createManualClock();
  const closed = new Set<string>();
  const asked: string[][] = [];
  const takes = (topic: string): boolean => takesTopic({ topics }, topic);
  const of = (topic: string): number => (closed.has(topic) || !takes(topic) ? 0 : 100);
  const plan = createScanPlan({
    clock,
    isAble: () => isAble,
    room: { of, closed: () => [...closed], takes, topics },
    store: {
      async waitingTopics({ known }) {
        asked.push([...known]);
        return waiting.filter((topic) => !known.includes(topic));
      },
    },
  });
  return { plan, clock, closed, asked, waiting };
}

const rows = (...topics: string[]) => topics.map((topic) => ({ topic }));

describe("scan plan (rule: isolation)", () => {
  it("walks over all rows while every topic takes messages, and asks nothing", async () => {
    const { plan, asked } = bench();
    plan.returned(await plan.next(), rows("a", "b"), false);
    expect([await plan.next(), asked]).toEqual([undefined, []]);
  });

  it("leaves out topics that take nothing, and walks again when they do", async () => {
    const { plan, closed, asked } = bench({ waiting: ["new"] });
    plan.returned(await plan.next(), rows("hung", "a", "b"), true);
    closed.add("hung");
    expect(await plan.next()).toEqual({
      topics: ["a", "b", "new"],
      isFirst: true,
      isPart: false,
      looked: true,
    });
    expect([asked, plan.closed()]).toEqual([[["hung", "a", "b"]], ["hung"]]);
    closed.clear();
    plan.returned(undefined, rows("a"), false);
    expect(await plan.next()).toBeUndefined();
  });

  it("tells what a scan left out although a probe has come due since", async () => {
    const { plan, closed } = bench();
    plan.returned(await plan.next(), rows("hung", "a"), false);
    closed.add("hung");
    expect(await plan.next()).toMatchObject({ topics: ["a"] });
    closed.clear();
    expect(plan.closed()).toEqual(["hung"]);
    plan.returned(await plan.next(), rows("hung"), false);
    expect(plan.closed()).toEqual([]);
  });

  it("asks which topics have rows at most every 200 ms", async () => {
    const { plan, closed, asked, clock, waiting } = bench();
    closed.add("hung");
    await plan.next();
    waiting.push("late");
    expect(await plan.next()).toMatchObject({ topics: [], looked: false });
    await clock.advance(200);
    expect(await plan.next()).toMatchObject({ topics: ["late"], looked: true });
    expect(asked.length).toBe(2);
  });

  it("spends a fifth of the time on looks at most, however slow they are", async () => {
    const clock = createManualClock();
    let looks = 0;
    const plan = createScanPlan({
      clock,
      isAble: () => true,
      room: { of: () => 0, closed: () => ["hung"], takes: () => true, topics: undefined },
      store: {
        async waitingTopics() {
          looks += 1;
          await clock.advance(1_000);
          return [];
        },
      },
    });
    await plan.next();
    await clock.advance(3_900);
    await plan.next();
    expect(looks).toBe(1);
    await clock.advance(100);
    await plan.next();
    expect(looks).toBe(2);
  });

  it("looks behind a backlog, at every second scan, for topics that it hides", async () => {
    const { plan } = bench({ waiting: ["bulk", "small"] });
    plan.returned(await plan.next(), rows("bulk", "bulk"), true);
    const first = await plan.next();
    expect(first).toMatchObject({ topics: ["small"] });
    plan.returned(first, rows("small"), false);
    const second = await plan.next();
    expect(second).toBeUndefined();
    plan.returned(second, rows("bulk"), true);
    const third = await plan.next();
    expect(third).toMatchObject({ topics: ["small"] });
    // Nothing of it is left, so only the backlog is walked until the next look.
    plan.returned(third, [], false);
    expect([await plan.next(), await plan.next()]).toEqual([undefined, undefined]);
  });

  it("takes many topics in turn", async () => {
    const { plan, closed } = bench({ waiting: Array.from({ length: 80 }, (_, index) => `t${index}`) });
    closed.add("hung");
    const seen = new Set<string>();
    for (let scan = 0; scan < 3; scan += 1) {
      const chosen = await plan.next();
      expect([chosen?.isFirst, chosen?.isPart]).toEqual([scan === 0, scan < 2]);
      for (const topic of chosen?.topics ?? []) seen.add(topic);
    }
    expect(seen.size).toBe(80);
  });

  it("forgets a topic that showed no row for 10 s", async () => {
    const { plan, closed, clock } = bench();
    plan.returned(undefined, rows("once"), false);
    closed.add("hung");
    expect(await plan.next()).toMatchObject({ topics: ["once"] });
    await clock.advance(10_000);
    expect(await plan.next()).toMatchObject({ topics: [] });
  });

  it("does not forget a topic that takes nothing: a walk over all rows would read its rows", async () => {
    const { plan, closed, clock } = bench();
    plan.returned(undefined, rows("hung"), true);
    closed.add("hung");
    await plan.next();
    await clock.advance(60_000);
    expect([await plan.next(), plan.closed()]).toMatchObject([{ topics: [], looked: true }, ["hung"]]);
  });

  it("walks over all rows of a table that cannot be scanned by topic", async () => {
    const { plan, closed } = bench({ isAble: false });
    closed.add("hung");
    plan.returned(undefined, rows("hung"), true);
    expect(await plan.next()).toBeUndefined();
  });

  it("scans the topics that the relay names, and asks for no others", async () => {
    const { plan, asked, waiting } = bench({ topics: ["orders", "stock"] });
    waiting.push("other");
    expect(await plan.next()).toMatchObject({ topics: ["orders", "stock"], isPart: false, looked: true });
    expect([asked, plan.closed()]).toEqual([[], []]);
  });

  it("finds the topics of the relay's patterns, and never scans one of another relay's", async () => {
    const { plan, clock, waiting } = bench({ topics: ["orders.*"] });
    waiting.push("orders.new", "stock");
    expect(await plan.next()).toMatchObject({ topics: ["orders.new"] });
    expect(plan.closed()).toEqual([]);
    await clock.advance(60_000);
    waiting.splice(0);
    expect(await plan.next()).toMatchObject({ topics: ["orders.new"], looked: true });
  });
});
