import { expect, test } from "vitest";
import { createHeaderLender } from "./lent-headers.ts";

function encoded(lent: Readonly<Record<string, string | undefined>>): readonly (readonly [string, string])[] {
  return Object.entries(lent).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
}

test("each message has its own headers in the same object, whatever their names", () => {
  const lend = createHeaderLender();
  const first = lend({ headers: { a: "1", b: "2" } });
  expect(encoded(first)).toEqual([
    ["a", "1"],
    ["b", "2"],
  ]);
  const special = JSON.parse('{"b":"3","__proto__":"p","constructor":"c"}') as Record<string, string>;
  expect(encoded(lend({ headers: special }))).toEqual([
    ["b", "3"],
    ["__proto__", "p"],
    ["constructor", "c"],
  ]);
  expect(encoded(lend({ headers: {} }))).toEqual([]);
  expect(lend({ headers: { a: "4" } })).toBe(first);
});

test("what somebody else put in is gone for the next message", () => {
  const lend = createHeaderLender();
  const first: Record<string, string | undefined> = lend({ headers: { a: "1" } });
  first["baggage"] = "of the first";
  expect(encoded(lend({ headers: { a: "2" } }))).toEqual([["a", "2"]]);
});

test("names that nobody uses again are not kept for ever", () => {
  const lend = createHeaderLender();
  for (let number = 0; number < 1_000; number += 1) {
    const lent = lend({ headers: { [`name-${number}`]: "x" } });
    expect(encoded(lent)).toEqual([[`name-${number}`, "x"]]);
    expect(Object.keys(lent).length).toBeLessThan(100);
  }
});

test("the ordering key is one of them, for the message that has one", () => {
  const lend = createHeaderLender();
  expect(encoded(lend({ headers: {}, orderingKey: "客户 7" }))).toEqual([["rowpost-ordering-key", "客户 7"]]);
  expect(encoded(lend({ headers: {}, orderingKey: undefined }))).toEqual([]);
});
