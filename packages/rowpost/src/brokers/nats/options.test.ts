import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import { nats, natsFromUrl, natsOptionsFromUrl } from "./index.ts";
import { type NatsOptions, settingsFrom } from "./options.ts";

describe("settingsFrom", () => {
  test("servers come as a text or a list, with or without a scheme and a port", () => {
    const servers = [
      { host: "a.example", port: 4222 },
      { host: "10.0.0.1", port: 9000 },
      { host: "::1", port: 4222 },
    ];
    expect(settingsFrom({ servers: "a.example, nats://10.0.0.1:9000,[::1]" }).servers).toEqual(servers);
    expect(settingsFrom({ servers: ["nats://a.example:4222", "10.0.0.1:9000", "[::1]:4222"] }).servers).toEqual(
      servers,
    );
  });

  test("tls:// asks for TLS on every server", () => {
    expect(settingsFrom({ servers: "tls://a.example" }).tls).toEqual({});
    expect(settingsFrom({ servers: "nats://a.example" }).tls).toBeUndefined();
  });

  test.each<[Partial<NatsOptions>, RegExp]>([
    [{ servers: "" }, /give servers/],
    [{ servers: "host:0" }, /"host:0" is not an address/],
    [{ servers: "ws://host" }, /not an address/],
    [{ servers: "nats://user:hunter2@host" }, /no user, password or token in servers/],
    [{ servers: "nats://user:hunter2,more@host" }, /no user, password or token in servers/],
    [{ servers: ["h", "nats://user:hunter2@host"] }, /no user, password or token in servers/],
    [{ user: "a" }, /user and password belong together/],
    [{ password: "a" }, /user and password belong together/],
    [{ user: "a", password: "hunter2", token: "hunter2" }, /give one of/],
    [{ token: " " }, /token is empty/],
    [{ tls: { cert: "x" } }, /tls\.cert and tls\.key belong together/],
    [{ servers: "tls://host", tls: false }, /contradicts tls:\/\//],
    [{ maxInFlight: 0 }, /maxInFlight must be a whole number from 1 to 10000, not 0/],
    [{ ackTimeoutMs: 5 }, /ackTimeoutMs/],
    [{ stream: "a.b" }, /stream "a\.b"/],
    [{ domain: "a b" }, /domain "a b"/],
    [{ inboxPrefix: "a.>" }, /inboxPrefix/],
    [{ messageIdPrefix: "two\nlines" }, /messageIdPrefix/],
    [{ servers: undefined, connection: {} }, /must be a NatsConnection/],
    [{ connection: Promise.resolve() }, /servers cannot be given together with a connection/],
  ])("%j is refused by name, and no secret is repeated", (changes, saysThis) => {
    const make = (): unknown => nats({ servers: "h", ...changes });
    expect(make).toThrow(saysThis);
    expect(make).toThrow(ConfigurationError);
    expect(make).not.toThrow(/hunter2/);
  });
});

describe("natsOptionsFromUrl", () => {
  test("takes settings from the query and secrets from the environment", () => {
    const env = { ROWPOST_NATS_USER: "relay", ROWPOST_NATS_PASSWORD: "hunter2" };
    const url =
      "nats://a:4222,b/?stream=ORDERS&prefix=shop.&idPrefix=shop/&domain=hub&inbox=_IN&inFlight=10&timeoutMs=500";
    expect(natsOptionsFromUrl(url, env)).toEqual({
      servers: "a:4222,b",
      stream: "ORDERS",
      subject: "shop.",
      messageIdPrefix: "shop/",
      domain: "hub",
      inboxPrefix: "_IN",
      maxInFlight: 10,
      ackTimeoutMs: 500,
      user: "relay",
      password: "hunter2",
    });
  });

  test("takes TLS from the scheme or the query", () => {
    expect(natsOptionsFromUrl("tls://a", {})).toEqual({ servers: "a", tls: true });
    expect(natsOptionsFromUrl("nats://a?tls=insecure&serverName=b", {})).toEqual({
      servers: "a",
      tls: { rejectUnauthorized: false, serverName: "b" },
    });
  });

  test.each([
    ["nats://", /give servers/],
    ["nats://a/stream", /expected nats:\/\/host:4222/],
    ["nats://me:hunter2@a", /set ROWPOST_NATS_USER and ROWPOST_NATS_PASSWORD/],
    ["nats://a?strem=X", /unknown setting "strem"/],
    ["nats://a?stream=A&stream=B", /stream is there more than once/],
    ["nats://a?tls=maybe", /tls must be true, false or insecure/],
    ["tls://a?tls=false", /contradicts/],
    ["nats://a?inFlight=many", /inFlight must be a whole number/],
    ["nats://a?creds=/no/such/file", /the creds file \/no\/such\/file cannot be read/],
  ])("%s is refused", (url, saysThis) => {
    expect(() => natsFromUrl(url, {})).toThrow(saysThis);
    expect(() => natsFromUrl(url, {})).not.toThrow(/hunter2/);
  });
});
