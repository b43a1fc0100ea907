import { expect, test } from "vitest";
import { filterLine, parseFilter } from "./filter.ts";

test.each([
  ["invoice:4711", { word: "invoice:4711" }],
  ["topic:orders invoice:4711", { topic: "orders", key: "invoice:4711" }],
  ['"order:4711"', { word: "order:4711" }],
  ['key:"order:4711"', { key: "order:4711" }],
  ["order:4711", { orderingKey: "4711" }],
])("%s: a colon is not always behind the name of a filter", (line, query) => {
  expect(parseFilter(line, [])).toEqual(query);
  expect(parseFilter(filterLine(query), [])).toEqual(query);
});
