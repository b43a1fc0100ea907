import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scannedMessage } from "../../../test/relay/scanned-message.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import type { KeyQueueRow, ScannedMessage } from "../store.ts";
import { keyRanges, leadingRuns, withoutGaps } from "./key-order.ts";

function scanned(id: number, orderingKey: string | null, change: Partial<ScannedMessage> = {}): ScannedMessage {
  return scannedMessage({ id: String(id), orderingKey, ...change });
}

function queued(id: number, orderingKey: string, change: Partial<KeyQueueRow> = {}): KeyQueueRow {
  return {
    id: String(id),
    orderingKey,
    state: "pending",
    due: true,
    resend: false,
    retryCount: 0,
    type: "t",
    ...change,
  };
}

const nobody = (): boolean => false;
const ids = (messages: readonly ScannedMessage[]): string[] => messages.map(({ id }) => id);

describe("order per key (rule: key-order)", () => {
  it("takes the leading run of due, scanned rows of each key", () => {
    const candidates = [scanned(1, "a"), scanned(2, "a"), scanned(3, "b"), scanned(10, "a")];
    const queues = [queued(1, "a"), queued(2, "a"), queued(10, "a"), queued(3, "b")];
    const { ready, behind } = leadingRuns(candidates, queues, nobody);
    expect(ids(ready)).toEqual(["1", "2", "3", "10"]);
    expect(behind).toEqual([]);
  });

  it.each([
    ["waits for its backoff or delay", { due: false }],
    ["is suspended", { state: "suspended" }],
    ["failed and blocks", { state: "failed" }],
  ] as const)("stops a key behind a head that %s, and no other key", (_why, head) => {
    const candidates = [scanned(2, "a"), scanned(3, "b")];
    const { ready, behind } = leadingRuns(candidates, [queued(1, "a", head), queued(2, "a"), queued(3, "b")], nobody);
    expect(ids(ready)).toEqual(["3"]);
    expect(behind.map(({ row, headId }) => [row.id, headId])).toEqual([["2", "1"]]);
  });

  it("lets what stands behind a row that is being sent go soon", () => {
    const queues = [queued(1, "a", { state: "sending" }), queued(2, "a")];
    const { ready, behind, next } = leadingRuns([scanned(2, "a")], queues, nobody);
    expect([ids(ready), behind, ids(next)]).toEqual([[], [], ["2"]]);
  });

  it("tells apart what stands behind a message that could go and was not scanned", () => {
    const { ready, behind, unseen } = leadingRuns([scanned(2, "a")], [queued(1, "a"), queued(2, "a")], nobody);
    expect([ids(ready), behind]).toEqual([[], []]);
    expect(unseen.map(({ row, headId }) => [row.id, headId])).toEqual([["2", "1"]]);
  });

  it("stops at a row of the key that the scan did not bring", () => {
    const { ready } = leadingRuns(
      [scanned(1, "a"), scanned(3, "a")],
      [queued(1, "a"), queued(2, "a"), queued(3, "a")],
      nobody,
    );
    expect(ids(ready)).toEqual(["1"]);
  });

  it("lets a resend go and pass, outside the order", () => {
    const candidates = [scanned(1, "a", { resend: true }), scanned(3, "a")];
    const queues = [queued(1, "a", { resend: true }), queued(2, "a", { due: false }), queued(3, "a")];
    const { ready, behind } = leadingRuns(candidates, queues, (row) => row.resend);
    expect(ids(ready)).toEqual(["1"]);
    expect(behind.map(({ row, headId }) => [row.id, headId])).toEqual([["3", "2"]]);
  });

  it("never lets a message go before an earlier unfinished one of its key", () => {
    const row = fc.record({ key: fc.constantFrom("a", "b", "c"), due: fc.boolean(), scanned: fc.boolean() });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 40 }), (rows) => {
        const queues = rows
          .map((entry, index) => queued(index + 1, entry.key, { due: entry.due }))
          .sort((left, right) => left.orderingKey.localeCompare(right.orderingKey) || compareIds(left.id, right.id));
        const candidates = rows.flatMap((entry, index) =>
          entry.scanned && entry.due ? [scanned(index + 1, entry.key)] : [],
        );
        const { ready } = leadingRuns(candidates, queues, nobody);
        const going = new Set(ids(ready));
        for (const message of ready) {
          const earlier = queues.filter(
            (other) => other.orderingKey === message.orderingKey && compareIds(other.id, message.id) < 0,
          );
          expect(earlier.every((other) => going.has(other.id))).toBe(true);
        }
      }),
    );
  });

  it("asks for each key up to its greatest scanned id, compared as numbers", () => {
    expect(keyRanges([scanned(9, "a"), scanned(10, "a"), scanned(4, null), scanned(7, "b")])).toEqual([
      { orderingKey: "a", upToId: "10" },
      { orderingKey: "b", upToId: "7" },
    ]);
  });
});

it("holds back what was claimed behind a message of its key that was not (rule: key-order)", () => {
  const batch = [
    { id: "1", orderingKey: "a" },
    { id: "2", orderingKey: "b" },
    { id: "3", orderingKey: "a" },
    { id: "4", orderingKey: null },
    { id: "5", orderingKey: "b" },
  ];
  const { go, behind } = withoutGaps(batch, new Set(["2", "3", "4", "5"]));
  expect({ go: [...go], behind: [...behind] }).toEqual({ go: ["2", "4", "5"], behind: ["3"] });
});
