import { describe, expect, it } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { silentLogger } from "./logger.ts";
import { createRests, type Resting, type Rests } from "./rests.ts";

const LIVE = (): boolean => false;

function open(): { clock: ReturnType<typeof createManualClock>; rests: Rests; went: string[]; follow: Follow } {
  const clock = createManualClock();
  const rests = createRests(clock, silentLogger, {});
  const went: string[] = [];
  return { clock, rests, went, follow: (name, until) => void until?.then(() => went.push(name)) };
}
type Follow = (name: string, until: Promise<void> | undefined) => void;

describe("messages whose handlers meet somebody away", () => {
  it("rest by themselves while they are few, longer each time, and others begin", async () => {
    const { clock, rests, went, follow } = open();
    const one: Resting = {};
    follow("first", rests.away(one, "a", "away"));
    expect(rests.turn("a", LIVE)).toBeUndefined();
    await clock.advance(999);
    expect(went).toEqual([]);
    await clock.advance(1);
    follow("second", rests.away(one, "a", "away"));
    await clock.advance(1_999);
    expect(went).toEqual(["first"]);
    await clock.advance(1);
    expect(went).toEqual(["first", "second"]);
  });

  it("rest as a type after ten in a row, of which one at a time asks again, until one goes well", async () => {
    const { clock, rests, went, follow } = open();
    for (let count = 1; count <= 9; count += 1) void rests.away({}, "a", "away");
    follow("tenth", rests.away({}, "a", "away"));
    follow(
      "gone",
      rests.turn("a", () => true),
    );
    for (const name of ["b", "c"]) follow(name, rests.turn("a", LIVE));
    expect(rests.turn("another type", LIVE)).toBeUndefined();
    await clock.advance(1_000);
    expect(went).toEqual(["tenth"]);
    expect(rests.turn("a", LIVE)).toBeUndefined();
    follow("d", rests.turn("a", LIVE));
    follow("tenth again", rests.away({}, "a", "away"));
    await clock.advance(2_000);
    expect(went).toEqual(["tenth", "gone", "b"]);
    rests.well("a");
    await clock.advance(0);
    expect(went).toEqual(["tenth", "gone", "b", "c", "d", "tenth again"]);
    expect(rests.turn("a", LIVE)).toBeUndefined();
  });

  it("without a type rest without those that have one", () => {
    const { rests } = open();
    for (let count = 1; count <= 10; count += 1) void rests.away({}, "", "away");
    expect(rests.turn("a", LIVE)).toBeUndefined();
    rests.well("a");
    expect(rests.turn("", LIVE)).toBeDefined();
  });

  it("have failed by themselves when others of their type went well meanwhile, or after a hundred rests", () => {
    const { rests } = open();
    const one: Resting = {};
    expect(rests.away(one, "a", "away")).toBeDefined();
    rests.well("b");
    expect(rests.away(one, "a", "away")).toBeDefined();
    rests.well("a");
    expect(rests.away(one, "a", "away")).toBeUndefined();
    const lone: Resting = {};
    for (let count = 1; count <= 100; count += 1) expect(rests.away(lone, "c", "away")).toBeDefined();
    expect(rests.away(lone, "c", "away")).toBeUndefined();
  });

  it("wait no longer when it is closed", async () => {
    const { clock, rests, went, follow } = open();
    for (let count = 1; count <= 10; count += 1) follow("away", rests.away({}, "a", "away"));
    follow("turn", rests.turn("a", LIVE));
    rests.close();
    follow("late", rests.away({}, "a", "away"));
    await clock.advance(0);
    expect(went.sort()).toEqual([...Array.from({ length: 10 }, () => "away"), "late", "turn"]);
  });
});
