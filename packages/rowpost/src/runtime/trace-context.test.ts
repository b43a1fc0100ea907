import { afterAll, beforeAll, expect, test } from "vitest";
import { endedSpans, inSpan, installTelemetry, SPAN, TRACEPARENT } from "../../test/telemetry.ts";
import { activeTraceHeaders, inProcessSpan, loadTelemetry } from "./trace-context.ts";

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

const MESSAGE = { system: "rowpost", topic: "orders", consumer: "billing", id: "1", headers: {} };

test("a handler's query that runs with each `then` runs once, and its span ends with it", async () => {
  await loadTelemetry();
  endedSpans.length = 0;
  let runs = 0;
  const name = "then";
  const query = Object.assign(
    {},
    {
      [name](done: (rows: number) => unknown) {
        runs += 1;
        done(7);
      },
    },
  );
  expect(await inProcessSpan(MESSAGE, () => query)).toBe(7);
  expect([runs, endedSpans.length]).toEqual([1, 1]);
});

test("without an SDK no span is begun, and what is thrown is passed on", async () => {
  await loadTelemetry();
  uninstall();
  endedSpans.length = 0;
  try {
    expect(inProcessSpan(MESSAGE, () => "as it is")).toBe("as it is");
    expect(() =>
      inProcessSpan(MESSAGE, () => {
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(endedSpans).toEqual([]);
  } finally {
    uninstall = installTelemetry();
  }
});
