/**
 * Errors as the two packages really throw them (kafkajs 2.2.4, \@platformatic/kafka 2.12.1 on Kafka
 * 4.3), and what is made of them.
 */
import { describe, expect, test } from "vitest";
import { failureOfQuestion, failureOfSend } from "./failures.ts";
import * as kafkajs from "./kafkajs-faults.ts";
import * as platformatic from "./platformatic.ts";

function error(fields: { readonly message: string; readonly [field: string]: unknown }, cause?: unknown): Error {
  return Object.assign(new Error(fields.message, { cause }), fields);
}

describe("kafkajs", () => {
  const refused = error({ name: "KafkaJSConnectionError", code: "ECONNREFUSED", message: "connect ECONNREFUSED" });
  const wrapped = error(
    { name: "KafkaJSNonRetriableError", retriable: false, message: "connect ECONNREFUSED" },
    refused,
  );

  test("a refused connection is looked for under its wrapper, and proves nothing when a request had been written", () => {
    expect(failureOfSend(kafkajs.faultOf(wrapped, false))).toMatchObject({ scope: "unknown", code: "ECONNREFUSED" });
    expect(failureOfSend(kafkajs.faultOf(wrapped, true))).toMatchObject({ scope: "destination", stale: true });
    expect(failureOfQuestion(kafkajs.faultOf(wrapped, true))).toMatchObject({
      scope: "connection",
      code: "ECONNREFUSED",
    });
  });

  test("the broker's own answer counts, whatever is around it and whether or not it was written", () => {
    const answer = error({ name: "KafkaJSProtocolError", code: 10, type: "MESSAGE_TOO_LARGE", message: "too large" });
    const outer = error({ name: "KafkaJSNumberOfRetriesExceeded", message: "too large" }, answer);
    for (const unsent of [true, false]) {
      expect(failureOfSend(kafkajs.faultOf(outer, unsent))).toMatchObject({
        scope: "message",
        retriable: false,
        divisible: true,
        code: "MESSAGE_TOO_LARGE",
      });
    }
  });

  test("time-outs and closed connections are unknown", () => {
    for (const [name, code] of [
      ["KafkaJSRequestTimeoutError", "REQUEST_TIMEOUT"],
      ["KafkaJSConnectionClosedError", "CONNECTION_CLOSED"],
    ]) {
      expect(failureOfSend(kafkajs.faultOf(error({ name, message: "gone" }), false))).toMatchObject({
        scope: "unknown",
        code,
        endsSession: true,
      });
    }
  });

  test("a wrong password concerns everything and names the variables", () => {
    const denied = error({ name: "KafkaJSSASLAuthenticationError", message: "SASL PLAIN authentication failed" });
    expect(failureOfQuestion(kafkajs.faultOf(denied, true))).toMatchObject({
      scope: "connection",
      code: "UNAUTHORIZED",
      reason: expect.stringContaining("ROWPOST_KAFKA_PASSWORD"),
    });
  });
});

describe("@platformatic/kafka", () => {
  const bundle = (...errors: Error[]): Error =>
    error({ code: "PLT_KFK_MULTIPLE", message: "Producing messages failed.", errors });
  const connecting = error(
    { code: "PLT_KFK_NETWORK", message: "Connection to 127.0.0.1:9092 failed." },
    error({ code: "ECONNREFUSED", message: "connect ECONNREFUSED 127.0.0.1:9092" }),
  );
  const closed = error({ code: "PLT_KFK_NETWORK", message: "Connection closed" });

  test("a connection that did not come about handed nothing over; one that broke may have", () => {
    expect(platformatic.faultOf(bundle(connecting))).toMatchObject({ kind: "unreachable", code: "ECONNREFUSED" });
    expect(platformatic.faultOf(bundle(closed))).toMatchObject({ kind: "lost", code: "CONNECTION_CLOSED" });
  });

  test("several tries: certain only when none of them got through", () => {
    expect(platformatic.faultOf(bundle(closed, connecting))).toMatchObject({ kind: "lost" });
    expect(platformatic.faultOf(bundle(connecting, connecting))).toMatchObject({ kind: "unreachable" });
  });

  test("an unknown topic has no code, only words", () => {
    const fault = platformatic.faultOf(error({ code: "PLT_KFK_USER", message: "Unknown topic orders." }));
    expect(failureOfQuestion(fault)).toMatchObject({
      scope: "message",
      retriable: true,
      code: "UNKNOWN_TOPIC_OR_PARTITION",
      reason: expect.stringContaining("kafka-topics.sh"),
    });
  });

  test("a refused login is told from a refused connection", () => {
    const protocol = error({
      code: "PLT_KFK_PROTOCOL",
      apiCode: 58,
      apiId: "SASL_AUTHENTICATION_FAILED",
      message: "no",
    });
    const login = error({ code: "PLT_KFK_AUTHENTICATION", message: "SASL authentication failed." }, bundle(protocol));
    const outer = error({ code: "PLT_KFK_NETWORK", message: "Connection to a:9092 failed." }, login);
    expect(failureOfQuestion(platformatic.faultOf(outer))).toMatchObject({ scope: "connection", code: "UNAUTHORIZED" });
  });
});

test.each([
  [7, "unknown", "stored by the leader, not by all in time"],
  [19, "destination", "not stored"],
  [20, "unknown", "stored by the leader"],
  [29, "destination", "a right that can be granted"],
  [87, "message", "wrong for ever"],
  [12_345, "unknown", "not known to us"],
])("code %d is about: %s (%s)", (code, scope) => {
  expect(failureOfSend({ kind: "answer", code, name: "X", text: "" }).scope).toBe(scope);
});
