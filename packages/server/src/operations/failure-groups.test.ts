import { expect, it } from "vitest";
import { patternOf } from "./failure-groups.ts";

it("takes out of a reason what differs from one message to the next, and leaves the cause", () => {
  const same = (...reasons: readonly string[]): void => {
    expect(new Set(reasons.map((reason) => JSON.stringify(patternOf(reason)))).size).toBe(1);
  };
  same("HTTP_503: upstream 10.0.0.7:8080 unavailable", "HTTP_503: upstream 10.0.0.12:8081 unavailable");
  same(
    "REFUSED: order 4711 of 7c9e6679-7425-40de-944b-e07fc1f90ae7 at db-1.shop.local:3306\n  at x (y.js:1:2)",
    "REFUSED: order 12 of 00000000-0000-0000-0000-000000000000 at db-22.shop.local:3307\n  at z (y.js:9:9)",
  );
  same('NO: no "a b" for key deadbeef01', 'NO: no "c" for key 0123456789abcdef');
  same(
    'HTTP_422: {"error":"no such customer 4711","order":"A-1","at":17}',
    'HTTP_422: {"error":"no such customer 12","order":"B","at":3}',
  );
  // A quoted text before a colon is a name only in JSON; elsewhere it may be an id.
  same('NO: Post "https://shop/orders/17": refused', 'NO: Post "https://shop/orders/4": refused');
  same('NO: {"errors":{"ORD-17":["is closed"]}}', 'NO: {"errors":{"ORD-4":["is closed"]}}');
  const [customer, product] = ["customer", "product"].map((what) =>
    patternOf(`HTTP_422: {"id":"7","error": "no such ${what}"}`),
  );
  expect(customer).toEqual({ code: "HTTP_422", pattern: '{"id":#,"error": "no such customer"}' });
  expect(product).not.toEqual(customer);
  // The table cuts a reason at this length, at any position.
  expect(patternOf('HTTP_422: {"error":"no such').pattern).toBe('{"error":"no such');
  expect(patternOf("HTTP_503: upstream 7 消息 <b>")).toEqual({ code: "HTTP_503", pattern: "upstream # 消息 <b>" });
  expect(patternOf("HTTP_503: x")).not.toEqual(patternOf("HTTP_500: x"));
  expect(patternOf("timeout of the peer")).not.toEqual(patternOf("reset by the peer"));
  expect(patternOf("")).toEqual({ code: "", pattern: "" });
});
