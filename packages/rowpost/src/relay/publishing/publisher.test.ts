import { describe, expect, it } from "vitest";
import { inFlightMessage } from "../../../test/relay/scanned-message.ts";
import type { Broker } from "../../brokers/broker.ts";
import { memory } from "../../brokers/memory.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createPublisher } from "./publisher.ts";

/** A third-party adapter without type checks. */
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
    const results = await publisher.publish([inFlightMessage()]);
    expect(results).toMatchObject([{ status: "failed", scope: "unknown", code: "ADAPTER_BUG" }]);
  });
});
