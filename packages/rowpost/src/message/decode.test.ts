import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EncodedBody } from "./content-type.ts";
import { decodeBody, decodeHeaders } from "./decode.ts";
import { encodeBody } from "./encode-body.ts";
import { encodeHeaders } from "./encode-headers.ts";
import { DEFAULT_LIMITS } from "./message.ts";

const typed = { hasContentType: true };
const untyped = { hasContentType: false };

/** Arbitrary JSON values; -0 is 0 in JSON. */
const jsonValue = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const character = fc.oneof(
  fc.string({ minLength: 1, maxLength: 1 }),
  fc.constantFrom("单", "😀", "\ufeff", "\r\n", "\u2028", "\0", "\ud83d"),
);
const text = fc.string({ unit: character }).filter((value) => !value.includes("\0") && !/\p{Surrogate}/u.test(value));

const encoded = (body: unknown, contentType?: string): EncodedBody =>
  encodeBody("message t:k", { body, contentType }, DEFAULT_LIMITS.bodyBytes);

describe("bodies come back as they were", () => {
  test("JSON values", () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const row = encoded(value);
        expect(row.contentType).toBeNull();
        const decoded = decodeBody(row, typed);
        if ("broken" in decoded) throw new Error(decoded.broken);
        expect(decoded.contentType).toBe("application/json");
        expect(JSON.parse(String(decoded.body))).toEqual(value);
        expect(decoded.value).toEqual(value);
      }),
    );
  });

  test("text of another type, byte for byte", () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(decodeBody(encoded(value, "text/csv"), typed)).toEqual({ body: value, contentType: "text/csv", value });
      }),
    );
  });

  test("bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.option(fc.constant("image/png"), { nil: undefined }), (bytes, contentType) => {
        const decoded = decodeBody(encoded(bytes, contentType), typed);
        if ("broken" in decoded) throw new Error(decoded.broken);
        expect(decoded.contentType).toBe(contentType ?? "application/octet-stream");
        expect(Buffer.from(decoded.body as Uint8Array)).toEqual(Buffer.from(bytes));
        expect(decoded.value).toBe(decoded.body);
      }),
    );
  });

  test("a view of a larger buffer gives its own bytes only", () => {
    const view = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
    expect(encoded(view).body).toBe(Buffer.from([2, 3]).toString("base64"));
  });

  test("headers", () => {
    const name = fc.stringMatching(/^[\w!#$%&'*+.^`|~-]{1,40}$/).filter((value) => !/^rowpost-/i.test(value));
    const value = text.filter((characters) => !/[\p{Cc}]/u.test(characters));
    fc.assert(
      fc.property(fc.dictionary(name, value), (map) => {
        expect(decodeHeaders(encodeHeaders("message t:k", map))).toEqual({ headers: { ...map } });
      }),
    );
    expect(encodeHeaders("message t:k", undefined)).toBeNull();
    expect(encodeHeaders("message t:k", {})).toBeNull();
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
    expect(decodeBody({ body: "{", contentType: null }, untyped)).toEqual({
      body: "{",
      contentType: "text/plain",
      value: "{",
    });
    expect(decodeBody({ body: ' {"a":1}', contentType: null }, untyped)).toEqual({
      body: ' {"a":1}',
      contentType: "application/json",
      value: { a: 1 },
    });
  });

  test("base64 is read strictly", () => {
    const contentType = "image/png;base64";
    expect(decodeBody({ body: "AQI=", contentType }, typed)).toEqual({
      body: Buffer.from([1, 2]),
      contentType: "image/png",
      value: Buffer.from([1, 2]),
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
