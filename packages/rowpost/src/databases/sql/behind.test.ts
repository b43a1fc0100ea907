import { expect, test } from "vitest";
import { BEHIND_BASE, behindInstant, headOfInstant } from "./behind.ts";

test("the instant of a head is told back, to the largest id that fits", () => {
  for (const id of ["1", "999", "1000", "86400001", "199999999999999", "200000000000000"]) {
    const instant = behindInstant(id);
    expect(instant).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/);
    expect(headOfInstant(instant ?? null)).toBe(id);
    expect(headOfInstant(`${instant?.replace(" ", "T")}Z`)).toBe(id);
  }
});

test("instants of larger heads sort behind those of smaller ones", () => {
  const instants = ["1", "2", "1000", "31536000000", "200000000000000"].map((id) => behindInstant(id) ?? "");
  expect([...instants].sort()).toEqual(instants);
  expect(instants[0]).toBe("3000-01-01 00:00:00.001");
});

test("an id that does not fit has none", () => {
  expect(behindInstant("200000000000001")).toBeUndefined();
  expect(behindInstant("9223372036854775807")).toBeUndefined();
});

test("other times stand for no message", () => {
  for (const instant of [BEHIND_BASE, "2026-01-01T00:00:00.000Z", "9999-12-31T00:00:00.000Z", "infinity", null]) {
    expect(headOfInstant(instant)).toBeUndefined();
  }
});
