/** What the broker contract does not ask of MQTT: reason codes, the server's limits, TLS, names. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { generate } from "mqtt-packet";
import { afterEach, describe, expect, test } from "vitest";
import type { Broker, PublishResult } from "../../src/brokers/broker.ts";
import { encode, packetBytes, type Wire } from "../../src/brokers/mqtt/carry.ts";
import { decodeMqttHeaders, type MqttOptions, mqtt, mqttOptionsFromUrl } from "../../src/brokers/mqtt/index.ts";
import type { Link } from "../../src/brokers/mqtt/link.ts";
import { createLinks } from "../../src/brokers/mqtt/links.ts";
import { settingsFrom } from "../../src/brokers/mqtt/options.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./certificate.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { type MqttMessage, startMosquitto, subscribe, uniqueTopic } from "./mqtt-server.ts";
import { counts, endsByItself } from "./outcomes.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

describeWithService("mosquitto", "the MQTT broker on servers with settings of their own", ({ address }) => {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const create = (options: MqttOptions): Broker => {
    const broker = mqtt({ connectTimeoutMs: 20_000, ...options });
    closing.push(() => broker.close());
    return broker;
  };
  const start = async (config: Parameters<typeof startMosquitto>[0]): ReturnType<typeof startMosquitto> => {
    const server = await startMosquitto(config);
    closing.push(() => server.remove());
    return server;
  };
  const read = async (servers: string, topic: string): Promise<MqttMessage[]> => {
    const arrived: MqttMessage[] = [];
    const reader = await subscribe(servers, [topic], (message) => arrived.push(message));
    closing.push(() => reader.endAsync(true));
    return arrived;
  };

  test("nobody subscribes: sent, and the receipt says so; with requireSubscribers it failed and can be retried", async () => {
    const topic = uniqueTopic();
    const servers = new URL(address).host;
    const broker = create({ servers, clientId: `rowpost-test-${process.pid}` });
    const strict = create({ servers, requireSubscribers: true });
    const receipt = new RegExp(`^rowpost-test-${process.pid}#\\d+ no-subscribers$`);
    expect(await broker.publish([outgoing("n-1", { topic })], noDeadline())).toEqual([
      { status: "sent", messageId: expect.stringMatching(receipt) },
    ]);
    expect(await strict.publish([outgoing("n-2", { topic })], noDeadline())).toMatchObject([
      { scope: "message", retriable: true, code: "NO_SUBSCRIBERS" },
    ]);
    const arrived = await read(servers, topic);
    expect(await strict.publish([outgoing("n-3", { topic })], noDeadline())).toEqual([
      { status: "sent", messageId: expect.stringMatching(/^rowpost-[0-9a-f]{12}#\d+$/) },
    ]);
    await expect.poll(() => arrived.map(({ headers }) => headers["rowpost-key"])).toEqual(["n-3"]);
  });

  test("a connection that broke is not kept in memory", async () => {
    const { hostname, port } = new URL(address);
    const proxy = await createTcpProxy({ target: { host: hostname, port: Number(port) } });
    closing.push(() => proxy.close());
    const links = createLinks(settingsFrom({ servers: `127.0.0.1:${proxy.port}` }));
    closing.push(() => links.close());
    const next = async (): Promise<Link> => {
      const link = await links.get();
      return "scope" in link ? expect.unreachable(link.reason) : link;
    };
    const broken: WeakRef<Link>[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      const reference = new WeakRef(await next());
      broken.push(reference);
      await proxy.cut();
      await expect.poll(() => reference.deref()?.over !== undefined || reference.deref() === undefined).toBe(true);
    }
    await next();
    const kept = (): number => {
      collectGarbage();
      return broken.filter((reference) => reference.deref() !== undefined).length;
    };
    await expect.poll(kept).toBeLessThanOrEqual(1);
  });

  test("each message is as the page says: topic with prefix, content type, headers", async () => {
    const topic = uniqueTopic();
    const servers = new URL(address).host;
    const arrived = await read(servers, topic);
    const headers = { "rowpost-key": "k", city: "上海", odd: "a\u0000b\nc", half: "\ud800", "odd\u0001": "x" };
    const message = outgoing("k", { topic: topic.slice(8), contentType: "text/plain; charset=utf-8", headers });
    await create({ servers, prefix: topic.slice(0, 8) }).publish([message], noDeadline());
    await expect.poll(() => arrived).toHaveLength(1);
    expect(arrived[0]).toMatchObject({ contentType: "text/plain; charset=utf-8", headers, isRepeated: false });
  });

  test("no more are on their way than the server's Receive Maximum", async () => {
    const server = await start("allow_anonymous true\nmax_inflight_messages 3");
    const proxy = await createTcpProxy({ target: { port: server.port } });
    closing.push(() => proxy.close());
    const arrived = await read(server.address, "orders");
    const broker = create({ servers: `127.0.0.1:${proxy.port}` });
    await broker.check();
    proxy.mute("toClient");
    const publishing = broker.publish(
      Array.from({ length: 50 }, (_, index) => outgoing(`r-${index}`)),
      noDeadline(),
    );
    await expect.poll(() => arrived.length).toBe(3);
    // Whatever else was handed over has been read by the server before this one.
    await create({ servers: server.address }).publish([outgoing("marker")], noDeadline());
    await expect.poll(() => arrived.at(-1)?.headers["rowpost-key"]).toBe("marker");
    expect(arrived).toHaveLength(4);
    proxy.unmute();
    expect(counts(await endsByItself("publish", publishing))).toEqual({ sent: 50 });
    await expect.poll(() => arrived.length).toBe(51);
  });

  test("a packet above the server's maximum is refused before it is sent, and its neighbors go out; one byte less is taken", async () => {
    const server = await start("allow_anonymous true\nmax_packet_size 2000");
    const broker = create({ servers: server.address, clientId: "sizes" });
    const wire = encode(outgoing("s-1"), "orders", { maxBodyBytes: undefined, maxPacketBytes: 1e9 }) as Wire;
    const body = "x".repeat(2000 - packetBytes(wire) + wire.payload.length - 1);
    const batch = [outgoing("s-0"), outgoing("s-1", { body: `${body}yy` }), outgoing("s-1", { body })];
    const results = await broker.publish(batch, noDeadline());
    const [first, refused, last] = results;
    expect(refused).toMatchObject({ scope: "message", retriable: false, code: "MESSAGE_TOO_LARGE" });
    // On the same connection, with nothing between them: the large one never went out.
    const [before, after] = [first, last].map((result) => /^sizes#(\d+) /.exec(messageIdOf(result))?.[1]);
    expect(Number(after)).toBe((Number(before) % 65_535) + 1);
  });

  test("a topic that the user may not publish to is told by its reason code, and its neighbors go out", async () => {
    const server = await start(async (folder) => {
      const file = join(folder, "acl");
      await writeFile(file, "topic write orders\n");
      return `allow_anonymous true\nacl_file ${file}`;
    });
    const broker = create({ servers: server.address });
    const batch = [outgoing("a-1"), outgoing("a-2", { topic: "secret" }), outgoing("a-3")];
    expect(await broker.publish(batch, noDeadline())).toMatchObject([
      { status: "sent" },
      { scope: "destination", code: "NOT_AUTHORIZED" },
      { status: "sent" },
    ]);
  });

  test("a limit that the server does not tell leaves the outcome unknown: maxBodyBytes keeps such a message from it", async () => {
    const server = await start("allow_anonymous true\nmessage_size_limit 100");
    const large = outgoing("l-1", { body: "x".repeat(101) });
    expect(await create({ servers: server.address, ackTimeoutMs: 500 }).publish([large], noDeadline())).toMatchObject([
      { scope: "unknown" },
    ]);
    const careful = create({ servers: server.address, maxBodyBytes: 100 });
    expect(await careful.publish([large, outgoing("l-2")], noDeadline())).toMatchObject([
      { scope: "message", code: "MESSAGE_TOO_LARGE" },
      { status: "sent" },
    ]);
  });

  test("two processes with one clientId take the connection from each other, and go on", async () => {
    const server = await start("allow_anonymous true");
    const [first, second] = [0, 1].map(() => create({ servers: server.address, clientId: "same" }));
    const codes = new Set<string>();
    for (let turn = 0; turn < 10; turn += 1) {
      for (const broker of [first, second]) {
        const [result] = (await broker?.publish([outgoing(`t-${turn}`)], noDeadline())) ?? [];
        if (result?.status === "failed") codes.add(`${result.scope} ${result.code}`);
      }
    }
    for (const code of codes) expect(code).toMatch(/^(unknown|connection) (SESSION_TAKEN_OVER|CONNECTION_LOST|E)/);
    await first?.check();
    expect(await first?.publish([outgoing("t-last")], noDeadline())).toMatchObject([{ status: "sent" }]);
  });

  describe("TLS", () => {
    const tls = async (folder: string): Promise<string> => {
      const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
      await Promise.all([writeFile(cert, TEST_CERTIFICATE), writeFile(key, TEST_KEY)]);
      return `allow_anonymous true\ncertfile ${cert}\nkeyfile ${key}`;
    };

    test("publishes where the certificate is trusted; else nothing is handed over", async () => {
      const server = await start(tls);
      const trusting = create({ servers: `mqtts://${server.address}`, tls: { ca: TEST_CERTIFICATE } });
      expect(await trusting.publish([outgoing("tls")], noDeadline())).toMatchObject([{ status: "sent" }]);
      const named = create({ servers: `localhost:${server.port}`, tls: { ca: TEST_CERTIFICATE } });
      await expect(named.check()).resolves.toBeUndefined();
      const wary = create({ servers: `mqtts://${server.address}` });
      const code = expect.stringMatching(/SELF_SIGNED|UNABLE_TO_VERIFY/);
      expect(await wary.publish([outgoing("tls")], noDeadline())).toMatchObject([{ scope: "connection", code }]);
      const misnamed = create({ servers: server.address, tls: { ca: TEST_CERTIFICATE, serverName: "example.test" } });
      await expect(misnamed.check()).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    });

    test("a server without TLS where it is asked for, and the other way around, is a connection that fails", async () => {
      const [plain, secure] = [await start("allow_anonymous true"), await start(tls)];
      for (const servers of [`mqtts://${plain.address}`, secure.address]) {
        expect(await create({ servers }).publish([outgoing("x")], noDeadline())).toMatchObject([
          { scope: "connection" },
        ]);
      }
    });
  });
});

function messageIdOf(result: PublishResult | undefined): string {
  return result?.status === "sent" ? result.messageId : "";
}

describe("what cannot go out over MQTT", () => {
  const limits = { maxBodyBytes: undefined, maxPacketBytes: 1e9 };

  test.each([
    ["", "is empty"],
    ["orders/+", "wildcard"],
    ["orders/#", "wildcard"],
    ["$SYS/broker", "belongs to the server"],
    ["a\u0000b", "control character"],
    ["a\u0085b", "control character"],
    ["a\ud800b", "surrogate"],
    ["界".repeat(21_846), "longer than 65535 bytes"],
  ])("the topic %j", (topic, words) => {
    expect(encode(outgoing("k"), topic, limits)).toMatchObject({
      scope: "message",
      retriable: false,
      code: "ILLEGAL_TOPIC",
      reason: expect.stringContaining(words),
    });
  });

  test("headers that are more than a property holds", () => {
    const headers = { a: "\n".repeat(40_000) };
    expect(encode(outgoing("k", { headers }), "orders", limits)).toMatchObject({ code: "HEADERS_TOO_LARGE" });
  });

  test("the counted size is the packet's own", () => {
    for (const size of [0, 1, 90, 127, 128, 16_200, 16_384, 2_097_152]) {
      const headers: Record<string, string> = { city: "上海", empty: "", long: "x".repeat(size % 20_000) };
      const wire = encode(outgoing("k", { body: "b".repeat(size), headers }), "orders/界", limits) as Wire;
      const packet = { cmd: "publish", qos: 1, messageId: 7, dup: false, retain: false, ...wire } as const;
      expect(packetBytes(wire)).toBe(generate(packet, { protocolVersion: 5 }).length);
    }
  });
});

describe("decodeMqttHeaders", () => {
  test("headers of other programs pass through, of several values the last one counts", () => {
    expect(decodeMqttHeaders({ a: ["1", "2"], "rowpost-headers": "no json" })).toEqual({
      a: "2",
      "rowpost-headers": "no json",
    });
    expect(decodeMqttHeaders(undefined)).toEqual({});
  });

  test("odd ones come back, also those named as the packed field", () => {
    const headers = { "rowpost-headers": "mine", "a\n": "\u007f\ud800é", plain: "é" };
    const wire = encode(outgoing("k", { headers }), "orders", { maxBodyBytes: undefined, maxPacketBytes: 1e9 }) as Wire;
    expect(wire.properties.userProperties).toEqual({
      plain: "é",
      "rowpost-headers": '{"rowpost-headers":"mine","a\\n":"\\u007f\\ud800\\u00e9"}',
    });
    expect(decodeMqttHeaders(wire.properties.userProperties)).toEqual(headers);
  });
});

describe("options", () => {
  test("of a URL", () => {
    const env = { ROWPOST_MQTT_USER: "u", ROWPOST_MQTT_PASSWORD: "p" };
    const url = "mqtts://a,b:1?prefix=shop/&clientId=me&inFlight=5&timeoutMs=900&maxBodyBytes=7&requireSubscribers";
    expect(mqttOptionsFromUrl(url, env)).toEqual({
      servers: "a,b:1",
      prefix: "shop/",
      clientId: "me",
      maxInFlight: 5,
      ackTimeoutMs: 900,
      maxBodyBytes: 7,
      requireSubscribers: true,
      tls: true,
      user: "u",
      password: "p",
    });
  });

  test.each([
    ["mqtt://me:secret@host", /no user, password/],
    ["mqtt:host", /expected mqtt/],
    ["mqtt://host?qos=2", /unknown setting "qos"/],
    ["mqtts://host?tls=false", /contradicts/],
  ])("%s is refused, and no secret is repeated", (url, words) => {
    expect(() => mqttOptionsFromUrl(url, {})).toThrow(words);
    expect(() => mqttOptionsFromUrl(url, {})).not.toThrow(/secret/);
  });

  test.each<[Partial<MqttOptions>, RegExp]>([
    [{ servers: [] }, /give servers/],
    [{ servers: "host:0" }, /not an address/],
    [{ servers: "u:secret@host" }, /no user or password in servers/],
    [{ servers: "mqtts://h", tls: false }, /contradicts/],
    [{ user: "u" }, /belong together/],
    [{ clientId: "" }, /clientId is empty/],
    [{ maxInFlight: 65_536 }, /maxInFlight/],
  ])("%j", (options, words) => {
    expect(() => mqtt({ servers: "h", ...options })).toThrow(words);
  });
});
