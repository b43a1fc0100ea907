import { expect, test } from "vitest";
import { failureOf, outcomesOf } from "./failures.ts";

function sdkError(name: string, more: object = {}): Error {
  return Object.assign(new Error("words"), { name, ...more });
}

test.each([
  [sdkError("AWS.SimpleQueueService.NonExistentQueue"), { scope: "message", retriable: true }],
  [sdkError("QueueDoesNotExist"), { scope: "message", retriable: true }],
  [sdkError("RequestThrottled"), { scope: "destination", retryAfterMs: 1000 }],
  [sdkError("AccessDeniedException"), { scope: "destination" }],
  [sdkError("SignatureDoesNotMatch"), { scope: "connection" }],
  [sdkError("BatchRequestTooLong"), { scope: "message", retriable: false, divisible: true }],
  [sdkError("Error", { code: "ECONNREFUSED" }), { scope: "connection", code: "ECONNREFUSED" }],
  [sdkError("Error", { code: "ECONNRESET" }), { scope: "unknown", code: "ECONNRESET" }],
  [sdkError("TimeoutError"), { scope: "unknown" }],
  [sdkError("Odd", { $metadata: { httpStatusCode: 400 } }), { scope: "message", divisible: true }],
  [sdkError("InternalFailure", { $metadata: { httpStatusCode: 500 } }), { scope: "unknown" }],
])("%s", (error, expected) => {
  expect(failureOf(error, "SQS")).toMatchObject(expected);
});

test("each entry of an answer has its own outcome, by its number", () => {
  const outcomes = outcomesOf(
    {
      Successful: [{ Id: "2", MessageId: "m-2" }],
      Failed: [
        { Id: "0", Code: "InvalidMessageContents", SenderFault: true },
        { Id: "1", Code: "InternalError", SenderFault: false },
        { Id: "3", Code: "Other", SenderFault: true },
      ],
    },
    5,
  );
  expect(outcomes).toMatchObject([
    { scope: "message", retriable: false, code: "InvalidMessageContents" },
    { scope: "unknown", code: "InternalError" },
    "m-2",
    { scope: "message", retriable: false, code: "Other" },
    { scope: "unknown", code: "NO_RESULT" },
  ]);
});
