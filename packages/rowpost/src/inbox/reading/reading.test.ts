/** Client values that need no real broker: bytes, maps, and missing ones. */
import { describe, expect, it } from "vitest";
import {
  fromHeaders,
  fromKafka,
  fromMqtt,
  fromNats,
  fromQueue,
  fromRabbitmq,
  fromRedis,
  fromRocketmq,
  fromSqs,
  fromWebhook,
  MissingIdentityError,
} from "../index.ts";

const HEADERS = { "rowpost-type": "order.paid", "rowpost-key": "4711", "rowpost-attempt": "2" };
const IDENTITY = { type: "order.paid", key: "4711", attempt: 2 };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("the identity", () => {
  it("is read from texts and bytes, and of several values from the last", () => {
    const asBytes = Object.entries(HEADERS).map(([name, value]) => [name, bytes(value)] as const);
    expect(fromHeaders(HEADERS)).toEqual(IDENTITY);
    expect(fromHeaders(Object.fromEntries(asBytes))).toEqual(IDENTITY);
    expect(fromHeaders({ ...HEADERS, "rowpost-key": ["4710", bytes("4711")] })).toEqual(IDENTITY);
  });

  it("is read from the maps of @platformatic/kafka, whose names may be bytes", () => {
    const headers = new Map(Object.entries(HEADERS).map(([name, value]) => [Buffer.from(name), Buffer.from(value)]));
    expect(fromKafka({ headers, topic: "orders", partition: 3, offset: 17n })).toEqual({
      ...IDENTITY,
      topic: "orders",
      id: "orders-3@17",
    });
  });

  it("is read without an attempt that is no number, and without what the client leaves out", () => {
    const { attempt: _, ...bare } = IDENTITY;
    for (const attempt of ["", "x", "0", "-1", "1.5", undefined]) {
      expect(fromHeaders({ ...HEADERS, "rowpost-attempt": attempt })).toEqual(bare);
    }
    expect(fromNats({ headers: HEADERS })).toEqual(IDENTITY);
    expect(fromMqtt({ properties: { userProperties: HEADERS } })).toEqual(IDENTITY);
    expect(fromRocketmq({ properties: HEADERS })).toEqual(IDENTITY);
    expect(fromRabbitmq({ properties: { headers: HEADERS } })).toEqual(IDENTITY);
  });

  it("that is missing is told by name, with what to do", () => {
    const foreign: readonly (() => unknown)[] = [
      () => fromHeaders({}),
      () => fromKafka({}),
      () => fromKafka({ headers: null }),
      () => fromKafka({ topic: "orders", partition: 0, message: { headers: {} } }),
      () => fromNats({}),
      () => fromMqtt({}),
      () => fromSqs({ Body: "{}" }),
      () => fromRabbitmq({ properties: {} }),
      () => fromRedis(["1-0", ["body", "{}"]]),
      () => fromRocketmq({ properties: new Map() }),
      () => fromWebhook({ "content-type": "application/json" }),
      () => fromWebhook(new Headers()),
      () => fromQueue({ headers: {}, id: "1", topic: "orders", type: undefined, key: undefined }),
    ];
    for (const read of foreign) {
      expect(read).toThrow(MissingIdentityError);
      expect(read).toThrow(/message: \{ type, key \}/);
    }
    expect(() => fromHeaders({ "rowpost-type": "order.paid", "rowpost-key": "" })).toThrow(/no header rowpost-key:/);
  });
});
