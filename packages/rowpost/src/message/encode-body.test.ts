import { describe, expect, test } from "vitest";
import { InvalidMessageError } from "../runtime/errors.ts";
import type { EncodedBody } from "./content-type.ts";
import { encodeBody } from "./encode-body.ts";
import { DEFAULT_LIMITS } from "./message.ts";

const encoded = (body: unknown, contentType?: string): EncodedBody =>
  encodeBody("message t:k", { body, contentType }, DEFAULT_LIMITS.bodyBytes);

function fail(reason: string): never {
  throw new Error(reason);
}

describe("a body that JSON would change is refused, with where it is", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = { cyclic };
  test.each([
    [undefined, "body is undefined"],
    [() => 1, "body is a function"],
    [Symbol("x"), "body is a symbol"],
    [1n, "body is a BigInt"],
    [Number.NaN, "body is NaN"],
    [{ order: { lines: [{ price: Number.POSITIVE_INFINITY }] } }, "body.order.lines[0].price is Infinity"],
    [{ total: 12n }, "body.total is a BigInt"],
    [{ on: () => {} }, "body.on is a function"],
    [[1, undefined], "body[1] is undefined"],
    [{ tags: new Set(["a"]) }, "body.tags is a Set"],
    [{ byId: new Map() }, "body.byId is a Map"],
    [{ file: new Uint8Array(2) }, "body.file is a Uint8Array"],
    [{ later: Promise.resolve() }, "body.later is a Promise"],
    [{ file: Buffer.from("hi") }, "body.file is a Buffer"],
    [{ file: new ArrayBuffer(2) }, "body.file is an ArrayBuffer"],
    [{ at: [new Date("x")] }, "body.at[0] is an invalid Date"],
    [{ error: new Error("boom") }, "body.error is an Error"],
    [{ error: Object.assign(new TypeError("boom"), { code: "E" }) }, "body.error is a TypeError"],
    [{ like: /x/ }, "body.like is a RegExp"],
    [{ query: new URLSearchParams("a=1") }, "body.query is a URLSearchParams"],
    [{ seen: new WeakMap() }, "body.seen is a WeakMap"],
    [{ names: ["a"].values() }, "body.names is an"],
    [{ price: new Number(Number.NaN) }, "body.price is NaN"],
    [{ total: Object(12n) }, "body.total is a BigInt"],
    [{ own: { toJSON: () => ({ price: Number.NaN }) } }, "body.own.price is NaN"],
    [{ own: { toJSON: () => [new Map()] } }, "body.own[0] is a Map"],
    // JSON calls no toJSON on the result of a toJSON.
    [{ own: { toJSON: () => new Date(0) } }, "body.own is a Date"],
    [[{ toJSON: () => undefined }], "body[0] is undefined"],
    [{ own: { toJSON: () => () => 1 } }, "body.own is a function"],
    [{ toJSON: () => fail("no BigInt here") }, "body.toJSON throws: no BigInt here"],
    [{ toJSON: () => undefined }, "its toJSON returns nothing"],
    [cyclic, "circular"],
  ])("%#", (body, reason) => {
    expect(() => encoded(body)).toThrow(InvalidMessageError);
    expect(() => encoded(body)).toThrow(reason);
  });

  test("nesting that a consumer's parser could not follow", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 2_000; level++) deep = [deep];
    expect(() => encoded(deep)).toThrow("nests deeper");
  });

  test("fields that are undefined are left out, dates are texts, and toJSON is called", () => {
    const date = new Date(0);
    expect(encoded({ a: undefined, date, own: { toJSON: () => [1] } }).body).toBe(
      '{"date":"1970-01-01T00:00:00.000Z","own":[1]}',
    );
  });

  test("classes of the user's, boxed values and a toJSON that knows its place", () => {
    class Nothing {}
    class Money {
      readonly cents = 5;
      get [Symbol.toStringTag](): string {
        return "Money";
      }
    }
    class Pairs extends Map<string, number> {
      toJSON(): unknown {
        return [...this];
      }
    }
    const body = {
      nothing: new Nothing(),
      money: new Money(),
      bare: Object.create(null) as unknown,
      boxed: [new Number(1), new String("a"), new Boolean(false)],
      pairs: new Pairs([["a", 1]]),
      left: { toJSON: () => undefined },
      places: [{ toJSON: (key: string) => (key === "0" ? "first" : Number.NaN) }],
      url: new URL("https://example.com/"),
    };
    expect(JSON.parse(encoded(body).body)).toEqual({
      nothing: {},
      money: { cents: 5 },
      bare: {},
      boxed: [1, "a", false],
      pairs: [["a", 1]],
      places: ["first"],
      url: "https://example.com/",
    });
  });

  test("text that no column can hold, and values for a type that takes text only", () => {
    expect(() => encoded("a\0b", "text/plain")).toThrow("NUL");
    expect(() => encoded("half \ud83d", "text/plain")).toThrow("surrogate");
    expect(() => encoded({ a: 1 }, "text/plain")).toThrow("must be a string or a Uint8Array, not an object");
    // JSON escapes both.
    expect(encoded("a\0b\ud83d").body).toBe('"a\\u0000b\\ud83d"');
  });
});

test("a JSON text goes as it stands with jsonText, and only if it is one", () => {
  const given = (body: unknown, contentType?: string): EncodedBody =>
    encodeBody("message t:k", { body, contentType, jsonText: true }, DEFAULT_LIMITS.bodyBytes);
  const text = '{"n": 12345678901234567890}';
  expect(given(text)).toEqual({ body: text, contentType: null });
  expect(given("[]", "application/cloudevents+json").contentType).toBe("application/cloudevents+json");
  expect(encoded(text).body).toBe(JSON.stringify(text));
  for (const [body, type] of [["{n:1}"], [{}], ["{}", "text/plain"], [Buffer.from("{}")]] as const) {
    expect(() => given(body, type)).toThrow(/jsonText is/);
  }
});
