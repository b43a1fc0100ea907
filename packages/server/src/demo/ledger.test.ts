import { expect, test } from "vitest";
import { createLedger, isGood, judge, verdictLine } from "./ledger.ts";

test("lost and phantom are counted from what was received, other runs are not", () => {
  const ledger = createLedger("r1");
  for (const order of ["r1-1", "r1-2", "r1-2", "r1-9", "r0-1", ""]) ledger.receive(order);
  expect({ received: ledger.received, duplicates: ledger.duplicates }).toEqual({ received: 3, duplicates: 1 });
  expect(judge(ledger, new Set(["r1-1", "r1-2", "r1-3"]))).toEqual({ committed: 3, lost: 1, phantom: 1 });
});

test("a run is good when everything that committed was sent and received, and nothing else", () => {
  const good = { committed: 3, rolledBack: 1, sent: 3, failed: 0, lost: 0, phantom: 0 };
  expect(verdictLine(good)).toBe("committed=3 rolled_back=1 sent=3 failed=0 lost=0 phantom=0");
  expect(isGood(good)).toBe(true);
  for (const bad of [{ lost: 1 }, { phantom: 1 }, { failed: 1 }, { sent: 2 }]) {
    expect(isGood({ ...good, ...bad })).toBe(false);
  }
});
