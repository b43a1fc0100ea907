/**
 * The classic RocketMQ broker on the shared servers, 4.9 and 5.5: what arrives, in which order, and
 * what is refused. Consumed with RocketMQ's own Java client.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import { rocketmq } from "../../src/brokers/rocketmq/index.ts";
import {
  decodeRocketmqHeaders,
  rocketmqClassic,
  rocketmqClassicFromUrl,
} from "../../src/brokers/rocketmq-classic/index.ts";
import { queueOf } from "../../src/brokers/rocketmq-classic/topic-route.ts";
import { describeWithService, testService } from "../services.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { counts } from "./outcomes.ts";
import {
  CLASSIC_SERVICES,
  createClassicReader,
  forAdmin,
  makeReadOnly,
  optionsFor,
  readByJava,
  sharedServer,
} from "./rocketmq-classic-server.ts";
import {
  type ConsumedMessage,
  createOfficialReader,
  createTopic,
  deleteTopic,
  QUEUES,
  serverAddress,
  uniqueName,
} from "./rocketmq-server.ts";

describeWithService(CLASSIC_SERVICES, "the classic RocketMQ broker", (service) => {
  const server = sharedServer(service.name, service.address);
  const admin = forAdmin(server);
  const made: string[] = [];
  let broker: Broker;

  beforeAll(() => {
    broker = rocketmqClassic({ ...optionsFor(server), batchSize: 32 });
  });

  afterAll(async () => {
    await broker?.close();
    for (const topic of made) await deleteTopic(admin, topic);
  });

  const newTopic = async (name: string): Promise<string> => {
    const topic = await createTopic(admin, uniqueName(name));
    made.push(topic);
    return topic;
  };

  const storedIn = async (topic: string, count: number): Promise<ConsumedMessage[]> => {
    const reader = await createClassicReader(server, [topic]);
    try {
      return await reader.waitFor(topic, (all) => all.length >= count);
    } finally {
      await reader.close();
    }
  };

  test("Java's classic consumer reads every byte, of single messages and of batches", async () => {
    const topic = await newTopic("java");
    const sent: OutgoingMessage[] = [
      outgoing("订单 42\n|", {
        topic,
        type: "a|b\tc",
        contentType: "text/plain",
        body: "正文 ✓ \u0000\u0001\u0002",
        orderingKey: "客户 7",
        headers: {
          "rowpost-key": "订单 42\n|",
          note: "line one\r\nline two",
          nothing: "",
          "odd,name%": "\t",
          emoji: "🙂",
        },
      }),
      outgoing("bytes", { topic, body: Uint8Array.from({ length: 1000 }, (_, index) => index % 256) }),
      ...Array.from({ length: 100 }, (_, index) =>
        outgoing(`b-${index}`, { topic, orderingKey: index % 2 === 0 ? `k-${index % 7}` : undefined }),
      ),
    ];
    expect(counts(await broker.publish(sent.slice(0, 1), noDeadline()))).toEqual({ sent: 1 });
    expect(counts(await broker.publish(sent.slice(1), noDeadline()))).toEqual({ sent: 101 });
    const read = new Map((await readByJava(server, topic, sent.length)).map((message) => [message.id, message]));
    expect(read.size).toBe(sent.length);
    for (const message of sent) {
      const found = [...read.values()].find(
        (each) => decodeRocketmqHeaders(Object.entries(each.properties))["rowpost-key"] === message.key,
      );
      const base64 = found?.base64 ?? "";
      const properties: Readonly<Record<string, string>> = found?.properties ?? {};
      expect(Buffer.from(base64, "base64")).toEqual(Buffer.from(message.body));
      expect(decodeRocketmqHeaders(Object.entries(properties))).toMatchObject(message.headers);
      if (message.orderingKey !== undefined) expect(properties["__SHARDINGKEY"]).toBe(message.orderingKey);
    }
    expect(read.get("a%7Cb%09c:%E8%AE%A2%E5%8D%95%2042%0A%7C")).toMatchObject({ tag: "a_b_c", keys: "订单%2042%0A|" });
    expect(read.get("order.created:b-1")).toMatchObject({ tag: "order.created", keys: "b-1" });
  }, 60_000);

  test("the receipt is the broker's message id, the queue and the place in it", async () => {
    const topic = await newTopic("receipts");
    const batch = Array.from({ length: 40 }, (_, index) => outgoing(`r-${index}`, { topic }));
    const results = await broker.publish(batch, noDeadline());
    const stored = await storedIn(topic, 40);
    const places = new Map(stored.map((message) => [message.properties.get("rowpost-key"), message]));
    for (const [index, result] of results.entries()) {
      const { queue, offset } = places.get(`r-${index}`) ?? {};
      const receipt = expect.stringMatching(new RegExp(`^[0-9A-F]{32}:${queue}:${offset}$`));
      expect(result).toMatchObject({ status: "sent", messageId: receipt });
    }
    expect(new Set(results.map((result) => (result.status === "sent" ? result.messageId : ""))).size).toBe(40);
  });

  test("100 keys keep their order over calls that run side by side, each in the queue that Java would take", async () => {
    const topic = await newTopic("ordered");
    const calls = Array.from({ length: 4 }, (_, call) =>
      Array.from({ length: 250 }, (_, index) =>
        outgoing(`${call}-${index}`, { topic, orderingKey: `客户-${call}-${index % 25}`, body: String(index) }),
      ),
    );
    const results = await Promise.all(calls.map((batch) => broker.publish(batch, noDeadline())));
    expect(counts(results.flat())).toEqual({ sent: 1000 });
    const stored = await storedIn(topic, 1000);
    expect(stored).toHaveLength(1000);
    const queues = Array.from({ length: QUEUES }, (_, id) => ({ broker: "broker-a", address: "", id }));
    const last = new Map<string, number>();
    let inversions = 0;
    for (const { group = "", body, queue } of stored) {
      const number = Number(body.toString());
      if (number < (last.get(group) ?? -1)) inversions += 1;
      last.set(group, number);
      expect(queueOf(group, queues)?.id).toBe(queue);
    }
    expect([last.size, inversions]).toEqual([100, 0]);
  });

  test("messages without a key are spread over the queues", async () => {
    const topic = await newTopic("spread");
    const batch = Array.from({ length: 32 * QUEUES }, (_, index) => outgoing(`s-${index}`, { topic }));
    const results = await broker.publish(batch, noDeadline());
    const queues = results.map((result) => (result.status === "sent" ? result.messageId.split(":")[1] : "none"));
    expect(new Set(queues)).toEqual(new Set(["0", "1", "2", "3"]));
  });

  describe("what cannot be sent", () => {
    test("a message that RocketMQ cannot take fails before it is sent, its neighbors go out", async () => {
      const topic = await newTopic("refused");
      const bad = new Map<number, readonly [code: string, changes: Partial<OutgoingMessage>]>([
        [3, ["ILLEGAL_MESSAGE_PROPERTY_KEY", { headers: { TRAN_MSG: "true" } }]],
        [20, ["ILLEGAL_MESSAGE_PROPERTY_KEY", { headers: { "a\u0001b": "x" } }]],
        [40, ["MESSAGE_BODY_EMPTY", { body: "" }]],
        [41, ["MESSAGE_PROPERTIES_TOO_LARGE", { headers: { large: "x".repeat(32_000) } }]],
        [42, ["MESSAGE_BODY_TOO_LARGE", { body: new Uint8Array(4_194_305) }]],
      ]);
      const batch = Array.from({ length: 50 }, (_, index) => outgoing(`x-${index}`, { topic, ...bad.get(index)?.[1] }));
      const results = await broker.publish(batch, noDeadline());
      for (const [index, result] of results.entries()) {
        const code = bad.get(index)?.[0];
        expect(result).toMatchObject(
          code === undefined ? { status: "sent" } : { status: "failed", scope: "message", retriable: false, code },
        );
      }
    });

    test("a body above the broker's own limit is refused by the broker, for good and alone", async () => {
      const topic = await newTopic("limit");
      const wide = rocketmqClassic({ ...optionsFor(server), maxBodyBytes: 8_000_000 });
      try {
        const body = new Uint8Array(4_400_000);
        const batch = [outgoing("l-1", { topic }), outgoing("l-2", { topic, body }), outgoing("l-3", { topic })];
        expect(await wide.publish(batch, noDeadline())).toMatchObject([
          { status: "sent" },
          { status: "failed", scope: "message", retriable: false, code: "MESSAGE_ILLEGAL" },
          { status: "sent" },
        ]);
      } finally {
        await wide.close();
      }
    });

    test("headers as large as are allowed arrive, in a batch too", async () => {
      const topic = await newTopic("headers");
      const batch = ["h-1", "h-2"].map((key) => outgoing(key, { topic, headers: { large: "x".repeat(31_900) } }));
      expect(counts(await broker.publish(batch, noDeadline()))).toEqual({ sent: 2 });
      const stored = await storedIn(topic, 2);
      expect(stored.map(({ properties }) => properties.get("large")?.length)).toEqual([31_900, 31_900]);
    });

    test("a topic that does not exist fails its own messages, and works once it exists", async () => {
      const [missing, topic] = [uniqueName("missing"), await newTopic("there")];
      const batch = [outgoing("t-1", { topic: missing }), outgoing("t-2", { topic })];
      expect(await broker.publish(batch, noDeadline())).toMatchObject([
        { status: "failed", scope: "message", retriable: true, code: "TOPIC_NOT_EXIST" },
        { status: "sent" },
      ]);
      made.push(await createTopic(admin, missing));
      const status = async (): Promise<string | undefined> =>
        (await broker.publish([outgoing("t-1", { topic: missing })], noDeadline()))[0]?.status;
      await expect.poll(status, { timeout: 30_000, interval: 200 }).toBe("sent");
    });

    test("a topic that takes no writes rests, and the failure says why", async () => {
      const topic = await newTopic("readonly");
      await makeReadOnly(server, topic);
      const readOnly = rocketmqClassic(optionsFor(server));
      try {
        const publish = async (): Promise<unknown> =>
          (await readOnly.publish([outgoing("w-1", { topic })], noDeadline()))[0];
        await expect
          .poll(publish, { timeout: 30_000 })
          .toMatchObject({ status: "failed", scope: "destination", reason: expect.stringMatching(/takes no writes/) });
      } finally {
        await readOnly.close();
      }
    });

    test("an illegal topic is refused for good", async () => {
      expect(await broker.publish([outgoing("t-3", { topic: "no such topic!" })], noDeadline())).toMatchObject([
        { status: "failed", scope: "message", retriable: false, code: "ILLEGAL_TOPIC" },
      ]);
    });
  });

  test("from a URL with several name servers and a namespace: the topic is the namespace's", async () => {
    const topic = await newTopic("named");
    const full = `shop%${topic}`;
    made.push(await createTopic(admin, full));
    const url = `rocketmq-classic://127.0.0.1:1;127.0.0.1:${server.nameServerPort}/shop?batch=8`;
    const fromUrl = rocketmqClassicFromUrl(url, {});
    try {
      await fromUrl.check();
      expect(await fromUrl.publish([outgoing("u-1", { topic })], noDeadline())).toMatchObject([{ status: "sent" }]);
      expect(await storedIn(full, 1)).toMatchObject([{ messageId: "order.created:u-1" }]);
    } finally {
      await fromUrl.close();
    }
  });

  test.each([
    ["nobody listens", "127.0.0.1:1", "ECONNREFUSED", /ECONNREFUSED.*Is the name server running/],
    ["a broker", `127.0.0.1:${server.brokerPort}`, "REQUEST_CODE_NOT_SUPPORTED", /is this a RocketMQ name server/],
  ])(
    "a name server's address where there is %s: one line that says what to look at",
    async (_, nameServers, code, words) => {
      const wrong = rocketmqClassic({ nameServers });
      try {
        await expect(wrong.check()).rejects.toMatchObject({ code, message: expect.stringMatching(words) });
        await expect(wrong.check()).rejects.toMatchObject({ message: expect.not.stringContaining("\n") });
        const results = await wrong.publish([outgoing("n-1")], noDeadline());
        expect(results).toMatchObject([{ status: "failed", scope: "connection", code }]);
      } finally {
        await wrong.close();
      }
    },
  );
});

describeWithService("rocketmq", "RocketMQ's two protocols", (service) => {
  test("a consumer of either reads the same of a message, whichever adapter sent it", async () => {
    const address = serverAddress(testService("rocketmq").address);
    const server = sharedServer("rocketmq", service.address);
    const topic = await createTopic(address, uniqueName("either"));
    const classic = rocketmqClassic(optionsFor(server));
    const grpc = rocketmq({ endpoints: `127.0.0.1:${address.port}` });
    const message = outgoing("订单 42", {
      topic,
      body: "正文",
      type: "a|b",
      headers: { "rowpost-key": "订单 42", note: "one\ntwo", nothing: "", tenant: "blue moon" },
    });
    const readers = [await createClassicReader(server, [topic]), await createOfficialReader(address, [topic])];
    try {
      for (const broker of [classic, grpc]) {
        expect(await broker.publish([message], noDeadline())).toMatchObject([{ status: "sent" }]);
      }
      for (const reader of readers) {
        const [one, other] = (await reader.waitFor(topic, (all) => all.length === 2)).map(known);
        expect(one).toEqual(other);
        expect(one).toMatchObject({ messageId: "a%7Cb:%E8%AE%A2%E5%8D%95%2042", keys: ["订单%2042"], tag: "a_b" });
      }
    } finally {
      await Promise.all([classic.close(), grpc.close(), ...readers.map((reader) => reader.close())]);
      await deleteTopic(address, topic);
    }
  }, 60_000);
});

/** What the application wrote; the hosts, times and what the broker notes are not of it. */
function known({ messageId, tag, keys, body, properties }: ConsumedMessage): object {
  const headers = decodeRocketmqHeaders([...properties].filter(([name]) => !/^(?:[A-Z_]+|__.*)$/.test(name)));
  return { messageId, tag, keys, body, headers };
}
