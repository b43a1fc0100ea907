import { describe, expect, it } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { createPollPace } from "./poll-pace.ts";
import { createScanSize } from "./scan-size.ts";
import { createSweep } from "./sweep.ts";

describe("sweep (rule R12)", () => {
  it("goes on after a full scan and starts over after one that was not", () => {
    const sweep = createSweep(createManualClock());
    sweep.advance({ lastId: "500", full: true });
    expect([sweep.afterId, sweep.complete]).toEqual(["500", false]);
    sweep.advance({ lastId: "777", full: false });
    expect([sweep.afterId, sweep.complete]).toEqual(["0", true]);
  });

  it("starts over after a second, however much is left: an id may have become visible behind it", async () => {
    const clock = createManualClock();
    const sweep = createSweep(clock);
    sweep.advance({ lastId: "500", full: true });
    await clock.advance(1_000);
    sweep.advance({ lastId: "1000", full: true });
    expect([sweep.afterId, sweep.complete]).toEqual(["0", false]);
  });
});

describe("a sweep that passed rows over", () => {
  it("is not clean until a whole sweep found nothing to claim or to come back to", () => {
    const sweep = createSweep(createManualClock());
    sweep.begin();
    sweep.touched();
    sweep.advance({ lastId: "500", full: true });
    sweep.begin();
    sweep.advance({ lastId: undefined, full: false });
    expect([sweep.complete, sweep.clean]).toEqual([true, false]);
    sweep.begin();
    sweep.advance({ lastId: undefined, full: false });
    expect([sweep.complete, sweep.clean]).toEqual([true, true]);
  });

  it("starts over when a key became free, at most every 100 ms", async () => {
    const clock = createManualClock();
    const sweep = createSweep(clock);
    sweep.advance({ lastId: "500", full: true });
    sweep.keyFreed();
    sweep.begin();
    expect(sweep.afterId).toBe("500");
    await clock.advance(100);
    sweep.begin();
    expect(sweep.afterId).toBe("0");
  });
});

describe("scan size", () => {
  const NONE = { immediateLimit: 0, dueLimit: 0 };
  const row = (due: boolean, length = 400) => ({ due, body: "x".repeat(length) }) as never;

  it("begins small, doubles up to the batch, and gives a full due branch its half", () => {
    const size = createScanSize(500);
    expect(size.limits(2_000, NONE)).toEqual({ immediateLimit: 64, dueLimit: 16 });
    size.returned([row(false)], { immediateLimit: 64, dueLimit: 16 });
    expect(size.limits(2_000, NONE).immediateLimit).toBe(128);
    const rows = [...Array.from({ length: 4 }, () => row(false)), ...Array.from({ length: 2 }, () => row(true))];
    size.returned(rows, { immediateLimit: 4, dueLimit: 2 });
    const { immediateLimit, dueLimit } = size.limits(100, NONE);
    expect([immediateLimit, dueLimit]).toEqual([50, 50]);
  });

  it("asks for few rows when bodies are large", () => {
    const size = createScanSize(500);
    size.returned([row(false, 4_000_000)], { immediateLimit: 64, dueLimit: 16 });
    expect(size.limits(2_000, NONE).immediateLimit).toBeLessThanOrEqual(5);
  });

  it("reaches past the rows in flight where nothing marks them (rule R8)", () => {
    expect(createScanSize(500).limits(2_000, { immediateLimit: 300, dueLimit: 300 })).toEqual({
      immediateLimit: 364,
      dueLimit: 316,
    });
  });
});

describe("poll pace", () => {
  it("stays fast for a second after a message, then doubles up to the maximum", async () => {
    const clock = createManualClock();
    const pace = createPollPace({ minMs: 10, maxMs: 250 }, clock);
    pace.found();
    expect(pace.nextWaitMs()).toBe(10);
    await clock.advance(1_000);
    expect([1, 2, 3, 4, 5, 6].map(() => pace.nextWaitMs())).toEqual([20, 40, 80, 160, 250, 250]);
    pace.found();
    expect(pace.nextWaitMs()).toBe(10);
  });
});
