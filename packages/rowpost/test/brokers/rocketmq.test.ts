/**
 * The RocketMQ broker on the shared server: what arrives, in which order, and what is refused.
 * Consumed with RocketMQ's own client.
 */
import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { decodeRocketmqHeaders, rocketmq, rocketmqFromUrl } from "../../src/brokers/rocketmq/index.ts";
import { describeWithService } from "../services.ts";
import { noDeadline, outgoing } from "./messages.ts";
import type { ConsumedMessage, Reader, ServerAddress } from "./rocketmq-server.ts";
import { createOfficialReader, createTopic, deleteTopic, serverAddress, uniqueName } from "./rocketmq-server.ts";

describeWithService("rocketmq", "the RocketMQ broker", (service) => {
  const server: ServerAddress = serverAddress(service.address);
  const endpoints = `127.0.0.1:${server.port}`;
  const [normal, fifo, delayed, transactional] = ["normal", "fifo", "delay", "tx"].map(uniqueName) as [
    string,
    string,
    string,
    string,
  ];
  const warnings: string[] = [];
  let broker: Broker;
  let reader: Reader;

  beforeAll(async () => {
    await createTopic(server, normal);
    await createTopic(server, fifo, "FIFO");
    await createTopic(server, delayed, "DELAY");
    await createTopic(server, transactional, "TRANSACTION");
    reader = await createOfficialReader(server, [normal, fifo]);
    broker = rocketmq({ endpoints, batchSize: 32, onWarning: (warning) => warnings.push(warning) });
  });

  afterAll(async () => {
    await broker?.close();
    await reader?.close();
    for (const topic of [normal, fifo, delayed, transactional]) await deleteTopic(server, topic);
  });

  const arrived = async (topic: string, keys: readonly string[]): Promise<ConsumedMessage[]> => {
    const wanted = new Set(keys);
    const mine = (messages: ConsumedMessage[]): ConsumedMessage[] =>
      messages.filter(({ properties }) => wanted.has(properties.get("rowpost-key") ?? ""));
    return mine(await reader.waitFor(topic, (messages) => new Set(mine(messages).map(keyOf)).size === wanted.size));
  };

  describe("a message", () => {
    test("arrives with id, keys, tag, properties, body and birth", async () => {
      const message = outgoing("m-1", { topic: normal, headers: { ...outgoing("m-1").headers, tenant: "blue moon" } });
      const before = Date.now();
      expect(await broker.publish([message], noDeadline())).toEqual([
        { status: "sent", messageId: "order.created:m-1" },
      ]);
      const after = Date.now();
      const [received] = await arrived(normal, ["m-1"]);
      expect(received).toMatchObject({
        messageId: "order.created:m-1",
        keys: ["m-1"],
        tag: "order.created",
        body: Buffer.from(message.body as string),
        bornHost: hostname(),
        group: undefined,
      });
      expect(Object.fromEntries(received?.properties ?? [])).toMatchObject({
        "rowpost-id": "order.created:m-1",
        "rowpost-type": "order.created",
        "rowpost-key": "m-1",
        "rowpost-attempt": "1",
        tenant: "blue moon",
      });
      expect(received?.bornAtMs).toBeGreaterThanOrEqual(before);
      expect(received?.bornAtMs).toBeLessThanOrEqual(after);
    });

    test("with a key, type or header that RocketMQ cannot carry arrives all the same, and tells what was encoded", async () => {
      const key = "order 42\n|订单";
      const changes = { type: "a|b\tc", topic: normal, contentType: "text/plain", body: "text" };
      const message = outgoing(key, changes);
      const headers = { ...message.headers, note: "line one\r\nline two", nothing: "" };
      const [result] = await broker.publish([{ ...message, headers }], noDeadline());
      expect(result).toMatchObject({ status: "sent" });
      const [received] = await reader
        .waitFor(normal, (messages) => messages.some(({ tag }) => tag === "a_b_c"))
        .then((messages) => messages.filter(({ tag }) => tag === "a_b_c"));
      expect(received?.messageId).toBe("a%7Cb%09c:order%2042%0A%7C%E8%AE%A2%E5%8D%95");
      expect(received?.keys).toEqual(["order%2042%0A|订单"]);
      expect(decodeRocketmqHeaders(received?.properties ?? [])).toMatchObject({
        ...headers,
        "content-type": "text/plain",
      });
    });

    test("has the same id on every attempt", async () => {
      const first = outgoing("again", { topic: normal });
      const second = { ...first, attempt: 2, headers: { ...first.headers, "rowpost-attempt": "2" } };
      const results = [
        ...(await broker.publish([first], noDeadline())),
        ...(await broker.publish([second], noDeadline())),
      ];
      expect(new Set(results.map((result) => (result.status === "sent" ? result.messageId : result.status))).size).toBe(
        1,
      );
      const copies = await reader
        .waitFor(normal, (messages) => messages.filter((message) => keyOf(message) === "again").length === 2)
        .then((messages) => messages.filter((message) => keyOf(message) === "again"));
      expect(new Set(copies.map(({ messageId }) => messageId))).toEqual(new Set(["order.created:again"]));
    });

    test("from a URL", async () => {
      const fromUrl = rocketmqFromUrl(`rocketmq://${endpoints}/?batch=8&timeoutMs=5000`, {});
      try {
        await fromUrl.check();
        expect(await fromUrl.publish([outgoing("url", { topic: normal })], noDeadline())).toMatchObject([
          { status: "sent" },
        ]);
      } finally {
        await fromUrl.close();
      }
    });
  });

  describe("on a NORMAL topic", () => {
    test("a large call goes out in batches, each message once", async () => {
      const batch = Array.from({ length: 500 }, (_, index) => outgoing(`many-${index}`, { topic: normal }));
      const results = await broker.publish(batch, noDeadline());
      expect(statuses(results)).toEqual({ sent: 500 });
      const received = await arrived(
        normal,
        batch.map(({ key }) => key),
      );
      expect(received.length).toBe(500);
      // Without batches 500 messages would be spread over the four queues one by one.
      const neighbors = received.filter(
        (message, index) => Number(keyOf(received[index + 1]).slice(5)) === Number(keyOf(message).slice(5)) + 1,
      );
      expect(neighbors.length).toBeGreaterThan(450);
    });

    test("a message that the server refuses fails alone, also from within a batch that it made fail", async () => {
      const batch = Array.from({ length: 100 }, (_, index) => outgoing(`split-${index}`, { topic: normal }));
      const bad = new Map<number, Partial<OutgoingMessage>>([
        [3, { headers: { KEYS: "a name of RocketMQ's own" } }],
        [40, { body: "" }],
        [41, { headers: { large: "x".repeat(17_000) } }],
        [99, { headers: Object.fromEntries(Array.from({ length: 130 }, (_, index) => [`h${index}`, "x"])) }],
      ]);
      const results = await broker.publish(
        batch.map((message, index) => ({ ...message, ...bad.get(index) })),
        noDeadline(),
      );
      expect([...results.entries()].filter(([, { status }]) => status !== "sent").map(([index]) => index)).toEqual([
        ...bad.keys(),
      ]);
      for (const [index, code] of [
        [3, "ILLEGAL_MESSAGE_PROPERTY_KEY"],
        [40, "MESSAGE_BODY_EMPTY"],
        [41, "MESSAGE_PROPERTIES_TOO_LARGE"],
        [99, "MESSAGE_PROPERTIES_TOO_LARGE"],
      ] as const) {
        expect(results[index]).toMatchObject({ status: "failed", scope: "message", retriable: false, code });
      }
      const good = batch.filter((_, index) => !bad.has(index)).map(({ key }) => key);
      expect((await arrived(normal, good)).length).toBe(96);
    });

    test("an oversize body in the middle of a batch fails with the server's limit, its neighbors go out", async () => {
      const body = new Uint8Array(4_194_305);
      // A broker of its own, whose settings have not come yet: the server says it, then the adapter
      // knows.
      const fresh = rocketmq({ endpoints });
      try {
        for (const round of [1, 2]) {
          const batch = [0, 1, 2, 3].map((index) => outgoing(`size-${round}-${index}`, { topic: normal }));
          const results = await fresh.publish(
            batch.map((message, index) => (index === 2 ? { ...message, body } : message)),
            noDeadline(),
          );
          expect(results.map(({ status }) => status)).toEqual(["sent", "sent", "failed", "sent"]);
          expect(results[2]).toMatchObject({ scope: "message", retriable: false, code: "MESSAGE_BODY_TOO_LARGE" });
        }
      } finally {
        await fresh.close();
      }
    });

    test("bodies that are large together are spread over requests", async () => {
      const body = "x".repeat(900_000);
      const batch = Array.from({ length: 8 }, (_, index) => outgoing(`big-${index}`, { topic: normal, body }));
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual({ sent: 8 });
    });

    test("keyed messages are stored in their order within a request, with one warning for the topic", async () => {
      const batch = Array.from({ length: 60 }, (_, index) =>
        outgoing(`keyed-${index}`, { topic: normal, orderingKey: `k${index % 3}` }),
      );
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual({ sent: 60 });
      await broker.publish([outgoing("keyed-more", { topic: normal, orderingKey: "k" })], noDeadline());
      expect(warnings.filter((warning) => warning.includes(normal)).length).toBe(1);
      expect(warnings[0]).toMatch(/NORMAL.*keeps no order/);
      expect(
        (
          await arrived(
            normal,
            batch.map(({ key }) => key),
          )
        ).length,
      ).toBe(60);
    });

    test("they fail instead where that was asked for", async () => {
      const strict = rocketmq({ endpoints, unorderedTopic: "fail" });
      try {
        const batch = [outgoing("s-1", { topic: normal, orderingKey: "k" }), outgoing("s-2", { topic: normal })];
        expect(await strict.publish(batch, noDeadline())).toMatchObject([
          { status: "failed", scope: "message", retriable: true, reason: expect.stringContaining("message.type=FIFO") },
          { status: "sent" },
        ]);
      } finally {
        await strict.close();
      }
    });
  });

  describe("on a FIFO topic", () => {
    test("100 groups keep their order over calls that run side by side", async () => {
      const calls = Array.from({ length: 4 }, (_, call) =>
        Array.from({ length: 250 }, (_, index) =>
          outgoing(`f-${call}-${index}`, {
            topic: fifo,
            orderingKey: `group-${call}-${index % 25}`,
            body: String(index),
          }),
        ),
      );
      const results = await Promise.all(calls.map((batch) => broker.publish(batch, noDeadline())));
      expect(statuses(results.flat())).toEqual({ sent: 1000 });
      const received = await arrived(
        fifo,
        calls.flat().map(({ key }) => key),
      );
      expect(received.length).toBe(1000);
      const lastOfGroup = new Map<string, number>();
      let inversions = 0;
      for (const { group = "", body } of received) {
        const number = Number(body.toString());
        if (number < (lastOfGroup.get(group) ?? -1)) inversions += 1;
        lastOfGroup.set(group, number);
      }
      expect(lastOfGroup.size).toBe(100);
      expect(inversions).toBe(0);
    });

    test("an unkeyed message gets its key as the group, a long ordering key a hash", async () => {
      const long = "客户".repeat(40);
      const batch = [
        outgoing("g-1", { topic: fifo }),
        outgoing("g-2", { topic: fifo, orderingKey: long }),
        outgoing("g-3", { topic: fifo, orderingKey: long }),
      ];
      expect(statuses(await broker.publish(batch, noDeadline()))).toEqual({ sent: 3 });
      const groups = (await arrived(fifo, ["g-1", "g-2", "g-3"])).map(({ group }) => group);
      expect(groups).toContain("g-1");
      expect(groups.filter((group) => /^sha256-[\w-]{43}$/.test(group ?? "")).length).toBe(2);
    });

    test("after a failure the later messages of that group are not started, other groups go on", async () => {
      const batch = ["a", "b", "a", "a", "b", "a"].map((orderingKey, index) =>
        outgoing(`stop-${index}`, { topic: fifo, orderingKey: `stop-${orderingKey}` }),
      );
      const results = await broker.publish(
        batch.map((message, index) => (index === 2 ? { ...message, headers: { TAGS: "x" } } : message)),
        noDeadline(),
      );
      expect(results.map(({ status }) => status)).toEqual([
        "sent",
        "sent",
        "failed",
        "notStarted",
        "sent",
        "notStarted",
      ]);
    });
  });

  test("a topic that takes DELAY messages only is refused, saying what it should be", async () => {
    const [result] = await broker.publish([outgoing("d-1", { topic: delayed })], noDeadline());
    expect(result).toMatchObject({ status: "failed", scope: "message", retriable: true });
    expect(result).toMatchObject({ reason: expect.stringContaining("message.type=NORMAL, FIFO or MIXED") });
  });

  describe("a topic", () => {
    test("that does not exist fails its own messages, and works once it exists", async () => {
      const missing = uniqueName("missing");
      const batch = [outgoing("t-1", { topic: missing }), outgoing("t-2", { topic: normal })];
      const results = await broker.publish(batch, noDeadline());
      expect(results).toMatchObject([
        { status: "failed", scope: "message", retriable: true, code: "TOPIC_NOT_FOUND" },
        { status: "sent" },
      ]);
      await createTopic(server, missing);
      try {
        await expect
          .poll(async () => (await broker.publish([outgoing("t-1", { topic: missing })], noDeadline()))[0]?.status, {
            timeout: 30_000,
            interval: 200,
          })
          .toBe("sent");
      } finally {
        await deleteTopic(server, missing);
      }
    });

    test("with an illegal name is refused for good", async () => {
      const results = await broker.publish([outgoing("t-3", { topic: "no such topic!" })], noDeadline());
      expect(results).toMatchObject([{ status: "failed", scope: "message", retriable: false, code: "ILLEGAL_TOPIC" }]);
    });

    test("for transactions only is a failure that says so", async () => {
      const results = await broker.publish([outgoing("t-4", { topic: transactional })], noDeadline());
      expect(results).toMatchObject([
        { status: "failed", scope: "message", retriable: true, code: "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE" },
      ]);
    });

    test("whose type was changed works again after one failure", async () => {
      const changing = await createTopic(server, uniqueName("changing"));
      try {
        const publish = async (key: string): Promise<PublishResult | undefined> =>
          (await broker.publish([outgoing(key, { topic: changing, orderingKey: "k" })], noDeadline()))[0];
        await expect.poll(async () => (await publish("c-1"))?.status, { timeout: 30_000 }).toBe("sent");
        await createTopic(server, changing, "FIFO");
        const seen: (PublishResult | undefined)[] = [];
        await expect
          .poll(
            async () => {
              seen.push(await publish("c-2"));
              const last = seen.at(-1);
              return last?.status === "sent" && seen.some((result) => result?.status === "failed");
            },
            { timeout: 30_000, interval: 100 },
          )
          .toBe(true);
        expect(seen.find((result) => result?.status === "failed")).toMatchObject({
          scope: "message",
          retriable: true,
          code: "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
        });
      } finally {
        await deleteTopic(server, changing);
      }
    });
  });
});

function keyOf(message: ConsumedMessage | undefined): string {
  return message?.properties.get("rowpost-key") ?? "";
}

function statuses(results: readonly PublishResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const result of results) {
    const name = result.status === "failed" ? `${result.code}: ${result.reason}` : result.status;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
