import { expect, test } from "vitest";
import { onlyTopic, reaches } from "./topics.ts";

test("a topic is reached by its name or by its beginning, and all are where nothing is said", () => {
  const of = (...topics: string[]) =>
    ["orders", "orders.paid", "Orders", "order"].filter((each) => reaches(topics, each));
  expect([of("orders"), of("orders.*"), of("orders*"), of("*").length, of("stock")]).toEqual([
    ...[["orders"], ["orders.paid"], ["orders", "orders.paid"], 4, []],
  ]);
  expect(reaches(undefined, "orders")).toBe(true);
});

test("one name alone can be looked for", () => {
  expect([["orders"], ["orders.*"], ["a", "b"], undefined].map(onlyTopic)).toEqual([
    ...["orders", undefined, undefined, undefined],
  ]);
});
