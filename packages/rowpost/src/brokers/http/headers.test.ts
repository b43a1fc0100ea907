import { validateHeaderName, validateHeaderValue } from "node:http";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeWebhookHeaders, encodeHeaders, HEADER_ENCODED, sameNames } from "./headers.ts";

const none: ReadonlySet<string> = new Set();

describe("headers", () => {
  test("what HTTP can carry goes out as it is, names in lower case", () => {
    const headers = { "X-Tenant": "blue", traceparent: "00-ab-cd-01", note: "50% off; a=b, c", empty: "" };
    expect(encodeHeaders(headers, none)).toEqual({ ...headers, "X-Tenant": undefined, "x-tenant": "blue" });
  });

  test("what it cannot carry is percent-encoded and listed", () => {
    expect(encodeHeaders({ city: "上海", percent: "50% ü", edge: " x ", lines: "a\r\nb" }, none)).toEqual({
      city: "%E4%B8%8A%E6%B5%B7",
      percent: "50%25 %C3%BC",
      edge: "%20x%20",
      lines: "a%0D%0Ab",
      [HEADER_ENCODED]: "city,percent,edge,lines",
    });
  });

  test("names of the transport and of the endpoint's own headers go out under another name", () => {
    const wire = encodeHeaders({ Host: "elsewhere", "x-api-key": "stolen", 城: "v" }, new Set(["x-api-key"]));
    expect(wire).toEqual({
      "%68ost": "elsewhere",
      "%78-api-key": "stolen",
      "%e5%9f%8e": "v",
      [HEADER_ENCODED]: "%68ost,%78-api-key,%e5%9f%8e",
    });
    expect(decodeWebhookHeaders({ host: "127.0.0.1", ...wire })).toMatchObject({
      host: "elsewhere",
      "x-api-key": "stolen",
      城: "v",
    });
  });

  test("two names that differ only in their case are told, unless they say the same", () => {
    expect(sameNames({ "X-Tenant": "blue", other: "", "x-tenant": "red" })).toEqual(["X-Tenant", "x-tenant"]);
    expect(sameNames({ Größe: "1", GRÖßE: "2" })).toEqual(["Größe", "GRÖßE"]);
    expect(sameNames({ "X-Tenant": "blue", "x-tenant": "blue" })).toBeUndefined();
    expect(encodeHeaders({ Stadt: "上海", stadt: "上海" }, none)[HEADER_ENCODED]).toBe("stadt");
  });

  test("any headers can be written by node:http and come back as they were", () => {
    const name = fc.string({ unit: "binary", minLength: 1 }).map((text) => text.toLowerCase());
    const anyHeaders = fc.dictionary(name, fc.string({ unit: "binary" }), { noNullPrototype: true });
    fc.assert(
      fc.property(anyHeaders, (headers) => {
        const wire = encodeHeaders(headers, none);
        for (const [wireName, value] of Object.entries(wire)) {
          validateHeaderName(wireName);
          validateHeaderValue(wireName, value);
          expect(value).toBe(value.trim());
        }
        expect(decodeWebhookHeaders(wire)).toEqual(headers);
      }),
      { examples: [[{ a: "%41" }], [{ "%61": "x" }], [{ a: "é", "%61": "é" }], [{ ["__proto__"]: "x" }]] },
    );
  });

  test("half a surrogate pair becomes the replacement character instead of an error", () => {
    expect(decodeWebhookHeaders(encodeHeaders({ half: "a\ud800b" }, none))).toEqual({ half: "a\ufffdb" });
  });

  test("a receiver is not upset by a bad encoding, lists, or nothing", () => {
    expect(decodeWebhookHeaders({ [HEADER_ENCODED]: "a,b", a: "%ZZ", cookie: ["x", "y"], gone: undefined })).toEqual({
      a: "%ZZ",
      cookie: "x, y",
    });
  });
});
