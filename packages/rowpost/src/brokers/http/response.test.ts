import { describe, expect, test } from "vitest";
import type { HttpAnswer } from "./response.ts";
import { outcomeOfAnswer } from "./response.ts";

const nowMs = Date.UTC(2026, 0, 1);
const context = { label: "http://host/hook", webhookId: "t:k", receiptHeader: "rowpost-receipt", nowMs };

function answer(status: number, headers: HttpAnswer["headers"] = {}, body = "", statusText = ""): HttpAnswer {
  return { status, statusText, headers, body: Buffer.from(body) };
}

describe("what an answer means", () => {
  test.each([
    [301, "message", true],
    [308, "message", true],
    [400, "message", false],
    [401, "message", true],
    [403, "message", true],
    [404, "message", true],
    [405, "message", true],
    [408, "message", true],
    [409, "message", false],
    [410, "message", false],
    [413, "message", false],
    [415, "message", false],
    [422, "message", false],
    [425, "message", true],
    [429, "destination", true],
    [431, "message", false],
    [500, "message", true],
    [502, "message", true],
    [503, "message", true],
    [599, "message", true],
  ] as const)("%i is about the %s, retriable: %s", (status, scope, retriable) => {
    expect(outcomeOfAnswer(answer(status), context)).toMatchObject({
      status: "failed",
      scope,
      retriable,
      code: `HTTP_${status}`,
    });
  });

  test("every 2xx is sent, with the webhook-id as its receipt", () => {
    for (const status of [200, 201, 202, 204, 299]) {
      expect(outcomeOfAnswer(answer(status), context)).toBe("t:k");
    }
  });

  test.each([
    ["a header", { "rowpost-receipt": "r-1", "content-type": "application/json" }, '{"id":"body"}', "r-1"],
    ["an id in JSON", { "content-type": "application/json; charset=utf-8" }, '{"id":"abc"}', "abc"],
    ["a number in JSON", { "content-type": "application/problem+json" }, '{"id":12}', "12"],
    [
      "a number with more digits than a double has",
      { "content-type": "application/json" },
      '{"of":{"id":9007199254740993124},"text":"\\"id\\":1","id": 9007199254740993123}',
      "9007199254740993123",
    ],
    ["JSON without an id", { "content-type": "application/json" }, '{"ok":true}', "t:k"],
    ["JSON that is broken", { "content-type": "application/json" }, '{"id":"ab', "t:k"],
    ["JSON that is null", { "content-type": "application/json" }, "null", "t:k"],
    ["an id of no use", { "content-type": "application/json" }, '{"id":{"a":1}}', "t:k"],
    ["text", { "content-type": "text/plain" }, '{"id":"abc"}', "t:k"],
    ["a very long one", { "rowpost-receipt": "x".repeat(300) }, "", "x".repeat(255)],
  ])("the receipt is taken from %s", (_what, headers, body, messageId) => {
    expect(outcomeOfAnswer(answer(200, headers, body), context)).toBe(messageId);
  });

  test.each([
    [429, "7", "destination", 7_000],
    [503, "120", "destination", 120_000],
    [503, "Thu, 01 Jan 2026 00:01:00 GMT", "destination", 60_000],
    [503, "Wed, 31 Dec 2025 00:00:00 GMT", "message", undefined],
    [503, "soon", "message", undefined],
    [503, "0", "message", undefined],
    [429, "99999999999", "destination", 86_400_000],
    [500, "5", "message", 5_000],
    [413, "5", "message", 5_000],
  ] as const)("%i with Retry-After %s waits", (status, value, scope, retryAfterMs) => {
    const result = outcomeOfAnswer(answer(status, { "retry-after": value }), context);
    expect(result).toMatchObject({ scope });
    expect(result).toHaveProperty("retryAfterMs", retryAfterMs);
  });

  test("the reason holds what a person needs: endpoint, status, the beginning of the body on one line", () => {
    const body = `<h1>no\n\n such\u0000 order</h1>${"x".repeat(1_000)}`;
    const result = outcomeOfAnswer(answer(422, {}, body, "Unprocessable Entity"), context);
    const said = /^POST http:\/\/host\/hook answered 422 Unprocessable Entity: <h1>no such order<\/h1>x{178}$/;
    expect(result).toMatchObject({ reason: expect.stringMatching(said) });
  });

  test("a redirect says where to, and that it is not followed", () => {
    const result = outcomeOfAnswer(answer(302, { location: "https://other/hook" }, "", "Found"), context);
    expect(result).toHaveProperty(
      "reason",
      "POST http://host/hook answered 302 Found, a redirect to https://other/hook; redirects are not followed: set the url to the final address",
    );
  });
});
