import { describe, expect, test } from "vitest";
import type { OutgoingMessage } from "../broker.ts";
import { decodeRedisEntry, fieldsOf } from "./entry.ts";
import { needsTransaction, type Piece, planTopic } from "./plan.ts";

const NO_LIMIT = { maxBodyBytes: undefined, maxBulkBytes: 536_870_912 };

function message(
  orderingKey?: string,
  body: string | Uint8Array = "{}",
  headers: Record<string, string> = {},
): OutgoingMessage {
  return {
    id: "1",
    type: "t",
    key: "k",
    topic: "orders",
    body,
    contentType: "application/json",
    headers,
    orderingKey,
    attempt: 1,
  };
}

function plan(
  messages: readonly OutgoingMessage[],
  sizes = NO_LIMIT as Parameters<typeof planTopic>[2],
  limits = { messages: 3, bytes: 10_000 },
) {
  const placed = messages.map((each, index) => ({ index, orderingKey: each.orderingKey, message: each }));
  const { lanes, refused } = planTopic("orders", placed, sizes, limits);
  const isKeyed = ({ items: [first] }: Piece): boolean => first?.orderingKey !== undefined;
  const keyed: Piece[] = [];
  for (let piece = lanes.find(isKeyed); piece !== undefined; piece = piece.next) keyed.push(piece);
  return { keyed, unkeyed: lanes.filter((piece) => !isKeyed(piece)), refused };
}
const places = (pieces: readonly Piece[]): number[][] => pieces.map(({ items }) => items.map(({ index }) => index));

describe("pieces", () => {
  test("are cut by number, messages with and without a key apart", () => {
    const { keyed, unkeyed } = plan([
      message(),
      message("a"),
      message(),
      message(),
      message("b"),
      message(),
      message("a"),
      message("a"),
    ]);
    expect(places(unkeyed)).toEqual([[0, 2, 3], [5]]);
    expect(places(keyed)).toEqual([[1, 4, 6], [7]]);
  });

  test("are cut by bytes, and what is larger than one goes alone", () => {
    const { unkeyed } = plan([
      message(),
      message(undefined, "x".repeat(20_000)),
      message(),
      message(undefined, "x".repeat(9_800)),
    ]);
    expect(places(unkeyed)).toEqual([[0], [1], [2], [3]]);
  });

  test("are transactions where a key is there twice", () => {
    const { keyed } = plan([message("a"), message("b"), message("a"), message("c"), message("b"), message("d")]);
    expect(keyed.map(({ items }) => needsTransaction(items))).toEqual([true, false]);
    expect(needsTransaction(plan([message(), message()]).unkeyed[0]?.items ?? [])).toBe(false);
  });
});

describe("sizes", () => {
  test("are bytes, of the body for the user's limit and of any field for the server's", () => {
    const sizes = { maxBodyBytes: 10, maxBulkBytes: 30 };
    const batch = [
      message(undefined, "界界界"),
      message(undefined, "界界界界"),
      message(undefined, new Uint8Array(11)),
      message(undefined, "{}", { note: "界".repeat(10) }),
      message(undefined, "{}", { note: "界".repeat(11) }),
    ];
    const { unkeyed, refused } = plan(batch, sizes);
    expect(places(unkeyed)).toEqual([[0, 3]]);
    expect(refused.map(({ placed, failure }) => [placed.index, failure.code, failure.retriable])).toEqual(
      [1, 2, 4].map((index) => [index, "BODY_TOO_LARGE", false]),
    );
  });
});

describe("fields", () => {
  test("read back as they were, as text and as bytes", () => {
    const headers = { "rowpost-id": "t:k", body: "1", "header:x": "2", city: "上海", "": "" };
    const fields = fieldsOf(message("o", "{}", headers));
    const entry = { body: "{}", contentType: "application/json", orderingKey: "o", headers };
    expect(decodeRedisEntry(fields.map(String))).toEqual(entry);
    expect(decodeRedisEntry(fields.map((field) => Buffer.from(field)))).toEqual({ ...entry, body: Buffer.from("{}") });
  });

  test("a body that is a view is not copied, and has its own bytes only", () => {
    const whole = Uint8Array.from({ length: 16 }, (_, index) => index);
    const [, body] = fieldsOf(message(undefined, whole.subarray(4, 8)));
    expect(body).toEqual(Buffer.from([4, 5, 6, 7]));
    expect((body as Buffer).buffer).toBe(whole.buffer);
  });

  test("an entry of another program has its fields as headers", () => {
    expect(decodeRedisEntry(["a", "1"])).toEqual({
      body: "",
      contentType: "",
      orderingKey: undefined,
      headers: { a: "1" },
    });
    expect(decodeRedisEntry([])).toMatchObject({ body: "", headers: {} });
  });
});
