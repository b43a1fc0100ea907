import { describe, expect, it } from "vitest";
import { scannedMessage } from "../../../test/relay/scanned-message.ts";
import type { PublishFailed, PublishResult } from "../../brokers/broker.ts";
import { DEFAULT_RETRY_POLICY } from "../../message/message-type.ts";
import { allowedFrom, TRANSITIONS } from "../../message/states.ts";
import { outcomeOf } from "./outcome.ts";

const MESSAGE = scannedMessage({ id: "7", shard: 3, key: "k", deliveryCount: 4, lockVersion: "9", waitingMs: 1_000 });
const SETTINGS = {
  policyOf: () => ({ ...DEFAULT_RETRY_POLICY, maxAttempts: 3, baseMs: 100, factor: 2, maxMs: 1_000 }),
  confirmOf: () => undefined,
  sendingMark: "on" as const,
};
const REST = { destinationRestMs: 800 };
const latest = (): number => 1;

function failed(change: Partial<PublishFailed>): PublishFailed {
  return { status: "failed", scope: "message", retriable: true, code: "CODE", reason: "why", ...change };
}

describe("outcome of a publish", () => {
  it("carries the token of the claim: one more than scanned, or as scanned without a mark (rules: claim-token, listed-in-flight)", () => {
    const sent = { status: "sent", messageId: "m-1" } as const;
    expect(outcomeOf(MESSAGE, sent, SETTINGS, REST)).toMatchObject({
      deliveryCount: 5,
      lockVersion: "10",
      toState: "sent",
      messageId: "m-1",
    });
    expect(outcomeOf(MESSAGE, sent, { ...SETTINGS, sendingMark: "off" }, REST)).toMatchObject({
      deliveryCount: 4,
      lockVersion: "9",
    });
  });

  it("sets the confirmation deadline of types that want one", () => {
    const settings = { ...SETTINGS, confirmOf: () => ({ withinMs: 600_000, onTimeout: "resend" as const }) };
    expect(outcomeOf(MESSAGE, { status: "sent", messageId: "m" }, settings, REST).nextRetryInMs).toBe(600_000);
  });

  it.each(["message", "unknown"] as const)("counts a failure of scope %s and waits longer each time", (scope) => {
    const first = outcomeOf(MESSAGE, failed({ scope }), SETTINGS, REST, latest);
    expect(first).toMatchObject({
      toState: "pending",
      retryDelta: 1,
      nextRetryInMs: 100,
      failReason: "CODE: why",
    });
    const second = outcomeOf({ ...MESSAGE, retryCount: 1 }, failed({ scope }), SETTINGS, REST, latest);
    expect(second.nextRetryInMs).toBe(200);
  });

  it.each([
    // [claims before, failures before, sending mark] of a message, before this claim adds one.
    ["never recovered", 2, 2, "on", 0],
    ["recovered twice", 4, 2, "on", -2],
    ["claimed without a mark, which counts nothing", 2, 2, "off", 1],
    ["recovered twice, without a mark", 4, 2, "off", -1],
  ] as const)(
    "a counted failure forgets recoveries: %s (rule: crash-counting)",
    (_, deliveryCount, retryCount, sendingMark, delta) => {
      const settings = { ...SETTINGS, sendingMark, policyOf: () => ({ ...DEFAULT_RETRY_POLICY, maxAttempts: 9 }) };
      const before = { ...MESSAGE, deliveryCount, retryCount };
      const { deliveryDelta } = outcomeOf(before, failed({}), settings, REST);
      expect(deliveryDelta).toBe(delta);
      expect(outcomeOf(before, failed({ retriable: false }), settings, REST).deliveryDelta).toBe(delta);
      const uncounted = outcomeOf(before, failed({ scope: "connection" }), settings, REST);
      expect(uncounted.deliveryDelta).toBe(sendingMark === "on" ? -1 : 0);
    },
  );

  it("gives up after maxAttempts, into the slow retry while the message is young enough", () => {
    const last = outcomeOf({ ...MESSAGE, retryCount: 2 }, failed({}), SETTINGS, REST);
    expect(last).toMatchObject({
      toState: "failed",
      retryDelta: 1,
      nextRetryInMs: DEFAULT_RETRY_POLICY.slowRetryEveryMs,
    });
    const old = { ...MESSAGE, retryCount: 2, waitingMs: DEFAULT_RETRY_POLICY.slowRetryForMs };
    expect(outcomeOf(old, failed({}), SETTINGS, REST).nextRetryInMs).toBeNull();
  });

  it("fails at once what no retry can mend", () => {
    const outcome = outcomeOf(MESSAGE, failed({ retriable: false, code: "TOO_LARGE" }), SETTINGS, REST);
    expect(outcome).toMatchObject({ toState: "failed", nextRetryInMs: null, failReason: "TOO_LARGE: why" });
  });

  it("counts nothing when the broker or the destination is away, or nothing was started", () => {
    for (const result of [failed({ scope: "connection" }), { status: "notStarted", reason: "stop" } as const]) {
      expect(outcomeOf(MESSAGE, result, SETTINGS, REST)).toMatchObject({
        toState: "pending",
        retryDelta: 0,
        deliveryDelta: -1,
        nextRetryInMs: null,
      });
    }
    expect(outcomeOf(MESSAGE, failed({ scope: "destination" }), SETTINGS, REST).nextRetryInMs).toBe(800);
    expect(
      outcomeOf(MESSAGE, failed({ scope: "destination", retryAfterMs: 5_000 }), SETTINGS, REST).nextRetryInMs,
    ).toBe(5_000);
    const unmarked = outcomeOf(MESSAGE, failed({ scope: "connection" }), { ...SETTINGS, sendingMark: "off" }, REST);
    expect(unmarked.deliveryDelta).toBe(0);
  });

  it("clips what a broker asks for, and no wait that somebody has set", () => {
    const yearMs = 365 * 86_400_000;
    const settings = {
      ...SETTINGS,
      confirmOf: () => ({ withinMs: yearMs, onTimeout: "resend" as const }),
      policyOf: () => ({ ...SETTINGS.policyOf(), maxAttempts: 1, slowRetryEveryMs: yearMs, slowRetryForMs: yearMs }),
    };
    const waitOf = (result: PublishResult) => outcomeOf(MESSAGE, result, settings, REST).nextRetryInMs;
    expect(waitOf({ status: "sent", messageId: "m" })).toBe(yearMs);
    expect(waitOf(failed({}))).toBe(yearMs);
    expect(waitOf(failed({ scope: "destination", retryAfterMs: yearMs }))).toBe(30 * 86_400_000);
    expect(waitOf(failed({ scope: "destination", retryAfterMs: 0.5 }))).toBe(1);
  });

  it("only makes changes that the table of transitions allows", () => {
    const results = [
      failed({}),
      failed({ retriable: false }),
      failed({ scope: "connection" }),
      { status: "sent", messageId: "m" } as const,
    ];
    for (const result of results) {
      const { toState } = outcomeOf(MESSAGE, result, SETTINGS, REST);
      const legal = TRANSITIONS.some((transition) => transition.to === toState && transition.from.includes("sending"));
      expect(legal).toBe(true);
    }
    expect(allowedFrom("claim")).toEqual(["pending"]);
  });
});
