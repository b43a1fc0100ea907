import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { KafkaClient } from "./given-client.ts";
import { kafka } from "./index.ts";
import { runsPlatformatic } from "./load.ts";
import { type KafkaOptions, settingsFrom } from "./options.ts";
import { kafkaOptionsFromUrl } from "./url.ts";

describe("options", () => {
  test("have defaults", () => {
    expect(settingsFrom({ brokers: "a, b:9093" })).toMatchObject({
      brokers: ["a:9092", "b:9093"],
      clientId: expect.stringMatching(/^rowpost@/),
      tls: undefined,
      sasl: undefined,
      connectTimeoutMs: 5000,
      requestTimeoutMs: 10_000,
    });
  });

  test.each<[string, KafkaOptions, RegExp]>([
    ["no address", {}, /brokers is empty/],
    ["an empty list", { brokers: [] }, /brokers is empty/],
    ["an address with a path", { brokers: "a:9092/x" }, /"a:9092\/x" is not host:port/],
    ["an impossible port", { brokers: "a:99999" }, /is not host:port/],
    ["half a key pair", { brokers: "a", tls: { cert: "x" } }, /tls\.cert and tls\.key/],
    ["half an account", { brokers: "a", sasl: { username: "u", password: "" } }, /sasl\.username and sasl\.password/],
    ["a time without a unit", { brokers: "a", requestTimeoutMs: 10 }, /requestTimeoutMs must be/],
    [
      "an unknown driver",
      { brokers: "a", driver: "rdkafka" as "kafkajs" },
      /driver must be "platformatic" or "kafkajs"/,
    ],
  ])("%s is refused", (_, options, words) => {
    expect(() => kafka(options)).toThrow(ConfigurationError);
    expect(() => kafka(options)).toThrow(words);
  });
});

test.each(["kafka://shop:s3cret@h1:9092", "h1:9092, kafka://shop:s3cret,more@h2", "shop:s3cret,x@h1"])(
  "an account in %j is refused without being repeated",
  (brokers) => {
    for (const given of [brokers, [brokers]]) {
      expect(() => kafka({ brokers: given })).toThrow(/no user or password in brokers/);
      expect(() => kafka({ brokers: given })).not.toThrow(/s3cret|more|shop/);
    }
  },
);

describe("a client of the user's", () => {
  const call = (): never => {
    throw new Error("nothing is called while the options are checked");
  };
  const platformatic = (options: object): KafkaClient => ({
    send: call,
    metadata: call,
    connections: {},
    [Symbol("plt.kafka.base.options")]: options,
  });
  const kafkajs: KafkaClient = { producer: call, admin: call, consumer: call };

  test("is told by its shape", () => {
    expect(settingsFrom({ client: kafkajs }).given?.kind).toBe("kafkajs");
    expect(settingsFrom({ client: platformatic({ idempotent: false }) }).given?.kind).toBe("platformatic");
  });

  test.each<[string, object, RegExp]>([
    ["an idempotent producer", platformatic({ idempotent: true }), /idempotent producer .* retries without end/],
    [
      "one that changes bodies",
      platformatic({ serializers: {} }),
      /serializers: messages would not arrive byte for byte/,
    ],
    ["one with a registry", platformatic({ registry: {} }), /registry/],
    ["a producer of kafkajs", { send: call, sendBatch: call, isIdempotent: call }, /hand in the Kafka object/],
    ["something else", { hello: "world" }, /neither the Kafka object/],
  ])("%s is refused, with what to do", (_, client, words) => {
    expect(() => kafka({ client: client as KafkaClient })).toThrow(words);
  });

  test("has its addresses and account already", () => {
    expect(() => kafka({ client: kafkajs, brokers: "a" })).toThrow(/brokers and client exclude each other/);
  });
});

describe("a URL", () => {
  const none = {};

  test("holds everything but the files", () => {
    const url =
      "kafka://bob:p%40ss@a:9092,b:9093/?tls=true&sasl=scram-sha-512&clientId=shop&driver=kafkajs&connectTimeoutMs=700&timeoutMs=900";
    expect(kafkaOptionsFromUrl(url, none)).toEqual({
      brokers: "a:9092,b:9093",
      tls: true,
      sasl: { username: "bob", password: "p@ss", mechanism: "scram-sha-512" },
      clientId: "shop",
      driver: "kafkajs",
      connectTimeoutMs: 700,
      requestTimeoutMs: 900,
    });
  });

  test("takes the account from the environment, which wins", () => {
    const env = { ROWPOST_KAFKA_USERNAME: "bob", ROWPOST_KAFKA_PASSWORD: "secret" };
    expect(kafkaOptionsFromUrl("kafka://a", env).sasl).toEqual({ username: "bob", password: "secret" });
    expect(kafkaOptionsFromUrl("kafka://eve:old@a", env).sasl).toEqual({ username: "bob", password: "secret" });
  });

  test.each([
    ["kafka:a:9092", /expected kafka:\/\//],
    ["kafka://a/path", /expected kafka:\/\//],
    ["kafka://a?acks=1", /unknown setting "acks"/],
    ["kafka://a?tls=maybe", /tls must be true, false or insecure/],
    ["kafka://a?tls=false&serverName=b", /tls=false contradicts/],
    ["kafka://a?ca=/no/such/file.pem", /the ca file \/no\/such\/file.pem cannot be read/],
    ["kafka://a?sasl=plain", /a user is missing; set ROWPOST_KAFKA_USERNAME/],
    ["kafka://bob@a", /a password is missing/],
    ["kafka://bob:100%@a", /the password is not percent-encoded properly/],
    ["kafka://a?timeoutMs=soon", /timeoutMs must be a whole number, not "soon"/],
    ["kafka://a?driver=rdkafka", /driver must be platformatic or kafkajs/],
  ])("%s is refused", (url, words) => {
    expect(() => kafka(kafkaOptionsFromUrl(url, none))).toThrow(ConfigurationError);
    expect(() => kafka(kafkaOptionsFromUrl(url, none))).toThrow(words);
  });

  test("never repeats a password", () => {
    const refused = (): unknown => kafkaOptionsFromUrl("kafka://bob:hunter2%@a", none);
    expect(refused).toThrow(expect.objectContaining({ message: expect.not.stringContaining("hunter2") }));
  });
});

test.each([
  ["20.19.5", false],
  ["22.21.9", false],
  ["22.22.0", true],
  ["24.6.0", true],
])("@platformatic/kafka on Node.js %s: %s", (version, expected) => {
  expect(runsPlatformatic(version)).toBe(expected);
});
