import { describe, expect, it } from "vitest";
import { BrokerError } from "../runtime/errors.ts";
import type { Broker, OutgoingMessage, PublishResult } from "./broker.ts";
import { memory } from "./memory.ts";
import { routes } from "./routes.ts";

function message(topic: string, key: string, orderingKey?: string): OutgoingMessage {
  return {
    id: key,
    type: "t",
    key,
    topic,
    body: "{}",
    contentType: "application/json",
    headers: {},
    orderingKey,
    attempt: 1,
  };
}

const publish = (broker: Broker, ...batch: OutgoingMessage[]): Promise<PublishResult[]> =>
  broker.publish(batch, { signal: new AbortController().signal });

const named = (name: string, change: Partial<Broker> = {}): Broker => ({ ...memory(), name, ...change });

describe("patterns", () => {
  const target = (pattern: string, topic: string): string | undefined =>
    routes({ [pattern]: named("hit") }, { otherwise: named("missed") }).routes?.brokerOf(topic);

  it.each([
    ["orders", "orders", "hit"],
    ["orders", "orders2", "missed"],
    ["orders", "Orders", "missed"],
    ["orders.*", "orders.created", "hit"],
    ["orders.*", "orders.eu.created", "hit"],
    ["orders.*", "orders.", "hit"],
    ["orders.*", "orders", "missed"],
    ["*.eu", "orders.eu", "hit"],
    ["*.eu", "orders.eu.x", "missed"],
    ["a*b*c", "abc", "hit"],
    ["a*b*c", "a.b.b.c", "hit"],
    ["a*b*c", "acb", "missed"],
    ["ab*ba", "aba", "missed"],
    ["ab*ba", "abba", "hit"],
    ["a*bb*b", "abb", "missed"],
    ["订单.*", "订单.创建", "hit"],
    ["a.b", "axb", "missed"],
    ["(a+)+$", "(a+)+$", "hit"],
  ])("%s and the topic %s: %s", (pattern, topic, expected) => {
    expect(target(pattern, topic)).toBe(expected);
  });

  it("take a time that grows with the topic only", () => {
    const broker = routes({ [`${"a*".repeat(100)}b`]: memory() });
    expect(broker.routes?.brokerOf("a".repeat(100_000))).toBeUndefined();
  });

  it("are tried in the order in which they stand", () => {
    const [first, second, third] = [named("first"), named("second"), named("third")];
    const broker = routes([
      ["orders.eu", first],
      ["orders.*", second],
      ["*", third],
    ]);
    expect(["orders.eu", "orders.us", "stock"].map((topic) => broker.routes?.brokerOf(topic))).toEqual([
      "first",
      "second",
      "third",
    ]);
  });
});

describe("what cannot work is refused", () => {
  const one = memory();
  it.each<[string, () => unknown, RegExp]>([
    ["no route", () => routes({}), /there is none/],
    ["a list of objects", () => routes([{ orders: one }] as never), /list of pairs/],
    ["a list of brokers", () => routes([one] as never), /list of pairs/],
    ["an empty pattern", () => routes({ "": one }), /empty/],
    ["blanks", () => routes({ "orders ": one }), /blanks/],
    ["the wildcard of RabbitMQ", () => routes({ "orders.#": one }), /\* alone/],
    ["the wildcard of NATS", () => routes({ "orders.>": one }), /\* alone/],
    [
      "a pattern behind its own",
      () =>
        routes([
          ["a", one],
          ["a", memory()],
        ]),
      /twice/,
    ],
    ["a pattern that is never reached", () => routes({ "orders.*": one, "orders.eu": memory() }), /"orders.eu" first/],
    ["a pattern behind a wider one", () => routes({ "o*": one, "orders.*.eu": memory() }), /never reached/],
    ["otherwise behind everything", () => routes({ "*": one }, { otherwise: memory() }), /nothing is left/],
    ["an order that an object loses", () => routes({ "orders.*": one, 42: memory() }), /give a list/],
    ["no broker", () => routes({ orders: undefined as never }), /"orders" has no broker/],
    ["no broker for the rest", () => routes({ orders: one }, { otherwise: {} as never }), /otherwise has no broker/],
    ["routes inside routes", () => routes({ orders: routes({ orders: one }) }), /write their patterns here/],
  ])("%s", (_what, make, says) => {
    expect(make).toThrow(says);
    expect(make).toThrow(expect.objectContaining({ code: "CONFIGURATION" }));
  });
});

describe("publishing", () => {
  it("gives each message to its broker, and the results in the order of the batch", async () => {
    const [left, right] = [memory(), memory()];
    const broker = routes({ "a.*": left, "b.*": right });
    const results = await publish(
      broker,
      message("b.1", "1"),
      message("a.1", "2"),
      message("c", "3"),
      message("b.2", "4"),
    );
    expect(results).toMatchObject([
      { status: "sent", messageId: "1" },
      { status: "sent", messageId: "1" },
      { status: "failed", scope: "message", retriable: true, code: "NO_ROUTE" },
      { status: "sent", messageId: "2" },
    ]);
    expect(results[2]).toMatchObject({
      reason: expect.stringMatching(/no route for topic c; routes: a\.\*, b\.\*\. Add/),
    });
    expect(left.published().map(({ key }) => key)).toEqual(["2"]);
    expect(right.published().map(({ key }) => key)).toEqual(["1", "4"]);
  });

  it("keeps the order of a key that goes to two brokers, and hands over nothing behind a failure", async () => {
    const order: string[] = [];
    const recording = (slow: boolean, failing?: string) =>
      memory({
        outcome: async ({ key }) => {
          if (slow) await new Promise((resolve) => setImmediate(resolve));
          order.push(key);
          if (key !== failing) return undefined;
          return { status: "failed", scope: "message", retriable: true, code: "NO", reason: "refused" };
        },
      });
    const broker = routes({ a: recording(true, "5"), b: recording(false) });
    const results = await publish(
      broker,
      ...[message("a", "1", "k"), message("b", "2", "k"), message("a", "3", "k"), message("b", "4", "other")],
      ...[message("a", "5", "bad"), message("b", "6", "bad"), message("a", "7", "bad")],
    );
    expect(results.map(({ status }) => status)).toEqual([
      "sent",
      "sent",
      "sent",
      "sent",
      "failed",
      "notStarted",
      "notStarted",
    ]);
    expect(order.filter((key) => key <= "3")).toEqual(["1", "2", "3"]);
    expect(order).not.toContain("6");
    expect(order).not.toContain("7");
  });

  it("an adapter that breaks its contract spoils its own results only", async () => {
    const rejecting = named("rejecting", { publish: () => Promise.reject(new Error("bug")) });
    const short = named("short", { publish: () => Promise.resolve([]) });
    const broker = routes({ a: rejecting, b: short, c: memory() });
    const results = await publish(broker, message("a", "1"), message("b", "2"), message("c", "3"));
    expect(results).toMatchObject([
      { scope: "unknown", code: "ADAPTER_BUG", reason: expect.stringContaining("rejecting rejected: bug") },
      { scope: "unknown", code: "ADAPTER_BUG", reason: expect.stringContaining("short gave no result") },
      { status: "sent" },
    ]);
  });
});

describe("the whole", () => {
  it("promises what every broker keeps", () => {
    const features = { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: undefined } as const;
    const broker = (change: Partial<Broker["features"]>): Broker =>
      named("x", { features: { ...features, ...change } });
    expect(routes({ a: broker({}), b: broker({ maxBodyBytes: 9 }), c: broker({ maxBodyBytes: 5 }) }).features).toEqual({
      ...features,
      maxBodyBytes: 5,
    });
    const poor = broker({ ordering: "none", reportsUnknownTopic: false });
    expect(routes({ a: broker({}) }, { otherwise: poor }).features).toEqual({
      ordering: "none",
      reportsUnknownTopic: false,
      maxBodyBytes: undefined,
    });
  });

  it("names each broker once, and tells two of one kind apart", () => {
    const shared = memory();
    const broker = routes({ a: named("http"), "b.*": shared, "c.*": shared }, { otherwise: named("http") });
    expect(broker.routes?.brokers).toEqual(["http (a)", "memory", "http (otherwise)"]);
    expect(broker.routes?.brokerOf("c.1")).toBe("memory");
  });

  it("checks all, and says which cannot be used", async () => {
    const away = new BrokerError("BROKER_UNREACHABLE", "nobody there", { retriable: true });
    const bad = (name: string, error: Error): Broker => named(name, { check: () => Promise.reject(error) });
    await routes({ a: memory() }).check();
    await expect(routes({ a: bad("kafka", away), b: memory() }).check()).rejects.toMatchObject({
      code: "ROUTES_PARTLY_AWAY",
      retriable: true,
      message: "1 of 2 brokers cannot be used: kafka for a: BROKER_UNREACHABLE: nobody there",
    });
    await expect(routes({ a: bad("kafka", away) }, { otherwise: bad("nats", away) }).check()).rejects.toMatchObject({
      code: "ROUTES_AWAY",
      message: expect.stringMatching(/^2 of 2 .* kafka for a: .*; nats for otherwise: /),
    });
    const missing = new BrokerError("MISSING_PEER", "npm install nats");
    await expect(routes({ a: bad("kafka", away), b: bad("nats", missing) }).check()).rejects.toMatchObject({
      code: "MISSING_PEER",
      retriable: false,
    });
  });

  it("closes each broker once, also when one of them cannot", async () => {
    let closed = 0;
    const counting = named("x", {
      async close() {
        closed += 1;
      },
    });
    const broken = named("y", { close: () => Promise.reject(new Error("stuck")) });
    await routes({ a: counting, b: counting }, { otherwise: counting }).close();
    expect(closed).toBe(1);
    await expect(routes({ a: broken, b: counting }).close()).rejects.toThrow("stuck");
    expect(closed).toBe(2);
  });
});
