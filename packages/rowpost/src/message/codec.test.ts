import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidMessageError } from "../runtime/errors.ts";
import { decodeBody, decodeHeaders, encodeBody, encodeHeaders, isJsonContentType } from "./codec.ts";

const typed = { hasContentType: true };
const untyped = { hasContentType: false };

/** JSON values as any program may hold them; -0 is 0 in JSON. */
const jsonValue = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const character = fc.oneof(
  fc.string({ minLength: 1, maxLength: 1 }),
  fc.constantFrom("单", "😀", "\ufeff", "\r\n", "\u2028", "\0", "\ud83d"),
);
const text = fc.string({ unit: character }).filter((value) => !value.includes("\0") && !/\p{Surrogate}/u.test(value));

describe("bodies come back as they were", () => {
  test("JSON values", () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const row = encodeBody(value, undefined);
        expect(row.contentType).toBeNull();
        const decoded = decodeBody(row, typed);
        if ("broken" in decoded) throw new Error(decoded.broken);
        expect(decoded.contentType).toBe("application/json");
        expect(JSON.parse(String(decoded.body))).toEqual(value);
      }),
    );
  });

  test("text of another type, byte for byte", () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(decodeBody(encodeBody(value, "text/csv"), typed)).toEqual({ body: value, contentType: "text/csv" });
      }),
    );
  });

  test("bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.option(fc.constant("image/png"), { nil: undefined }), (bytes, contentType) => {
        const decoded = decodeBody(encodeBody(bytes, contentType), typed);
        if ("broken" in decoded) throw new Error(decoded.broken);
        expect(decoded.contentType).toBe(contentType ?? "application/octet-stream");
        expect(Buffer.from(decoded.body as Uint8Array)).toEqual(Buffer.from(bytes));
      }),
    );
  });

  test("a view of a larger buffer gives its own bytes only", () => {
    const view = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
    expect(encodeBody(view, undefined).body).toBe(Buffer.from([2, 3]).toString("base64"));
  });

  test("headers", () => {
    const headers = fc.dictionary(fc.string({ minLength: 1 }), fc.string());
    fc.assert(
      fc.property(headers, (map) => {
        expect(decodeHeaders(encodeHeaders(map))).toEqual({ headers: { ...map } });
      }),
    );
    expect(encodeHeaders(undefined)).toBeNull();
    expect(encodeHeaders({})).toBeNull();
  });
});

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
    // JSON asks no toJSON of what a toJSON returned.
    [{ own: { toJSON: () => new Date(0) } }, "body.own is a Date"],
    [[{ toJSON: () => undefined }], "body[0] is undefined"],
    [{ own: { toJSON: () => () => 1 } }, "body.own is a function"],
    [{ toJSON: () => fail("no BigInt here") }, "body.toJSON throws: no BigInt here"],
    [{ toJSON: () => undefined }, "its toJSON returns nothing"],
    [cyclic, "circular"],
  ])("%#", (body, reason) => {
    expect(() => encodeBody(body, undefined)).toThrow(InvalidMessageError);
    expect(() => encodeBody(body, undefined)).toThrow(reason);
  });

  test("nesting that a consumer's parser could not follow", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 2_000; level++) deep = [deep];
    expect(() => encodeBody(deep, undefined)).toThrow("nests deeper");
  });

  test("fields that are undefined are left out, dates are texts, and toJSON is called", () => {
    const date = new Date(0);
    expect(encodeBody({ a: undefined, date, own: { toJSON: () => [1] } }, undefined).body).toBe(
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
    expect(JSON.parse(encodeBody(body, undefined).body)).toEqual({
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
    expect(() => encodeBody("a\0b", "text/plain")).toThrow("NUL");
    expect(() => encodeBody("half \ud83d", "text/plain")).toThrow("surrogate");
    expect(() => encodeBody({ a: 1 }, "text/plain")).toThrow("must be a string or a Uint8Array, not an object");
    // JSON escapes both.
    expect(encodeBody("a\0b\ud83d", undefined).body).toBe('"a\\u0000b\\ud83d"');
  });
});

describe("rows that others wrote", () => {
  test("whatever stands there, decoding says what it is or why it is broken, and never throws", () => {
    const anyText = fc.oneof(fc.string({ unit: character }), fc.json(), fc.base64String());
    const anyType = fc.option(
      fc.oneof(fc.constantFrom("", "application/json", "text/plain", ";base64", "a/b;base64"), fc.string()),
    );
    fc.assert(
      fc.property(anyText, anyType, fc.boolean(), (body, contentType, hasContentType) => {
        const decoded = decodeBody({ body, contentType }, { hasContentType });
        if ("broken" in decoded) expect(decoded.broken).toMatch(/^the /);
        else expect(typeof decoded.contentType).toBe("string");
        const headers = decodeHeaders(body);
        if (!("broken" in headers))
          for (const value of Object.values(headers.headers)) expect(typeof value).toBe("string");
      }),
      { numRuns: 500 },
    );
  });

  test("JSON that is none is broken; without the column it is text", () => {
    expect(decodeBody({ body: "{", contentType: null }, typed)).toEqual({
      broken: "the content type is application/json but the body is not JSON",
    });
    expect(decodeBody({ body: "", contentType: "application/cloudevents+json" }, typed)).toHaveProperty("broken");
    expect(decodeBody({ body: "{", contentType: null }, untyped)).toEqual({ body: "{", contentType: "text/plain" });
    expect(decodeBody({ body: ' {"a":1}', contentType: null }, untyped)).toEqual({
      body: ' {"a":1}',
      contentType: "application/json",
    });
  });

  test("base64 is read strictly", () => {
    const contentType = "image/png;base64";
    expect(decodeBody({ body: "AQI=", contentType }, typed)).toEqual({
      body: Buffer.from([1, 2]),
      contentType: "image/png",
    });
    for (const body of ["AQI", "AQI=\n", "AQJ=", "A*I=", "-_-_", "AQ I="]) {
      expect(decodeBody({ body, contentType }, typed), body).toHaveProperty("broken");
    }
  });

  test("headers must be an object of strings", () => {
    for (const none of [null, "", "{}"]) expect(decodeHeaders(none)).toEqual({ headers: {} });
    for (const broken of ["{", "[]", '["a"]', "1", '"a"', "null", '{"a":1}', '{"a":null}', '{"a":{}}']) {
      expect(decodeHeaders(broken), broken).toHaveProperty("broken");
    }
  });
});

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
