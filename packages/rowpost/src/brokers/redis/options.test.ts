import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import { type RedisOptions, settingsFrom } from "./options.ts";
import { redisOptionsFromUrl } from "./url.ts";

const url = "redis://127.0.0.1";

describe("options", () => {
  test("have defaults that lose nothing: no trimming, streams are made, eviction is refused", () => {
    expect(settingsFrom({ url })).toMatchObject({
      label: "redis://127.0.0.1:6379",
      xaddArguments: ["*"],
      createsStreams: true,
      minReplicas: 0,
      allowEviction: false,
      maxBodyBytes: undefined,
    });
  });

  test("stand in XADD's own order", () => {
    const { xaddArguments } = settingsFrom({ url, missingStream: "fail", maxLength: 1_000_000 });
    expect(xaddArguments).toEqual(["NOMKSTREAM", "MAXLEN", "~", "1000000", "*"]);
  });

  test("the label has no credentials, and brackets around an IPv6 address", () => {
    expect(settingsFrom({ url: "rediss://me:hunter2@[::1]:7000/2" }).label).toBe("rediss://[::1]:7000");
  });

  const WRONG: readonly (readonly [options: RedisOptions, says: RegExp])[] = [
    [{}, /exactly one of url and client/],
    [{ url: "redis" }, /cannot be read; expected redis:\/\//],
    [{ url: "http://me:hunter2@host" }, /must be redis:\/\//],
    [{ url: "redis://me:hunter2@host/orders" }, /a database's number/],
    [{ url: "redis://me:hunter2@host?db=1" }, /are for redisFromUrl/],
    [{ url: "redis://me:hunter2%@host" }, /percent-encoded/],
    [{ url, tls: {} }, /rediss:\/\/ url/],
    [{ url: "rediss://host", tls: { cert: "x" } }, /belong together/],
    [{ url, maxLength: 0 }, /maxLength must be a whole number from 1/],
    [{ url, minReplicas: 1.5 }, /minReplicas must be a whole number from 0 to 1000/],
    [{ url, connectTimeoutMs: 5 }, /connectTimeoutMs must be a whole number from 100/],
    [{ url, missingStream: "warn" as "fail" }, /"create" or "fail", not warn/],
    [{ client: {} as never }, /Redis or Cluster of ioredis or iovalkey/],
    [{ client: undefined, url: undefined }, /exactly one/],
  ];

  test.each(WRONG)("%j are refused", (options, says) => {
    expect(() => settingsFrom(options)).toThrow(ConfigurationError);
    expect(() => settingsFrom(options)).toThrow(says);
    expect(() => settingsFrom(options)).not.toThrow(/hunter2/);
  });
});

describe("a url", () => {
  test("holds settings behind the question mark; credentials of the environment win", () => {
    const text = "rediss://app:old@host:7000/1?prefix=shop:&maxLength=5&missingStream=fail&minReplicas=1&tls=insecure";
    const { streamOf, ...options } = redisOptionsFromUrl(text, { ROWPOST_REDIS_PASSWORD: "new" });
    expect(streamOf?.("orders")).toBe("shop:orders");
    expect(options).toEqual({
      url: "rediss://app:old@host:7000/1",
      password: "new",
      maxLength: 5,
      missingStream: "fail",
      minReplicas: 1,
      tls: { rejectUnauthorized: false },
    });
    expect(settingsFrom(options).label).toBe("rediss://host:7000");
  });

  const WRONG: readonly (readonly [query: string, says: RegExp])[] = [
    ["maxlen=5", /unknown setting "maxlen"; known are prefix/],
    ["maxLength=much", /maxLength must be a whole number, not "much"/],
    ["missingStream=warn", /must be create or fail/],
    ["allowEviction=maybe", /allowEviction must be true or false/],
    ["tls=true", /settings of TLS need rediss:\/\//],
    ["ca=/no/such/file", /ca file \/no\/such\/file cannot be read/],
  ];

  test.each(WRONG)("?%s is refused", (query, says) => {
    expect(() => redisOptionsFromUrl(`${url}?${query}`, {})).toThrow(says);
  });
});
