import { expect, test } from "vitest";
import { cpuLimitOf } from "./cpu-limit.ts";
import type { Measurement } from "./meter.ts";

const drain: Measurement = {
  messages: 1000,
  wallMs: 100,
  statements: 10,
  foreignCpuPercent: 3,
  clientCpuMs: 20,
  serverCpuMs: 10,
  otherCpuMs: 0,
};
const client: Measurement = { ...drain, messages: 500, clientCpuMs: 5, serverCpuMs: 0, otherCpuMs: 5 };

test("the processors are shared by all that a message costs in every part", () => {
  // 30 ms and 20 ms for 1,000 messages.
  expect(cpuLimitOf([drain, client], 2)).toBe(40_000);
});

test("a server whose CPU time is unknown leaves no limit", () => {
  expect(cpuLimitOf([drain, { ...client, otherCpuMs: null }], 2)).toBeNull();
  expect(cpuLimitOf([{ ...drain, serverCpuMs: null }, client], 2)).toBeNull();
});
