import { afterAll, beforeAll, expect, test } from "vitest";
import { inSpan, installTelemetry, SPAN, TRACEPARENT } from "../../test/telemetry.ts";
import { activeTraceHeaders, loadTelemetry } from "./trace-context.ts";

let uninstall = (): void => {};
beforeAll(() => {
  uninstall = installTelemetry();
});
afterAll(() => uninstall());

test("the active span's context becomes headers, once the API has been found", async () => {
  expect(inSpan(SPAN, activeTraceHeaders)).toBeUndefined();
  await loadTelemetry();
  expect(inSpan(SPAN, activeTraceHeaders)).toEqual({ traceparent: TRACEPARENT });
});

test("no span, or one that is none, adds nothing", async () => {
  await loadTelemetry();
  expect(activeTraceHeaders()).toBeUndefined();
  expect(inSpan({ ...SPAN, traceId: "0".repeat(32) }, activeTraceHeaders)).toBeUndefined();
});

test("the context of the call holds after an await", async () => {
  const headers = await inSpan(SPAN, async () => {
    await loadTelemetry();
    return activeTraceHeaders();
  });
  expect(headers).toEqual({ traceparent: TRACEPARENT });
});
