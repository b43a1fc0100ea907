import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import { type RabbitmqConnection, rabbitmq } from "./index.ts";
import { type RabbitmqOptions, settingsFrom } from "./options.ts";
import { rabbitmqOptionsFromUrl } from "./url.ts";

function serverOf(url: string, environment: Readonly<Record<string, string>> = {}) {
  return settingsFrom(rabbitmqOptionsFromUrl(url, environment)).servers[0];
}

describe("a URL", () => {
  test("has the defaults of AMQP", () => {
    const server = { secure: false, host: "rabbit", port: 5672, vhost: "/", username: "guest", password: "guest" };
    expect(serverOf("amqp://rabbit")).toEqual({ ...server, label: "rabbit:5672" });
    expect(serverOf("amqp://rabbit/")).toMatchObject({ vhost: "/" });
    expect(serverOf("amqps://rabbit")).toMatchObject({ secure: true, port: 5671 });
  });

  test("has its parts decoded", () => {
    expect(serverOf("amqp://us%40er:p%2Fw%3A@[::1]:5673/shop%2Feu")).toMatchObject({
      host: "::1",
      port: 5673,
      vhost: "shop/eu",
      username: "us@er",
      password: "p/w:",
    });
    expect(serverOf("amqp://rabbit/%2F")).toMatchObject({ vhost: "/" });
  });

  test("may name several nodes, and leave the account to the environment", () => {
    const environment = { ROWPOST_RABBITMQ_USERNAME: "shop", ROWPOST_RABBITMQ_PASSWORD: "hunter2" };
    const { servers } = settingsFrom(
      rabbitmqOptionsFromUrl("amqp://a,b:5673/eu?exchange=orders&inFlight=5", environment),
    );
    expect(servers.map(({ label, vhost, username, password }) => ({ label, vhost, username, password }))).toEqual([
      { label: "a:5672", vhost: "eu", username: "shop", password: "hunter2" },
      { label: "b:5673", vhost: "eu", username: "shop", password: "hunter2" },
    ]);
  });

  test("takes settings, and files for TLS", () => {
    const file = path.join(tmpdir(), `rowpost-${process.pid}-ca.pem`);
    writeFileSync(file, "PEM");
    const url = `amqps://rabbit?exchange=shop&inFlight=5&maxBodyBytes=1000&connectTimeoutMs=200&heartbeatSeconds=0&ca=${file}&serverName=r1&tls=insecure`;
    expect(rabbitmqOptionsFromUrl(url, {})).toEqual({
      url: ["amqps://rabbit"],
      exchange: "shop",
      maxInFlight: 5,
      maxBodyBytes: 1000,
      connectTimeoutMs: 200,
      heartbeatSeconds: 0,
      tls: { ca: Buffer.from("PEM"), serverName: "r1", rejectUnauthorized: false },
    });
  });

  test.each([
    ["amqp://", "expected amqp[s]://"],
    ["http://rabbit", "expected amqp[s]://"],
    ["amqp://user:hunter2@@rabbit", "expected amqp[s]://"],
    ["amqp://user:hunter2@rabbit?tsl=1", 'unknown setting "tsl"; known are exchange, inFlight'],
    ["amqp://user:hunter2@rabbit?inFlight=many", "inFlight must be a whole number"],
    ["amqp://user:hunter2@rabbit?serverName=x", "settings of TLS need amqps://"],
    ["amqps://user:hunter2@rabbit?tls=no", "tls must be true, false or insecure"],
    ["amqps://user:hunter2@rabbit?tls=false", "tls=false contradicts the scheme"],
    ["amqps://rabbit?ca=/no/such/file", "the ca file /no/such/file cannot be read"],
    ["amqp://user:hunter2@rabbit:port", "the url cannot be read"],
    ["amqp://user:hunter2%@rabbit", "not percent-encoded properly"],
  ])("%s is refused, without its password", (url, words) => {
    const act = (): unknown => serverOf(url);
    expect(act).toThrow(ConfigurationError);
    expect(act).toThrow(words);
    expect(act).not.toThrow(/hunter2/);
  });
});

describe("options", () => {
  const url = "amqp://rabbit";
  const connection: RabbitmqConnection = {
    createConfirmChannel: () => Promise.reject(new Error("never used")),
    on: () => undefined,
    off: () => undefined,
  };

  test.each([
    [{}, "exactly one of url and connection"],
    [{ url: [] }, "empty list"],
    [{ url: "amqp://rabbit?exchange=x" }, "takes no settings behind a ?"],
    [{ url, exchange: "x", route: () => ({ routingKey: "y" }) }, "one of exchange and route"],
    [{ url, exchange: "x".repeat(256) }, "255 bytes"],
    [{ url: "amqps://rabbit", tls: { cert: "PEM" } }, "tls.cert and tls.key belong together"],
    [{ url, tls: { ca: "PEM" } }, "the tls option needs an amqps:// url"],
    [{ url: ["amqps://rabbit", url], tls: { ca: "PEM" } }, "for every node"],
    [{ connection, tls: { ca: "PEM" } }, "belong to url; a connection has its own"],
    [{ connection, username: "shop" }, "belong to url"],
    [{ connection, password: "hunter2" }, "belong to url"],
    [{ connection, heartbeatSeconds: 5 }, "belong to url"],
    [{ url, maxInFlight: 0 }, "maxInFlight must be a whole number from 1 to 65535, not 0"],
    [{ url, maxBodyBytes: 1.5 }, "maxBodyBytes must be"],
    [{ url, heartbeatSeconds: -1 }, "heartbeatSeconds must be"],
    [{ url, connectTimeoutMs: 1 }, "connectTimeoutMs must be"],
  ] as readonly (readonly [RabbitmqOptions, string])[])("%j is refused", (options, words) => {
    expect(() => rabbitmq(options)).toThrow(ConfigurationError);
    expect(() => rabbitmq(options)).toThrow(words);
  });

  test("nothing is opened before the first use", async () => {
    const before = process.getActiveResourcesInfo().length;
    await rabbitmq({ url }).close();
    expect(process.getActiveResourcesInfo()).toHaveLength(before);
  });
});
