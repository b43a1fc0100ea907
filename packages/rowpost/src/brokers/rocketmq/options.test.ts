import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import { rocketmq, rocketmqFromUrl } from "./index.ts";
import { settingsFrom } from "./options.ts";
import { rocketmqOptionsFromUrl } from "./url.ts";

describe("settingsFrom", () => {
  test("endpoints come as a text or a list, with or without a port", () => {
    const endpoints = [
      { host: "a.example", port: 8081, scheme: "DOMAIN_NAME" },
      { host: "10.0.0.1", port: 9000, scheme: "IPv4" },
      { host: "::1", port: 8081, scheme: "IPv6" },
    ];
    expect(settingsFrom({ endpoints: "a.example, 10.0.0.1:9000,[::1]" }).endpoints).toEqual(endpoints);
    expect(settingsFrom({ endpoints: ["a.example:8081", "10.0.0.1:9000", "[::1]:8081"] }).endpoints).toEqual(endpoints);
    expect(settingsFrom({ endpoints: "a.example;10.0.0.1:9000;[::1]" }).endpoints).toEqual(endpoints);
  });

  test.each([
    ["", /endpoints is empty/],
    ["host:0", /"host:0" is not host:port/],
    ["host:99999", /not host:port/],
    ["http://host:8081", /not host:port/],
    ["::1", /not host:port/],
    ["[host]:1", /not host:port/],
  ])("endpoints %j are refused", (endpoints, message) => {
    expect(() => settingsFrom({ endpoints })).toThrow(message);
  });

  test.each(["key:hunter2@host:8081", "h;key:hunter2;more@host"])(
    "keys in %j are refused, not repeated",
    (endpoints) => {
      for (const given of [endpoints, [endpoints]]) {
        expect(() => settingsFrom({ endpoints: given })).toThrow(/no keys in endpoints/);
        expect(() => settingsFrom({ endpoints: given })).not.toThrow(/hunter2|more/);
      }
    },
  );

  test.each([
    [{ batchSize: 0 }, /batchSize must be a whole number from 1 to 1024, not 0/],
    [{ maxInFlight: 1.5 }, /maxInFlight/],
    [{ requestTimeoutMs: 5 }, /requestTimeoutMs/],
    [{ accessKey: "a" }, /accessKey and secretKey belong together/],
    [{ secretKey: "a" }, /accessKey and secretKey belong together/],
    [{ sessionToken: "a" }, /accessKey and secretKey belong together/],
    [{ tls: { cert: "x" } }, /tls\.cert and tls\.key belong together/],
    [{ unorderedTopic: "maybe" as "warn" }, /unorderedTopic/],
    [{ namespace: "订单" }, /^namespace has a character that no gRPC header can carry/],
    [{ accessKey: "a\n", secretKey: "b" }, /^accessKey has a character/],
    [{ accessKey: "a", secretKey: "b", sessionToken: "TOKEN\n" }, /^sessionToken has (?!.*TOKEN).*line break/],
  ])("%j is refused by name", (changes, message) => {
    const options = { endpoints: "h", ...changes };
    expect(() => settingsFrom(options)).toThrow(ConfigurationError);
    expect(() => settingsFrom(options)).toThrow(message);
  });
});

describe("rocketmqOptionsFromUrl", () => {
  const options = (url: string, env: Record<string, string> = {}): unknown => rocketmqOptionsFromUrl(url, env);

  test("hosts, namespace and settings", () => {
    expect(options("rocketmq://127.0.0.1")).toEqual({ endpoints: "127.0.0.1" });
    expect(
      options("rocketmq://h1:8081,[::1]:8082/shop%2Feu/?batch=32&inFlight=8&timeoutMs=3000&unordered=fail"),
    ).toEqual({
      endpoints: "h1:8081,[::1]:8082",
      namespace: "shop/eu",
      batchSize: 32,
      maxInFlight: 8,
      requestTimeoutMs: 3000,
      unorderedTopic: "fail",
    });
  });

  test("TLS", () => {
    expect(options("rocketmq://h?tls=true")).toEqual({ endpoints: "h", tls: true });
    expect(options("rocketmq://h?tls=false")).toEqual({ endpoints: "h", tls: false });
    expect(options("rocketmq://h?tls=insecure")).toEqual({ endpoints: "h", tls: { rejectUnauthorized: false } });
    expect(options("rocketmq://h?serverName=mq")).toEqual({ endpoints: "h", tls: { serverName: "mq" } });
  });

  test("keys come from the environment only", () => {
    const env = { ROWPOST_ROCKETMQ_ACCESS_KEY: "ak", ROWPOST_ROCKETMQ_SECRET_KEY: "sk" };
    expect(options("rocketmq://h", env)).toEqual({ endpoints: "h", accessKey: "ak", secretKey: "sk" });
    expect(() => options("rocketmq://ak:sk@h")).toThrow(/ROWPOST_ROCKETMQ_ACCESS_KEY/);
  });

  test.each([
    ["rocketmq:h", /expected rocketmq:\/\/host:port/],
    ["http://h", /expected rocketmq:\/\/host:port/],
    ["rocketmq://h?colour=red", /unknown setting "colour"; known are batch, inFlight/],
    ["rocketmq://h?toString=1", /unknown setting "toString"/],
    ["rocketmq://h?batch=many", /batch must be a whole number, not "many"/],
    ["rocketmq://h?tls=maybe", /tls must be true, false or insecure/],
    ["rocketmq://h?tls=false&ca=/dev/null", /tls=false contradicts/],
    ["rocketmq://h?ca=/no/such/file.pem", /the ca file \/no\/such\/file.pem cannot be read/],
    ["rocketmq://h/a/b", /more than a namespace/],
    ["rocketmq://h/%zz", /not percent-encoded/],
  ])("%s is refused by name", (url, message) => {
    expect(() => options(url)).toThrow(ConfigurationError);
    expect(() => options(url)).toThrow(message);
  });

  test("rocketmqFromUrl refuses what the options refuse", () => {
    expect(() => rocketmqFromUrl("rocketmq://", {})).toThrow(/endpoints is empty/);
    expect(() => rocketmqFromUrl("rocketmq://h?batch=0", {})).toThrow(/batchSize must be/);
  });
});

describe("rocketmq", () => {
  test("opens nothing by itself", async () => {
    const broker = rocketmq({ endpoints: "127.0.0.1:1" });
    expect(broker.features).toEqual({
      ordering: "key",

      reportsUnknownTopic: true,
      maxBodyBytes: 4_194_304,
    });
    await broker.close();
    await broker.close();
    await expect(broker.check()).rejects.toThrow(/was closed/);
  });
});
