import { expect, test } from "vitest";
import { defaultLayout, messageTableLayout } from "./layouts.ts";
import {
  clip,
  decodeState,
  integer,
  labelWithLock,
  labelWithoutLock,
  scannedMessage,
  suspensionRule,
  text,
  textOrNull,
} from "./rows.ts";

test("drivers' kinds of numbers and texts come out alike", () => {
  const row = { number: 7, big: 9_007_199_254_740_993n, words: "8", bytes: new TextEncoder().encode("汉"), none: null };
  expect([integer(row, "number"), integer(row, "words"), integer(row, "none"), integer(row, "absent")]).toEqual([
    7, 8, 0, 0,
  ]);
  expect([text(row, "big"), text(row, "bytes"), text(row, "number")]).toEqual(["9007199254740993", "汉", "7"]);
  expect([textOrNull(row, "none"), textOrNull(row, "absent")]).toEqual([null, null]);
  expect(() => text(row, "none")).toThrow("no value for none");
});

test("a label fits into its column in ASCII, is read back as it was, and is cut between characters", () => {
  expect(labelWithoutLock(labelWithLock("张-1", "rowpost:7"))).toBe("张-1");
  const long = labelWithLock(`x${"张".repeat(60)}`, "rowpost:7");
  expect([long.length <= 255, /^[\x20-\x7e]*$/.test(long), labelWithoutLock(long)]).toEqual([
    true,
    true,
    `x${"张".repeat(39)}`,
  ]);
});

test("a state is told by number or word, and anything else is unknown", () => {
  expect([decodeState(defaultLayout, 2), decodeState(defaultLayout, "2"), decodeState(defaultLayout, 77)]).toEqual([
    "sent",
    "sent",
    "unknown",
  ]);
  expect([decodeState(messageTableLayout, "failed"), decodeState(messageTableLayout, null)]).toEqual([
    "failed",
    "unknown",
  ]);
});

test("a message that waits until now has waited for nothing, although its clock is a little ahead", () => {
  const row = {
    id: 1n,
    shard: 3,
    message_type: "t",
    message_key: "k",
    topic: "x",
    message_body: "{}",
    identity_hash: "-7",
    waiting_ms: "-2",
    due: 1n,
    resend: 0,
  };
  expect(scannedMessage({ bodyType: "text" }, row)).toMatchObject({
    id: "1",
    waitingMs: 0,
    due: true,
    resend: false,
    orderingKey: null,
  });
});

test("a rule of a scope that a newer version knows stops everything", () => {
  expect(suspensionRule({ scope: "tenant", value: "a", reason: "r", author: "me", ends_in_ms: null }).scope).toBe(
    "relay",
  );
});

test("clip counts characters as databases do, and leaves no half of one", () => {
  expect(clip("ab💥cd", 3)).toBe("ab💥");
  expect(clip("short", 10)).toBe("short");
  expect(clip("a\uD83Db\uDE00c\0d", 10)).toBe("a\uFFFDb\uFFFDcd");
});
