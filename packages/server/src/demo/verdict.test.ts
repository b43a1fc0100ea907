import { expect, test } from "vitest";
import { isGood, judge, verdictLine } from "./verdict.ts";

test("lost is what has no effect, phantom what has one too many", () => {
  const effects = new Map([
    ["r1-1", 1],
    ["r1-2", 2],
    ["r1-9", 1],
  ]);
  expect(judge(effects, new Set(["r1-1", "r1-2", "r1-3"]))).toEqual({ committed: 3, lost: 1, phantom: 2 });
});

test("a run is good when everything that committed was sent and consumed once, and nothing else", () => {
  const good = { committed: 3, rolledBack: 1, sent: 3, consumed: 3, duplicates: 2, lost: 0, phantom: 0 };
  expect(verdictLine(good)).toBe("committed=3 rolled_back=1 sent=3 consumed=3 duplicates=2 lost=0 phantom=0");
  expect(isGood(good)).toBe(true);
  for (const bad of [{ lost: 1 }, { phantom: 1 }, { consumed: 2 }, { sent: 2 }]) {
    expect(isGood({ ...good, ...bad })).toBe(false);
  }
});
