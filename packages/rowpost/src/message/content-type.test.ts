import { expect, test } from "vitest";
import { isJsonContentType } from "./content-type.ts";

test.each([
  ["application/json", true],
  ["application/json; charset=utf-8", true],
  ["application/cloudevents+json", true],
  ["text/json", true],
  ["APPLICATION/JSON", true],
  ["application/jsonl", false],
  ["text/plain; x=/json", false],
  ["application/octet-stream", false],
])("%s is JSON: %s", (contentType, json) => {
  expect(isJsonContentType(contentType)).toBe(json);
});
