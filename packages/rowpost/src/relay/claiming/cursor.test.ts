import { describe, expect, it } from "vitest";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createCursor } from "./cursor.ts";
import { createScanBudget } from "./scan-budget.ts";

const NONE = { immediateLimit: 0, dueLimit: 0 };
const immediate = (...ids: number[]) => ids.map((id) => ({ id: String(id), due: false, body: "", shard: 0 }));
const due = (...ids: number[]) => ids.map((id) => ({ id: String(id), due: true, body: "", shard: 0 }));

const asked = (afterId: string, immediateLimit: number, dueLimit: number, foreignDue = 0) => ({
  afterId,
  immediateLimit,
  dueLimit,
  foreignDue,
});

describe("cursor (rule: bounded-scan)", () => {
  it("goes on after a full scan and starts over after one that was not", () => {
    const cursor = createCursor(createManualClock());
    cursor.returned(immediate(9, 500), asked("0", 2, 1));
    expect([cursor.ask(4, NONE).afterId, cursor.complete, cursor.atStart]).toEqual(["500", false, false]);
    cursor.returned(immediate(777), asked("500", 2, 1));
    expect([cursor.ask(4, NONE).afterId, cursor.complete, cursor.atStart]).toEqual(["0", true, true]);
  });

  it("goes on before a row whose body is still to be read, and starts over at one that comes first", () => {
    const cursor = createCursor(createManualClock());
    const unread = { id: "7", due: false, body: null, shard: 0 };
    cursor.returned([...immediate(5), unread, ...immediate(9)], asked("0", 3, 1));
    expect(cursor.ask(4, NONE).afterId).toBe("5");
    cursor.returned([unread, ...immediate(9, 11)], asked("5", 3, 1));
    expect(cursor.ask(4, NONE).afterId).toBe("0");
  });

  it("starts over after a second, however much is left: an id may have become visible behind it", async () => {
    const clock = createManualClock();
    const cursor = createCursor(clock);
    cursor.returned(immediate(500), asked("0", 1, 1));
    await clock.advance(1_000);
    cursor.returned(immediate(1_000), asked("500", 1, 1));
    expect([cursor.atStart, cursor.complete]).toEqual([true, false]);
  });

  it("starts over when a key became free, at most every 100 ms", async () => {
    const clock = createManualClock();
    const cursor = createCursor(clock);
    cursor.returned(immediate(500), asked("0", 1, 1));
    cursor.keyFreed();
    expect(cursor.ask(1, NONE).afterId).toBe("500");
    await clock.advance(100);
    expect(cursor.ask(1, NONE).afterId).toBe("0");
  });

  it("gives a full due branch its half, and all when nothing else waits", () => {
    const cursor = createCursor(createManualClock());
    expect(cursor.ask(64, NONE)).toMatchObject({ immediateLimit: 64, dueLimit: 16 });
    cursor.returned([...immediate(1, 2), ...due(3)], asked("0", 2, 1));
    expect(cursor.ask(64, NONE)).toMatchObject({ immediateLimit: 32, dueLimit: 32 });
    cursor.returned(due(3), asked("0", 2, 1));
    expect(cursor.ask(64, NONE)).toMatchObject({ immediateLimit: 16, dueLimit: 64 });
  });

  it("reaches past due rows of other shards: far, once a second, and at once while it finds something", async () => {
    const clock = createManualClock();
    const cursor = createCursor(clock);
    const rows = (foreign: number, ours: number) => [
      ...due(...Array.from({ length: foreign }, (_, index) => index)).map((row) => ({ ...row, shard: 9 })),
      ...due(...Array.from({ length: ours }, (_, index) => index + foreign)),
    ];
    const far: number[] = [];
    for (const [foreign, ours] of [
      [30, 0],
      [90, 0],
      [30, 0],
      [200, 4],
      [200, 4],
      [5, 0],
    ] as const) {
      const asking = cursor.ask(16, NONE);
      far.push(asking.foreignDue);
      cursor.returned(rows(foreign, ours), asking, [0]);
      if (far.length === 3) await clock.advance(1_000);
    }
    expect(far).toEqual([0, 64, 0, 256, 256, 256]);
    expect(cursor.ask(16, NONE).foreignDue).toBe(0);
  });

  it("reaches past the rows in flight where nothing marks them (rule: listed-in-flight)", () => {
    const cursor = createCursor(createManualClock());
    expect(cursor.ask(64, { immediateLimit: 300, dueLimit: 300 })).toMatchObject({
      immediateLimit: 364,
      dueLimit: 316,
    });
    cursor.returned(immediate(500), asked("0", 1, 1));
    expect(cursor.ask(64, { immediateLimit: 300, dueLimit: 300 }).immediateLimit).toBe(64);
  });
});

describe("scan budget", () => {
  const rows = (count: number, bodyBytes: number, topic = "orders") =>
    Array.from({ length: count }, () => ({ bodyBytes, topic }));

  it("begins small and doubles up to the batch", () => {
    const budget = createScanBudget(500);
    const asked = [1, 2, 3, 4, 5].map(() => {
      const most = budget.rows(2_000);
      budget.returned(rows(most, 400));
      return most;
    });
    expect(asked).toEqual([64, 128, 256, 500, 500]);
    expect(budget.rows(7)).toBe(7);
  });

  it("asks for few rows when bodies are large", () => {
    const budget = createScanBudget(500);
    budget.returned(rows(1, 4_194_304));
    expect(budget.rows(2_000)).toBe(4);
  });

  it("asks for few rows of the topic whose bodies are large, and for its share of the others'", () => {
    const budget = createScanBudget(500);
    for (let scans = 0; scans < 4; scans += 1) budget.returned([...rows(1, 4_194_304, "images"), ...rows(9, 400)]);
    expect(budget.rows(2_000, { topic: "images", sharers: 2 })).toBe(2);
    expect(budget.rows(2_000, { topic: "orders", sharers: 2 })).toBe(250);
  });

  it("bounds what a scan brings, whatever the bodies are: rows times the longest that comes along", () => {
    const budget = createScanBudget(500);
    for (const most of [1, 64, 500]) expect(budget.bodyLimit(most) * most).toBeLessThanOrEqual(16 * 1_048_576);
  });

  it("asks for less after a scan that failed, down to one row, and recovers", () => {
    const budget = createScanBudget(500);
    for (let failures = 0; failures < 10; failures += 1) budget.failed();
    expect([budget.rows(2_000), budget.bytes]).toEqual([1, 4]);
    for (let scans = 0; scans < 30; scans += 1) budget.returned(rows(1, 10));
    expect([budget.rows(2_000), budget.bytes]).toEqual([500, 4 * 1_048_576]);
  });
});
