import { describe, expect, test } from "vitest";
import type { OutgoingMessage } from "../broker.ts";
import { receiptOf, recordOf } from "./carry.ts";

function message(changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    id: "1",
    type: "order.created",
    key: "4711",
    topic: "orders",
    body: "{}",
    contentType: "application/json",
    headers: { "rowpost-key": "4711" },
    orderingKey: undefined,
    attempt: 1,
    ...changes,
  };
}

describe("a record", () => {
  test("has the message key, or the ordering key, as its key", () => {
    expect(String(recordOf(message()).key)).toBe("4711");
    expect(String(recordOf(message({ orderingKey: "客户-7" })).key)).toBe("客户-7");
  });

  test("has the body byte for byte, and an empty one is not a tombstone", () => {
    const view = Uint8Array.from([1, 2, 3, 4, 5]).subarray(1, 4);
    expect([...recordOf(message({ body: view })).value]).toEqual([2, 3, 4]);
    expect(recordOf(message({ body: "" })).value).toEqual(Buffer.alloc(0));
  });

  test("tells the media type of a body that is not JSON, unless the user does", () => {
    expect(recordOf(message()).headers).toEqual({ "rowpost-key": "4711" });
    expect(recordOf(message({ contentType: "text/plain" })).headers).toMatchObject({ "content-type": "text/plain" });
    const own = { "Content-Type": "text/csv" };
    expect(recordOf(message({ contentType: "text/plain", headers: own })).headers).toEqual(own);
  });

  test("knows how large it can be", () => {
    const headers = { note: "é".repeat(100) };
    expect(recordOf(message({ body: "x".repeat(1000), headers })).bytes).toBeGreaterThan(1000 + 200 + 4 + 4);
  });
});

describe("the receipt", () => {
  test("is topic, partition and offset, beyond what a number holds", () => {
    expect(receiptOf("orders", 3, 9_007_199_254_740_993n)).toBe("orders-3@9007199254740993");
  });

  test("fits its column, whatever the topic's name", () => {
    const receipt = receiptOf("t".repeat(249), 4_000, 2n ** 62n);
    expect(receipt).toHaveLength(255);
    expect(receipt.endsWith(`-4000@${2n ** 62n}`)).toBe(true);
  });
});
