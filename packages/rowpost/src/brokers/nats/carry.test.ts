import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { OutgoingMessage } from "../broker.ts";
import { decodeNatsHeaders, headersOf, messageIdOf, subjectOf } from "./carry.ts";

function withHeaders(headers: Readonly<Record<string, string>>): OutgoingMessage {
  return {
    id: "1",
    type: "t",
    key: "k",
    topic: "orders",
    body: "",
    contentType: "application/json",
    headers,
    orderingKey: undefined,
    attempt: 1,
  };
}

/** Parses the header lines as a client does: trims blanks at both ends of a value. */
function read(block: unknown): [string, string][] {
  if (!Buffer.isBuffer(block)) throw new Error("refused");
  const [first, ...lines] = block.toString().split("\r\n");
  expect(first).toBe("NATS/1.0");
  expect(lines.slice(-2)).toEqual(["", ""]);
  return lines.slice(0, -2).map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
}

describe("headers", () => {
  test("that NATS can carry go out as they are, behind those for the server", () => {
    const block = headersOf(withHeaders({ tenant: "blue 上海", Percent: "100%25" }), { "Nats-Msg-Id": "t:k" });
    expect(read(block)).toEqual([
      ["Nats-Msg-Id", "t:k"],
      ["tenant", "blue 上海"],
      ["Percent", "100%25"],
    ]);
  });

  test("whatever they hold are read back, and never stand for two lines or for the server's own", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 12 });
    const name = fc.oneof(text, fc.constantFrom("Nats-Rollup", "nats-msg-id", "rowpost-encoded", "a:b", "é", " x "));
    fc.assert(
      fc.property(fc.dictionary(name, text, { maxKeys: 5 }), (dictionary) => {
        const headers = Object.fromEntries(Object.entries(dictionary).filter(([each]) => each !== ""));
        const received = read(headersOf(withHeaders(headers), { "Nats-Msg-Id": "t:k" }));
        expect(received.filter(([each]) => /^nats-/i.test(each))).toEqual([["Nats-Msg-Id", "t:k"]]);
        expect(decodeNatsHeaders(received)).toEqual(headers);
      }),
    );
  });
});

describe("message ids", () => {
  test("of ordinary messages are type:key", () => {
    expect(messageIdOf("order.created", "4711", "")).toBe("order.created:4711");
    expect(messageIdOf("order.created", "订单-1", "shop/")).toBe("shop/order.created:订单-1");
  });

  test("of different messages are different, and one line without blanks", () => {
    const part = fc.string({ unit: fc.constantFrom("a", ":", "%", "3", "A", " ", "\n", "é"), maxLength: 6 });
    fc.assert(
      fc.property(part, part, part, part, (type, key, otherType, otherKey) => {
        const [one, other] = [messageIdOf(type, key, ""), messageIdOf(otherType, otherKey, "")];
        expect(one === other).toBe(type === otherType && key === otherKey);
        expect(one).not.toMatch(/\s/);
      }),
      { numRuns: 1000 },
    );
  });
});

test("subjects keep letters of any script", () => {
  expect(subjectOf("订单.已创建", "订单.已创建")).toBe("订单.已创建");
  expect(subjectOf("a*b", "a*b.c>d")).toBe("a*b.c>d");
  expect(subjectOf("a", "x".repeat(2049))).toMatchObject({ code: "ILLEGAL_SUBJECT", retriable: false });
});
