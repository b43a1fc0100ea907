import { describe, expect, test } from "vitest";
import { failureOfClient, failureOfConnect, failureOfReply } from "./failures.ts";

function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: "ReplyError" });
}

describe("what Redis says", () => {
  const SAID: readonly (readonly [words: string, scope: string, code: string])[] = [
    ["OOM command not allowed when used memory > 'maxmemory'.", "destination", "OOM"],
    [
      "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
      "destination",
      "MISCONF",
    ],
    ["NOREPLICAS Not enough good replicas to write.", "destination", "NOREPLICAS"],
    ["CLUSTERDOWN Hash slot not served", "destination", "CLUSTERDOWN"],
    ["MOVED 866 127.0.0.1:7002", "destination", "MOVED"],
    ["NOPERM this user has no permissions to access one of the keys used as arguments", "destination", "NOPERM"],
    ["NOPERM User a has no permissions to access the 'orders' key", "destination", "NOPERM"],
    ["NOPERM this user has no permissions to run the 'xadd' command", "connection", "NOPERM"],
    ["READONLY You can't write against a read only replica.", "connection", "READONLY"],
    ["LOADING Redis is loading the dataset in memory", "connection", "LOADING"],
    ["MASTERDOWN Link with MASTER is down", "connection", "MASTERDOWN"],
    ["NOAUTH Authentication required.", "connection", "NOAUTH"],
    ["ERR max number of clients reached", "connection", "MAX_CLIENTS"],
    [
      "ERR unknown command 'XADD', with args beginning with: 'orders' '*' 'body' 'secret'",
      "connection",
      "UNKNOWN_COMMAND",
    ],
    ["ERR Invalid stream ID specified as stream command argument", "connection", "INVALID_ARGUMENT"],
    ["WRONGTYPE Operation against a key holding the wrong kind of value", "message", "WRONGTYPE"],
    ["ERR Protocol error: invalid bulk length", "message", "BODY_TOO_LARGE"],
    ["ERR The stream has exhausted the last possible ID, unable to add more items", "destination", "STREAM_EXHAUSTED"],
    ["ERR something new", "message", "ERR"],
    ["NEWCODE something new", "message", "NEWCODE"],
  ];

  test.each(SAID)("%s", (words, scope, code) => {
    const failure = failureOfReply(replyError(words));
    expect(failure).toMatchObject({ status: "failed", scope, code, retriable: code !== "BODY_TOO_LARGE" });
    expect(failure.reason).not.toContain("secret");
  });

  test("advice names what has to be changed", () => {
    expect(failureOfReply(replyError("WRONGPASS invalid username-password pair")).reason).toMatch(
      /ROWPOST_REDIS_PASSWORD/,
    );
    expect(failureOfReply(replyError("OOM no")).reason).toMatch(/maxmemory/);
  });
});

describe("what the client says", () => {
  test("a command that it did not write was not handed over; any other may be stored", () => {
    const refused = new Error("Stream isn't writeable and enableOfflineQueue options is false");
    expect(failureOfClient(refused)).toMatchObject({ scope: "connection", reconnect: true });
    expect(failureOfClient(new Error("Connection is closed."))).toMatchObject({ scope: "unknown", reconnect: true });
  });

  test("a connection that does not come about is no message's fault, whatever Redis said", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED ::1:6379"), { code: "ECONNREFUSED" });
    const several = new AggregateError([refused], "");
    const ofNodes = Object.assign(new Error("Failed to refresh slots cache."), { lastNodeError: several });
    for (const error of [refused, several, ofNodes]) {
      expect(failureOfConnect(error, "redis://a:6379")).toMatchObject({
        scope: "connection",
        code: "ECONNREFUSED",
        reason: "cannot connect to redis://a:6379: connect ECONNREFUSED ::1:6379",
      });
    }
    expect(failureOfConnect(replyError("ERR something new"), "redis://a:6379")).toMatchObject({ scope: "connection" });
  });
});
