import { describe, expect, test } from "vitest";
import { duration, instant, listOf, messageId, messageState, stateMapping } from "./arguments.ts";

describe("duration", () => {
  test.each([
    ["0", 0],
    ["500ms", 500],
    ["10s", 10_000],
    ["1h30m", 5_400_000],
    ["1.5s", 1_500],
    ["7D", 604_800_000],
  ])("%s is %i ms", (text, ms) => {
    expect(duration(text)).toBe(ms);
  });

  test.each(["", "5", "10 s", "-1s", "1w", "s", "99999999999999d"])("%j is refused", (text) => {
    expect(() => duration(text)).toThrow();
  });
});

describe("instant", () => {
  const now = (): number => Date.parse("2026-11-21T12:00:00Z");

  test.each([
    ["2026-11-21T08:00:00Z", "2026-11-21T08:00:00.000Z"],
    ["2026-11-21T16:00+08:00", "2026-11-21T08:00:00.000Z"],
    ["2026-11-21 16:00:00+0800", "2026-11-21T08:00:00.000Z"],
    ["2026-11-21", "2026-11-21T00:00:00.000Z"],
    ["2h", "2026-11-21T10:00:00.000Z"],
  ])("%s is %s", (text, iso) => {
    expect(instant(text, now)).toBe(iso);
  });

  test.each(["2026-11-21T08:00", "yesterday", "2026-13-01", "21.11.2026"])("%s is refused", (text) => {
    expect(() => instant(text, now)).toThrow();
  });
});

test("lists grow with each use of the option", () => {
  const ids = listOf(messageId);
  expect(ids("3, 5", ids("007"))).toEqual(["7", "3", "5"]);
  expect(() => ids(" , ")).toThrow("empty");
});

test("states by their English and Chinese words", () => {
  expect([messageState("Failed"), messageState("已挂起")]).toEqual(["failed", "suspended"]);
  expect(stateMapping("pending=待发送,sent=2")).toEqual({ pending: "待发送", sent: 2 });
  expect(() => stateMapping("pending=a=b")).toThrow("STATE=VALUE");
});
