import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DEFAULT_RETRY_POLICY } from "../message/message-type.ts";
import { backoffCeilingMs, backoffMs } from "./backoff.ts";

const { baseMs, factor, maxMs } = DEFAULT_RETRY_POLICY;
const POLICY = { baseMs, factor, maxMs };

const anyOptions = fc.record({
  attempt: fc.integer({ min: 1, max: 1_000_000 }),
  baseMs: fc.integer({ min: 0, max: 100_000 }),
  factor: fc.double({ min: 1, max: 10, noNaN: true }),
  maxMs: fc.integer({ min: 0, max: 86_400_000 }),
});

describe("backoff", () => {
  test("the ceilings are those of the table in the doc comment", () => {
    const ceilings = Array.from({ length: 12 }, (_, index) => backoffCeilingMs({ ...POLICY, attempt: index + 1 }));
    const expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600].map((seconds) => seconds * 1_000);
    expect(ceilings).toEqual(expected);
  });

  test("every wait is a whole number between 0 and the ceiling, and the ceiling never exceeds maxMs", () => {
    const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(anyOptions, anyRandom, (options, random) => {
        const wait = backoffMs(options, () => random);
        expect(Number.isInteger(wait)).toBe(true);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(backoffCeilingMs(options));
        expect(backoffCeilingMs(options)).toBeLessThanOrEqual(options.maxMs);
      }),
    );
  });

  test("a later attempt never has a lower ceiling", () => {
    fc.assert(
      fc.property(anyOptions, (options) => {
        const next = { ...options, attempt: options.attempt + 1 };
        expect(backoffCeilingMs(next)).toBeGreaterThanOrEqual(backoffCeilingMs(options));
      }),
    );
  });

  test("the jitter is full: the draw reaches both ends, and its mean is half of the ceiling", () => {
    expect(backoffMs({ ...POLICY, attempt: 3 }, () => 0)).toBe(0);
    expect(backoffMs({ ...POLICY, attempt: 3 }, () => 0.999999)).toBe(4_000);
    const draws = Array.from({ length: 1_000 }, (_, index) =>
      backoffMs({ ...POLICY, attempt: 3 }, () => index / 1_000),
    );
    const mean = draws.reduce((sum, draw) => sum + draw, 0) / draws.length;
    expect(mean).toBeGreaterThan(1_990);
    expect(mean).toBeLessThan(2_010);
  });

  test("an attempt below 1 waits like the first, and no attempt is too large", () => {
    expect(backoffCeilingMs({ ...POLICY, attempt: 0 })).toBe(baseMs);
    expect(backoffCeilingMs({ ...POLICY, attempt: Number.MAX_SAFE_INTEGER })).toBe(maxMs);
    expect(backoffCeilingMs({ ...POLICY, attempt: 5, baseMs: 0 })).toBe(0);
  });
});
