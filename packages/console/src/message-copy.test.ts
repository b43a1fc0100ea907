import { expect, test } from "vitest";
import { headerLines, headersOf, nextKey, stretchOf } from "./message-copy.ts";

test("a key is proposed that says of which it is the copy", () => {
  expect(["order-7", "order-7~2", "order~x", "~9", "a~999999", "a\n~2"].map(nextKey)).toEqual([
    ...["order-7~2", "order-7~3", "order~x~2", "~10", "a~1000000", "a\n~3"],
  ]);
});

test("headers become lines and come back, without those that rowpost makes", () => {
  expect(headerLines(undefined)).toBeUndefined();
  expect([headerLines(null), headerLines(""), headerLines("{}")]).toEqual(["", "", ""]);
  const headers = { traceparent: "00-ab-01", "x-url": "http://a:1/ b", empty: "" };
  const lines = headerLines(JSON.stringify({ ...headers, "rowpost-copy-of": "7" }));
  expect(lines).toBe("traceparent: 00-ab-01\nx-url: http://a:1/ b\nempty: ");
  expect(headersOf(`\n${lines}\n \n`)).toEqual(headers);
  expect(headerLines("{broken")).toBe("{broken");
  expect(headersOf("alone")).toEqual({ alone: "" });
});

test("what is different stands between what is the same on both sides", () => {
  expect(stretchOf("same", "same")).toBeUndefined();
  expect(stretchOf('{"price":1}', '{"price":25}')).toEqual({
    front: '{"price":',
    removed: "1",
    added: "25",
    behind: "}",
  });
  expect(stretchOf("aa", "aaa")).toEqual({ front: "aa", removed: "", added: "a", behind: "" });
  expect(stretchOf("x😀y", "x😁y")).toEqual({ front: "x", removed: "😀", added: "😁", behind: "y" });
  const long = stretchOf(`${"a".repeat(99)}1${"b".repeat(99)}`, `${"a".repeat(99)}2${"b".repeat(99)}`);
  expect([long?.front, long?.behind]).toEqual([`…${"a".repeat(40)}`, `${"b".repeat(40)}…`]);
  expect(stretchOf("", "all")).toEqual({ front: "", removed: "", added: "all", behind: "" });
});
