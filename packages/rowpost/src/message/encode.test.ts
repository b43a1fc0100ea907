import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigurationError, InvalidMessageError } from "../runtime/errors.ts";
import { encodeMessage, LONGEST_DELAY_MS, type MessageRules } from "./encode.ts";
import { DEFAULT_LIMITS, type NewMessage } from "./message.ts";

const rules: MessageRules = {
  limits: DEFAULT_LIMITS,
  layoutName: "default",
  columns: { headers: "headers", contentType: "content_type", orderingKey: "ordering_key", createdBy: "created_by" },
  createdBy: "shop",
};
const nothingOptional: MessageRules = {
  ...rules,
  layoutName: "message_table",
  columns: { headers: undefined, contentType: undefined, orderingKey: undefined, createdBy: undefined },
};
const message = (change: Record<string, unknown> = {}): NewMessage => ({
  type: "order.created",
  key: "o-1",
  topic: "orders",
  body: { n: 1 },
  ...change,
});

test("a message becomes its row", () => {
  expect(encodeMessage(message({ headers: { a: "b" }, orderingKey: "c-1", delayMs: 5 }), rules)).toEqual({
    type: "order.created",
    key: "o-1",
    topic: "orders",
    body: '{"n":1}',
    headers: '{"a":"b"}',
    contentType: null,
    orderingKey: "c-1",
    delayMs: 5,
    deliverAtMs: null,
    createdBy: "shop",
  });
  expect(encodeMessage(message({ createdBy: "job" }), rules).createdBy).toBe("job");
});

/** Characters that databases or JavaScript treat specially, among plain ones. */
const awkward = fc.constantFrom(
  "a",
  "B",
  "7",
  ".",
  " ",
  "\t",
  "\u3000",
  "é",
  "e\u0301",
  "ß",
  "单",
  "😀",
  "\ud83d",
  "\ude00",
  "\0",
);

describe("names and keys", () => {
  const fields = ["type", "key", "topic", "orderingKey", "createdBy"] as const;
  test.each(fields)("%s: what a database could cut, fold or not hold is refused", (field) => {
    const limit = DEFAULT_LIMITS[field];
    for (const value of ["", " ", "a ", "a\t", "a\u3000", "a\0b", "half \ud83d", 1, {}]) {
      expect(() => encodeMessage(message({ [field]: value }), rules), JSON.stringify(value)).toThrow(
        InvalidMessageError,
      );
    }
    expect(() => encodeMessage(message({ [field]: "x".repeat(limit + 1) }), rules)).toThrow(`at most ${limit}`);
    expect(() => encodeMessage(message({ [field]: "😀".repeat(limit + 1) }), rules)).toThrow(`${limit + 1} characters`);
    expect(encodeMessage(message({ [field]: "x".repeat(limit) }), rules)[field]).toHaveLength(limit);
    // A VARCHAR counts characters, JavaScript counts two for each of these.
    expect(encodeMessage(message({ [field]: "😀".repeat(limit) }), rules)[field]).toHaveLength(2 * limit);
  });

  test("what is accepted stands in the row byte for byte", () => {
    fc.assert(
      fc.property(fc.string({ unit: awkward, minLength: 1, maxLength: 70 }), (value) => {
        let row: ReturnType<typeof encodeMessage>;
        try {
          row = encodeMessage(message({ type: value, key: value, topic: value, orderingKey: value }), rules);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidMessageError);
          return;
        }
        expect([row.type, row.key, row.topic, row.orderingKey]).toEqual([value, value, value, value]);
        expect(Buffer.from(value, "utf8").toString("utf8")).toBe(value);
      }),
    );
  });
});

describe("whatever is handed in", () => {
  test("is encoded or refused with a typed error", () => {
    const anyMessage = fc.oneof(
      fc.anything(),
      fc.record(
        {
          type: fc.anything(),
          key: fc.anything(),
          topic: fc.anything(),
          body: fc.anything(),
          headers: fc.anything(),
          delayMs: fc.anything(),
          deliverAt: fc.anything(),
          contentType: fc.anything(),
        },
        { requiredKeys: [] },
      ),
      fc.record({ type: fc.constant("t"), key: fc.constant("k"), topic: fc.constant("x"), body: fc.anything() }),
    );
    fc.assert(
      fc.property(anyMessage, (value) => {
        try {
          const row = encodeMessage(value as NewMessage, rules);
          expect(typeof row.body).toBe("string");
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidMessageError);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("a field that does not exist is named", () => {
    expect(() => encodeMessage(message({ delay: 5 }), rules)).toThrow(
      'message order.created:o-1: "delay" is not a field',
    );
  });
});

describe("delay", () => {
  test.each([-1, 0.5, Number.NaN, "5", LONGEST_DELAY_MS + 1, null])("delayMs %s is refused", (delayMs) => {
    expect(() => encodeMessage(message({ delayMs }), rules)).toThrow("delayMs");
  });
  test("0 is at once", () => {
    expect(encodeMessage(message({ delayMs: 0 }), rules).delayMs).toBeNull();
  });
  test.each([
    ["2027-01-31T09:00:00+08:00", Date.UTC(2027, 0, 31, 1)],
    ["2027-01-31T09:00Z", Date.UTC(2027, 0, 31, 9)],
    ["2027-01-31T09:00:00.250Z", Date.UTC(2027, 0, 31, 9, 0, 0, 250)],
    [new Date(5), 5],
    ["2001-01-01T00:00:00Z", Date.UTC(2001, 0, 1)],
  ])("deliverAt %s", (deliverAt, instantMs) => {
    expect(encodeMessage(message({ deliverAt }), rules).deliverAtMs).toBe(instantMs);
  });
  test.each([
    "2027-01-31 09:00:00",
    "2027-01-31T09:00:00",
    "2027-02-30T09:00:00Z",
    "2027-13-01T09:00:00Z",
    "2027-01-31T25:00:00Z",
    "tomorrow",
    new Date(Number.NaN),
    1_800_000_000_000,
    new Date(-1),
    null,
  ])("deliverAt %s is refused", (deliverAt) => {
    expect(() => encodeMessage(message({ deliverAt }), rules)).toThrow("deliverAt");
  });
  test("both are refused", () => {
    expect(() => encodeMessage(message({ delayMs: 1, deliverAt: new Date() }), rules)).toThrow("exclude each other");
  });
});

describe("headers", () => {
  test.each([
    [{ "": "a" }, "no header name"],
    [{ "a b": "a" }, "no header name"],
    [{ "a:": "a" }, "no header name"],
    [{ Ä: "a" }, "no header name"],
    [{ "rowpost-id": "a" }, "reserved"],
    [{ "Rowpost-Mine": "a" }, "reserved"],
    [{ a: 1 }, "must be a string"],
    [{ a: undefined }, "must be a string"],
    [{ a: "x\r\nSet-Cookie: y" }, "control character"],
    [{ a: "\x01" }, "control character"],
    [{ a: "half \ud83d" }, "surrogate"],
    [["a"], "object of strings"],
    ["a", "object of strings"],
    [{ a: "x".repeat(40_000) }, "at most 32767"],
  ])("%#", (headers, reason) => {
    expect(() => encodeMessage(message({ headers }), rules)).toThrow(InvalidMessageError);
    expect(() => encodeMessage(message({ headers }), rules)).toThrow(reason);
  });

  test("those of rowpost's own making give way to the message's, and are left out where there is no column", () => {
    const added = { traceparent: "00-1", tracestate: "a=b" };
    const row = encodeMessage(message({ headers: { traceparent: "mine" } }), rules, added);
    expect(JSON.parse(row.headers ?? "")).toEqual({ traceparent: "mine", tracestate: "a=b" });
    expect(encodeMessage(message(), nothingOptional, added).headers).toBeNull();
  });
});

describe("bodies", () => {
  test("the limit counts bytes as stored", () => {
    const tight = { ...rules, limits: { ...DEFAULT_LIMITS, bodyBytes: 12 } };
    expect(encodeMessage(message({ body: "äöü" }), tight).body).toBe('"äöü"');
    expect(encodeMessage(message({ body: "1234567890" }), tight).body).toBe('"1234567890"');
    expect(() => encodeMessage(message({ body: "äöüäöü" }), tight)).toThrow("has 14 bytes as stored; at most 12 fit");
    expect(() => encodeMessage(message({ body: new Uint8Array(10) }), tight)).toThrow("16 bytes as stored");
  });

  test.each(["text", "text/", "a b/c", "text/plain\n", "text/plain; x=\u00e4", 5, ""])(
    "contentType %j is refused",
    (contentType) => {
      expect(() => encodeMessage(message({ body: "x", contentType }), rules)).toThrow("contentType");
    },
  );

  test("a content type may not pretend to be base64, nor be longer than its column", () => {
    expect(() => encodeMessage(message({ body: "x", contentType: "a/b;base64" }), rules)).toThrow("Uint8Array");
    expect(() => encodeMessage(message({ body: "x", contentType: `text/${"x".repeat(60)}` }), rules)).toThrow(
      "at most 64",
    );
  });

  test("the error names the message", () => {
    expect(() => encodeMessage(message({ body: 1n }), rules)).toThrow(
      /^message order\.created:o-1: the body is not JSON-able/,
    );
  });
});

describe("a table without a column", () => {
  test.each([
    ["headers", { headers: { a: "b" } }],
    ["orderingKey", { orderingKey: "c" }],
    ["createdBy", { createdBy: "me" }],
    ["contentType", { body: "x", contentType: "text/plain" }],
    ["contentType", { body: new Uint8Array(1) }],
  ])("refuses what needs %s, and names it", (column, change) => {
    expect(() => encodeMessage(message(change), nothingOptional)).toThrow(ConfigurationError);
    expect(() => encodeMessage(message(change), nothingOptional)).toThrow(`columns.${column}`);
  });

  test("takes the rest, delays included", () => {
    const row = encodeMessage(message({ delayMs: 5, contentType: "application/json" }), nothingOptional);
    expect([row.delayMs, row.contentType, row.headers]).toEqual([5, null, null]);
  });
});
