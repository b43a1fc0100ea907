import { describe, expect, test } from "vitest";
import type { CallFailure } from "./connection.ts";
import { failureOfCall, failureOfStatus } from "./failures.ts";

function call(changes: Partial<CallFailure>): CallFailure {
  return { grpcCode: 14, details: "Connection dropped", connectCode: undefined, written: true, ...changes };
}

describe("failureOfStatus", () => {
  test("success is no failure", () => {
    expect(failureOfStatus({ code: "OK", message: "OK" })).toBeUndefined();
  });

  // Texts of RocketMQ 5.5.0; those marked * come from the protos' comments and were not provoked.
  test.each([
    ["MESSAGE_BODY_TOO_LARGE", "", "message", false],
    ["MESSAGE_BODY_EMPTY", "", "message", false],
    ["MESSAGE_PROPERTIES_TOO_LARGE", "", "message", false],
    ["ILLEGAL_TOPIC", "", "message", false],
    ["ILLEGAL_MESSAGE_TAG", "tag cannot contain control character", "message", false],
    ["ILLEGAL_MESSAGE_KEY", "", "message", false],
    ["ILLEGAL_MESSAGE_GROUP", "", "message", false],
    ["ILLEGAL_MESSAGE_PROPERTY_KEY", "property is used by system: KEYS", "message", false],
    ["TOPIC_NOT_FOUND", "No topic route info in name server for the topic", "message", true],
    ["MESSAGE_PROPERTY_CONFLICT_WITH_TYPE", "expected type is FIFO, but actual type is NORMAL", "message", true],
    ["INTERNAL_SERVER_ERROR", "message body size exceeded", "message", true],
    ["INTERNAL_SERVER_ERROR", "service not available now, the broker's disk is full", "destination", true],
    ["INTERNAL_SERVER_ERROR", "create mapped file failed, server is busy or broken.", "destination", true],
    ["TOO_MANY_REQUESTS", "*", "destination", true],
    ["PROXY_TIMEOUT", "*", "unknown", true],
    ["MASTER_PERSISTENCE_TIMEOUT", "*", "unknown", true],
    ["SLAVE_PERSISTENCE_TIMEOUT", "*", "unknown", true],
    ["INTERNAL_SERVER_ERROR", "wait response on the channel timeout, 3000(ms)", "unknown", true],
    ["HA_NOT_AVAILABLE", "*", "destination", true],
    ["FORBIDDEN", "*", "destination", true],
    ["UNAUTHORIZED", "check signature failed.", "connection", true],
    ["UNAUTHORIZED", "User:low has no permission to access Topic:orders from 127.0.0.1", "destination", true],
  ])("%s %j is about the %s", (code, message, scope, retriable) => {
    expect(failureOfStatus({ code, message })).toMatchObject({ code, scope, retriable });
  });

  test("throttling asks for a pause", () => {
    expect(failureOfStatus({ code: "TOO_MANY_REQUESTS", message: "" })?.retryAfterMs).toBe(1000);
  });

  test("only what can lie in one message makes a batch worth dividing", () => {
    const divisible = (code: string, message = ""): boolean => failureOfStatus({ code, message })?.divisible === true;
    expect(divisible("MESSAGE_BODY_TOO_LARGE")).toBe(true);
    expect(divisible("ILLEGAL_MESSAGE_PROPERTY_KEY")).toBe(true);
    expect(divisible("INTERNAL_SERVER_ERROR", "message body size exceeded")).toBe(true);
    expect(divisible("INTERNAL_SERVER_ERROR", "the broker's disk is full")).toBe(false);
    expect(divisible("TOPIC_NOT_FOUND")).toBe(false);
    expect(divisible("MESSAGE_PROPERTY_CONFLICT_WITH_TYPE")).toBe(false);
    expect(divisible("UNAUTHORIZED")).toBe(false);
  });

  test("a topic that SendMessage does not know is missing, not of another type", () => {
    const failure = failureOfStatus({
      code: "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
      message: "expected type is UNSPECIFIED, but actual type is NORMAL",
    });
    expect(failure).toMatchObject({ topicIsMissing: true, scope: "message", retriable: true });
  });

  test("codes newer than the protos go by their class", () => {
    expect(failureOfStatus({ code: 40_031, message: "new" })).toMatchObject({
      retriable: false,
      code: "ROCKETMQ_40031",
    });
    expect(failureOfStatus({ code: 42_903, message: "new" })).toMatchObject({ scope: "destination" });
    expect(failureOfStatus({ code: 59_999, message: "new" })).toMatchObject({ scope: "message", retriable: true });
  });

  test("reasons say what to do, without the server's advertisement", () => {
    const message =
      "CODE: 17  DESC: No topic route info\nFor more information, please visit the url, https://example.org";
    const reason = failureOfStatus({ code: "TOPIC_NOT_FOUND", message })?.reason;
    expect(reason).toMatch(/^CODE: 17 {2}DESC: No topic route info \(create the topic/);
    expect(reason).not.toContain("For more information");
  });
});

describe("failureOfCall", () => {
  test.each([
    ["refused", { written: false, connectCode: "ECONNREFUSED" }, "connection", "ECONNREFUSED"],
    ["a deadline while connecting", { written: false, grpcCode: 4 }, "connection", "GRPC_DEADLINE_EXCEEDED"],
    ["a deadline after the request", { grpcCode: 4 }, "unknown", "GRPC_DEADLINE_EXCEEDED"],
    ["a reset after the request", { grpcCode: 14 }, "unknown", "GRPC_UNAVAILABLE"],
    ["our abort after the request", { grpcCode: 1 }, "unknown", "GRPC_CANCELLED"],
    ["something else on that port", { grpcCode: 12 }, "connection", "GRPC_UNIMPLEMENTED"],
    ["a gateway's limit of rate", { grpcCode: 8, details: "slow down" }, "destination", "GRPC_RESOURCE_EXHAUSTED"],
    [
      "a gateway's limit of size",
      { grpcCode: 8, details: "Received message larger than max (5 vs 4)" },
      "message",
      "GRPC_RESOURCE_EXHAUSTED",
    ],
    ["a server that chokes", { grpcCode: 2, details: "" }, "unknown", "GRPC_UNKNOWN"],
  ])("%s", (_, failed, scope, code) => {
    expect(failureOfCall(call(failed))).toMatchObject({ scope, code });
  });

  test("a refused connection is told in its own words", () => {
    const details =
      "No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:8081. Resolution note: ";
    expect(failureOfCall(call({ written: false, details })).reason).toBe("connect ECONNREFUSED 127.0.0.1:8081");
  });
});
