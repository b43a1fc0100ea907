import { describe, expect, test } from "vitest";
import type { OutgoingMessage } from "../broker.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import { type Plan, type PlanOptions, planTopic } from "./plan.ts";

function messages(...changes: Partial<OutgoingMessage>[]): PlacedMessage[] {
  return changes.map((change, index) => ({
    index,
    orderingKey: change.orderingKey,
    message: {
      id: String(index),
      type: "t",
      key: `k${index}`,
      topic: "orders",
      body: "{}",
      contentType: "application/json",
      headers: {},
      orderingKey: undefined,
      attempt: 1,
      ...change,
    },
  }));
}

function plan(types: readonly string[], batch: readonly PlacedMessage[], changes: Partial<PlanOptions> = {}): Plan {
  return planTopic(batch, {
    topic: "orders",
    accepts: new Set(types),
    batchSize: 4,
    maxRequestBytes: 1_000_000,
    maxBodyBytes: undefined,
    refuseUnordered: false,
    ...changes,
  });
}

function shape({ lanes }: Plan): number[][][] {
  return lanes.map((lane) => lane.map((request) => request.map(({ index }) => index)));
}

const keyed = (orderingKey: string): Partial<OutgoingMessage> => ({ orderingKey });

describe("planTopic", () => {
  test("messages without a key go in batches, side by side", () => {
    expect(shape(plan(["NORMAL"], messages({}, {}, {}, {}, {}, {})))).toEqual([[[0, 1, 2, 3]], [[4, 5]]]);
  });

  test("a request is filled by bytes too, and a large message goes alone", () => {
    const batch = messages({}, { body: "x".repeat(5000) }, {}, {});
    expect(shape(plan(["NORMAL"], batch, { maxRequestBytes: 2000 }))).toEqual([[[0]], [[1]], [[2, 3]]]);
  });

  test("on a NORMAL topic a key's messages stay in order: in one request, or in later ones of the same lane", () => {
    const batch = messages(keyed("a"), keyed("b"), keyed("a"), {}, keyed("a"), keyed("a"), keyed("a"), keyed("a"));
    const planned = plan(["NORMAL"], batch);
    expect(shape(planned)).toEqual([
      [
        [0, 2, 4, 5],
        [6, 7, 1, 3],
      ],
    ]);
    expect(planned.unordered).toBe(7);
  });

  test("keys that fit do not make requests wait for each other", () => {
    const batch = messages(keyed("a"), keyed("a"), keyed("a"), keyed("b"), keyed("b"), keyed("b"));
    expect(shape(plan(["NORMAL"], batch))).toEqual([[[0, 1, 2]], [[3, 4, 5]]]);
  });

  test("on a FIFO topic each message goes alone, behind the others of its group", () => {
    const planned = plan(["FIFO"], messages(keyed("a"), keyed("b"), keyed("a"), { key: "u" }));
    expect(shape(planned)).toEqual([[[0], [2]], [[1]], [[3]]]);
    expect(planned.lanes.flat(2).map(({ wire }) => wire.group)).toEqual(["a", "a", "b", "u"]);
    expect(planned.unordered).toBe(0);
  });

  test("a MIXED topic takes each message as what it is", () => {
    const batch = messages({}, keyed("a"), {}, keyed("a"));
    expect(shape(plan(["NORMAL", "FIFO", "DELAY", "TRANSACTION"], batch))).toEqual([[[1], [3]], [[0, 2]]]);
  });

  test("a topic for something else is a failure that a retry can help", () => {
    for (const types of [["TRANSACTION"], ["DELAY"], []]) {
      expect(plan(types, messages({}, keyed("a"))).refused).toMatchObject([
        { failure: { code: "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE", retriable: true } },
        { failure: { code: "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE", retriable: true } },
      ]);
    }
  });

  test("keyed messages can be refused where no order is kept", () => {
    const { refused, lanes } = plan(["NORMAL"], messages(keyed("a"), {}), { refuseUnordered: true });
    expect(refused.map(({ placed }) => placed.index)).toEqual([0]);
    expect(lanes.length).toBe(1);
  });

  test("a body above the server's limit fails without being sent; bytes count, not characters", () => {
    const batch = messages({ body: "界".repeat(4) }, { body: "x".repeat(10) }, { body: new Uint8Array(11) });
    const { refused } = plan(["NORMAL"], batch, { maxBodyBytes: 10 });
    expect(refused.map(({ placed, failure }) => [placed.index, failure.code, failure.retriable])).toEqual([
      [0, "MESSAGE_BODY_TOO_LARGE", false],
      [2, "MESSAGE_BODY_TOO_LARGE", false],
    ]);
  });
});
