import { describe, expect, test } from "vitest";
import type { OutgoingMessage } from "../broker.ts";
import { groupOf, headersOf, indexKeyOf, messageIdOf, propertiesOf, tagOf } from "./carry.ts";

function outgoing(changes: Partial<OutgoingMessage>): OutgoingMessage {
  return {
    id: "1",
    type: "order.created",
    key: "1",
    topic: "orders",
    body: "{}",
    contentType: "application/json",
    headers: {},
    orderingKey: undefined,
    attempt: 1,
    ...changes,
  };
}

describe("messageIdOf", () => {
  test("is type:key as long as both are plain and short", () => {
    expect(messageIdOf("order.created", "order_1~2-3")).toBe("order.created:order_1~2-3");
  });

  test("percent-encodes the rest, so that different identities stay different", () => {
    expect(messageIdOf("a:b", "c")).toBe("a%3Ab:c");
    expect(messageIdOf("a", "b:c")).toBe("a:b%3Ac");
    expect(messageIdOf("t", "钥 匙,")).toBe("t:%E9%92%A5%20%E5%8C%99%2C");
    expect(messageIdOf("t", "a%20b")).toBe("t:a%2520b");
  });

  test("is a hash where that would be long, the same on every attempt", () => {
    const long = messageIdOf("t".repeat(64), "k".repeat(128));
    expect(long).toMatch(/^sha256-[\w-]{43}$/);
    expect(messageIdOf("t".repeat(64), "k".repeat(128))).toBe(long);
    expect(messageIdOf("t".repeat(64), `${"k".repeat(127)}K`)).not.toBe(long);
    // The boundary between type and key counts too.
    expect(messageIdOf("t".repeat(63), `t${"k".repeat(128)}`)).not.toBe(long);
  });

  test("takes any text, also half of a surrogate pair", () => {
    expect(messageIdOf("t", "\ud800")).toBe("t:%EF%BF%BD");
  });
});

describe("tagOf", () => {
  test.each([
    ["order.created", "order.created"],
    ["a|b", "a_b"],
    ["a\nb\u0085", "a_b_"],
    ["订单 已创建", "订单 已创建"],
    ["   ", ""],
  ])("%j becomes %j", (type, tag) => {
    expect(tagOf(type)).toBe(tag);
  });
});

describe("indexKeyOf", () => {
  test.each([
    ["order-1", "order-1"],
    ["order 42", "order%2042"],
    ["a\nb", "a%0Ab"],
    ["订单%1", "订单%1"],
    ["\u3000", "%E3%80%80"],
  ])("%j becomes %j", (key, indexed) => {
    expect(indexKeyOf(key)).toBe(indexed);
  });
});

describe("groupOf", () => {
  test("is the text itself up to 63 bytes", () => {
    expect(groupOf("customer-7")).toBe("customer-7");
    expect(groupOf("g".repeat(63))).toBe("g".repeat(63));
    expect(groupOf("客".repeat(21))).toBe("客".repeat(21));
  });

  test.each([["g".repeat(64)], ["客".repeat(22)], ["a\nb"], ["  "]])("is a hash for %j", (text) => {
    expect(groupOf(text)).toMatch(/^sha256-[\w-]{43}$/);
    expect(groupOf(text)).toBe(groupOf(text));
    expect(groupOf(`${text}x`)).not.toBe(groupOf(text));
  });
});

describe("propertiesOf", () => {
  test("headers go as they are", () => {
    expect(propertiesOf(outgoing({ headers: { "rowpost-key": "1", tenant: "blue moon" } }))).toEqual([
      "rowpost-key",
      "1",
      "tenant",
      "blue moon",
    ]);
  });

  test("a value with a control character is encoded and named", () => {
    expect(propertiesOf(outgoing({ headers: { "rowpost-key": "a\n100%", "odd,name%": "\t", plain: "50%" } }))).toEqual([
      "rowpost-key",
      "a%0A100%25",
      "odd,name%",
      "%09",
      "plain",
      "50%",
      "rowpost-encoded",
      "rowpost-key,odd%2Cname%25",
    ]);
  });

  test("an empty value is named, since RocketMQ drops it", () => {
    expect(propertiesOf(outgoing({ headers: { note: "", also: "" } }))).toEqual(["rowpost-empty", "note,also"]);
  });

  test("the media type goes along when it is not JSON and no header says it", () => {
    expect(propertiesOf(outgoing({ contentType: "text/plain" }))).toEqual(["content-type", "text/plain"]);
    expect(propertiesOf(outgoing({ contentType: "text/plain", headers: { "Content-Type": "text/x" } }))).toEqual([
      "Content-Type",
      "text/x",
    ]);
  });

  test("a header without a name is the message's failure", () => {
    expect(propertiesOf(outgoing({ headers: { "": "x" } }))).toMatchObject({ scope: "message", retriable: false });
  });
});

describe("headersOf", () => {
  const roundTrip = (headers: Record<string, string>): Record<string, string> => {
    const properties = propertiesOf(outgoing({ headers }));
    if (!Array.isArray(properties)) throw new Error(properties.reason);
    const pairs: [string, string][] = [];
    for (let index = 0; index < properties.length; index += 2) {
      pairs.push([properties[index] ?? "", properties[index + 1] ?? ""]);
    }
    return headersOf(pairs);
  };

  test.each([
    [{ "rowpost-key": "a\n100%0A", plain: "50%0A", note: "" }],
    [{ "odd,name%2C": "\u0085\t", "": "" }],
    [{ "订,单": "一\r\n二", "100%": "\u0001%" }],
  ])("gives back %j", (headers) => {
    const { "": _, ...named } = headers as Record<string, string>;
    expect(roundTrip(named)).toEqual(named);
  });

  test("leaves other programs' properties alone", () => {
    expect(headersOf(new Map([["a", "100%41"]]))).toEqual({ a: "100%41" });
  });
});
