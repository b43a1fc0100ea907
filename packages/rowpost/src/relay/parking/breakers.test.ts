import { describe, expect, it } from "vitest";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createConnectionGate } from "./connection-gate.ts";
import { createTopicBreaker, MESSAGE_PROBE } from "./topic-breaker.ts";

const NOTHING = {
  topic: "orders",
  sent: 0,
  destination: 0,
  unknown: 0,
  retriable: 0,
  retryAfterMs: undefined,
  reason: "",
};

describe("topic breaker", () => {
  it("rests a topic whose destination is away, longer each time, and probes with one message", async () => {
    const clock = createManualClock();
    const breaker = createTopicBreaker(clock);
    expect(breaker.allowance("orders")).toBe(Number.POSITIVE_INFINITY);
    expect(breaker.report({ ...NOTHING, destination: 500 })).toBe("opened");
    expect([breaker.restMs("orders"), breaker.allowance("orders"), breaker.allowance("other")]).toEqual([
      200,
      0,
      Number.POSITIVE_INFINITY,
    ]);
    await clock.advance(200);
    expect(breaker.allowance("orders")).toBe(1);
    breaker.taken("orders", 1);
    expect(breaker.allowance("orders")).toBe(0);
    expect(breaker.report({ ...NOTHING, destination: 1 })).toBeUndefined();
    expect(breaker.restMs("orders")).toBe(400);
  });

  it("counts a full window of failures once, and still takes a waiting time that one of them names", async () => {
    const clock = createManualClock();
    const breaker = createTopicBreaker(clock);
    for (let call = 0; call < 20; call += 1) {
      breaker.taken("orders", 50);
      breaker.report({ ...NOTHING, destination: 50 });
    }
    expect([breaker.restMs("orders"), breaker.wasAway("orders")]).toEqual([200, false]);
    breaker.report({ ...NOTHING, destination: 50, retryAfterMs: 3_000 });
    expect(breaker.restMs("orders")).toBe(3_000);
    await clock.advance(3_000);
    expect(breaker.allowance("orders")).toBe(1);
    breaker.report({ ...NOTHING, destination: 1 });
    expect(breaker.restMs("orders")).toBe(400);
  });

  it("closes at the first receipt", () => {
    const breaker = createTopicBreaker(createManualClock());
    breaker.report({ ...NOTHING, destination: 1 });
    expect(breaker.report({ ...NOTHING, sent: 1, destination: 3 })).toBe("closed");
    expect(breaker.allowance("orders")).toBe(Number.POSITIVE_INFINITY);
    expect([...breaker.open()]).toEqual([]);
  });

  it("slows a topic that does not exist so that its attempts are still used up", async () => {
    const clock = createManualClock();
    const breaker = createTopicBreaker(clock);
    for (let round = 0; round < 20; round += 1) breaker.report({ ...NOTHING, retriable: 100 });
    expect(breaker.restMs("orders")).toBe(1_000);
    await clock.advance(1_000);
    expect(breaker.allowance("orders")).toBe(MESSAGE_PROBE);
  });

  it("takes the broker's own waiting time", () => {
    const breaker = createTopicBreaker(createManualClock());
    breaker.report({ ...NOTHING, destination: 1, retryAfterMs: 7_000 });
    expect(breaker.restMs("orders")).toBe(7_000);
  });

  it("learns nothing about a topic from an outage, and frees the probe", async () => {
    const clock = createManualClock();
    const breaker = createTopicBreaker(clock);
    breaker.report({ ...NOTHING, destination: 1 });
    await clock.advance(200);
    breaker.taken("orders", 1);
    breaker.report(NOTHING);
    expect(breaker.allowance("orders")).toBe(1);
  });
});

describe("connection gate", () => {
  it("lets everything through until the broker is away, then one message at a time, at least once a second", async () => {
    const clock = createManualClock();
    const gate = createConnectionGate(clock);
    expect(gate.allowance()).toBe(Number.POSITIVE_INFINITY);
    expect(gate.unreachable("ECONNREFUSED")).toBe(true);
    for (let failure = 0; failure < 20; failure += 1) {
      expect(gate.unreachable("ECONNREFUSED")).toBe(false);
      expect(gate.waitMs()).toBeLessThanOrEqual(1_000);
      expect(gate.waitMs()).toBeGreaterThan(0);
      expect(gate.allowance()).toBe(0);
      await clock.advance(1_000);
      expect(gate.allowance()).toBe(1);
    }
    expect(gate.answered()).toBe(true);
    expect([gate.open, gate.allowance(), gate.answered()]).toEqual([true, Number.POSITIVE_INFINITY, false]);
  });
});
