import { expect, test } from "vitest";
import { median, medianOrNull, percentile, rounded } from "./statistics.ts";

test("the median of an odd count is its middle, of an even one the mean of the two", () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeUndefined();
});

test("runs without a measurement do not count", () => {
  expect(medianOrNull([null, 3, undefined, 1, 2])).toBe(2);
  expect(medianOrNull([null])).toBeNull();
});

test("percentiles are values that occurred", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(percentile(hundred, 50)).toBe(50);
  expect(percentile(hundred, 99)).toBe(99);
  expect(percentile(hundred, 100)).toBe(100);
  expect(percentile([7], 50)).toBe(7);
  expect(percentile([], 50)).toBeUndefined();
});

test("what cannot be written as a number is null", () => {
  expect(rounded(1.2345, 2)).toBe(1.23);
  expect(rounded(Number.NaN, 2)).toBeNull();
  expect(rounded(undefined, 2)).toBeNull();
});
