import { describe, expect, it } from "vitest";
import type { Broker } from "../brokers/broker.ts";
import { memory } from "../brokers/memory.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { createPublisher, type PreparedMessage } from "./publisher.ts";

const MESSAGE: PreparedMessage = {
  entry: {
    epoch: 1,
    message: {
      ...{ id: "1", shard: 0, type: "t", key: "1", topic: "orders", body: "{}", headers: null, contentType: null },
      ...{ orderingKey: null, retryCount: 0, deliveryCount: 0, lockVersion: 0, deliverAtMs: null, resend: false },
      ...{ waitingMs: 0, due: false },
    },
  },
  outgoing: {
    ...{ id: "1", type: "t", key: "1", topic: "orders", body: "{}", contentType: "application/json", headers: {} },
    ...{ orderingKey: undefined, deliverAtMs: undefined, attempt: 1 },
  },
};

/** An adapter from elsewhere, which no compiler has checked. */
function broken(publish: () => unknown): Broker {
  return { ...memory(), publish: publish as Broker["publish"] };
}

describe("publisher", () => {
  const answers: readonly (readonly [string, () => unknown])[] = [
    [
      "throws instead of rejecting",
      () => {
        throw new Error("no connection yet");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no"))],
    ["answers nothing", () => Promise.resolve(undefined)],
    ["gives too few results", () => Promise.resolve([])],
    ["gives a hole", () => Promise.resolve([null])],
    ["gives a receipt that is no text", () => Promise.resolve([{ status: "sent", messageId: 7 }])],
    ["gives a scope that is none", () => Promise.resolve([{ status: "failed", scope: "broker" }])],
  ];
  it.each(answers)("takes an adapter that %s for an unknown outcome", async (_what, publish) => {
    const publisher = createPublisher({
      broker: broken(publish),
      clock: createManualClock(),
      publishTimeoutMs: 1_000,
    });
    const { results } = await publisher.publish([MESSAGE]);
    expect(results).toMatchObject([{ status: "failed", scope: "unknown", code: "ADAPTER_BUG" }]);
  });
});
