import { expect, test } from "vitest";
import type { Measurement } from "../measure/meter.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { atLeast, atMost, resultOf } from "./result.ts";
import { plainTable } from "./table.ts";

/** A result only needs name and version of its database. */
const database = { product: "mariadb", version: "10.11" } as BenchDatabase;

function run(wallMs: number, more: Partial<Measurement> = {}): Measurement {
  const cpu = { clientCpuMs: 20, serverCpuMs: 40, otherCpuMs: 0, foreignCpuPercent: 3 };
  return { messages: 1000, wallMs, statements: 10, ...cpu, ...more };
}

test("the ratio is the median of neighboring runs, not the ratio of medians", () => {
  // The machine was slow in the second pair: both runs are slow, and the ratio stays.
  const { ratioToRaw, ratePerSecond, rawRatePerSecond } = resultOf({
    scenario: "outbox-drain",
    database,
    variant: "x",
    raw: [run(100), run(1000), run(110)],
    ours: [run(200), run(2000), run(220)],
  });
  expect(ratioToRaw).toBe(0.5);
  expect(ratePerSecond).toBe(Math.round(1000 / 0.22));
  expect(rawRatePerSecond).toBe(Math.round(1000 / 0.11));
});

test("a line has every field that the issue names, and says how much others disturbed the worst run", () => {
  const result = resultOf({
    scenario: "outbox-drain",
    database,
    variant: "x",
    ours: [run(100), run(100, { foreignCpuPercent: 40, serverCpuMs: null })],
  });
  expect(result).toMatchObject({
    scenario: "outbox-drain",
    database: "mariadb",
    variant: "x",
    messages: 1000,
    ratePerSecond: 10_000,
    rawRatePerSecond: null,
    ratioToRaw: null,
    statementsPerMessage: 0.01,
    p50Ms: null,
    p99Ms: null,
    clientCpuMsPer1000: 20,
    serverCpuMsPer1000: 40,
    foreignCpuPercent: 40,
  });
});

test("a figure that could not be measured misses its target", () => {
  expect(atLeast("ratioToRaw", null, 0.85).met).toBe(false);
  expect(atMost("p50Ms", null, 3).met).toBe(false);
  expect(atLeast("ratioToRaw", 0.85, 0.85).met).toBe(true);
  expect(atMost("p50Ms", 3, 3).met).toBe(true);
});

test("the table leaves out columns that say nothing", () => {
  const table = plainTable([resultOf({ scenario: "outbox-drain", database, variant: "x", ours: [run(100)] })]);
  expect(table).toContain("msg/s");
  expect(table).not.toContain("p99 ms");
});
