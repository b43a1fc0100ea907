import { expect, test } from "vitest";
import { failureOfAnswer, failureOfSilence, isStored } from "./failures.ts";
import type { Frame } from "./frames.ts";

const answer = (code: number, remark = ""): Frame => ({
  code,
  remark,
  opaque: 1,
  isAnswer: true,
  fields: {},
  body: Buffer.alloc(0),
});

test.each([
  [1, "AclException: Check signature failed for accessKey=k", "connection", "UNAUTHORIZED"],
  [16, "User:who is not found.", "connection", "UNAUTHORIZED"],
  [16, "User:low has no permission to access Topic:orders", "destination", "NO_PERMISSION"],
  [1, "AclException: No default permission for orders", "destination", "SYSTEM_ERROR"],
  [16, "the broker[10.0.0.1] sending message is forbidden", "destination", "NO_PERMISSION"],
  [1, "create mapped file failed, server is busy or broken.", "destination", "SYSTEM_ERROR"],
  [1, "in-sync replicas not enough", "destination", "SYSTEM_ERROR"],
  [1, "request queueId[9] is illegal, TopicConfig []", "message", "SYSTEM_ERROR"],
  [1, "UNKNOWN_ERROR", "message", "SYSTEM_ERROR"],
  [2, "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while", "destination", "SYSTEM_BUSY"],
  [3, " request type 105 not supported", "connection", "REQUEST_CODE_NOT_SUPPORTED"],
  [10, "", "unknown", "FLUSH_DISK_TIMEOUT"],
  [11, "", "destination", "SLAVE_NOT_AVAILABLE"],
  [12, "", "unknown", "FLUSH_SLAVE_TIMEOUT"],
  [13, "the message is illegal", "message", "MESSAGE_ILLEGAL"],
  [14, "service not available now. the broker's disk is full", "destination", "SERVICE_NOT_AVAILABLE"],
  [17, "topic[x] not exist, apply first please!", "message", "TOPIC_NOT_EXIST"],
  [215, "flow", "destination", "FLOW_CONTROL"],
  [1500, "please go away", "connection", "GO_AWAY"],
  [9999, "new", "message", "ROCKETMQ_9999"],
])("code %i, %j: %s", (code, remark, scope, name) => {
  const failure = failureOfAnswer(answer(code, remark));
  expect(failure).toMatchObject({ scope, code: name, retriable: code !== 13 });
});

test("words are one line, without Java's packages and links", () => {
  const remark = "CODE: 17  DESC: no topic\nFor more information, please visit the url, https://rocketmq.apache.org/x";
  expect(failureOfAnswer(answer(9, remark)).reason).toBe("CODE: 17 DESC: no topic");
});

test("a receipt for less than was asked for is one only where that is accepted", () => {
  expect([0, 10, 11, 12].map((code) => isStored(answer(code), false))).toEqual([true, false, false, false]);
  expect([0, 10, 11, 12, 1].map((code) => isStored(answer(code), true))).toEqual([true, true, true, true, false]);
});

test("a connection that broke after the request was written leaves it unknown, before: not handed over", () => {
  const broken = { code: "ECONNRESET", reason: "broke" };
  expect(failureOfSilence({ ...broken, written: true })).toMatchObject({ scope: "unknown" });
  expect(failureOfSilence({ ...broken, written: false })).toMatchObject({ scope: "connection" });
});
