import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  type ContextManager,
  context,
  propagation,
  ROOT_CONTEXT,
  type TextMapPropagator,
  trace,
} from "@opentelemetry/api";
import { afterAll, beforeAll, expect, test } from "vitest";
import { activeTraceHeaders, loadTelemetry } from "./trace-context.ts";

const storage = new AsyncLocalStorage<Context>();
const manager: ContextManager = {
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (active, run, self, ...args) => storage.run(active, () => Reflect.apply(run, self, args) as never),
  bind: (_active, target) => target,
  enable() {
    return this;
  },
  disable() {
    return this;
  },
};
const propagator: TextMapPropagator = {
  inject(active, carrier, setter) {
    const span = trace.getSpanContext(active);
    if (span !== undefined) setter.set(carrier, "traceparent", `00-${span.traceId}-${span.spanId}-01`);
  },
  extract: (active) => active,
  fields: () => ["traceparent"],
};
const span = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", traceFlags: 1 };

beforeAll(() => {
  context.setGlobalContextManager(manager);
  propagation.setGlobalPropagator(propagator);
});
afterAll(() => {
  context.disable();
  propagation.disable();
});

test("the active span's context becomes headers, once the API has been found", async () => {
  const active = trace.setSpanContext(ROOT_CONTEXT, span);
  expect(context.with(active, () => activeTraceHeaders())).toBeUndefined();
  await loadTelemetry();
  expect(context.with(active, () => activeTraceHeaders())).toEqual({
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  });
});

test("no span, or one that is none, adds nothing", async () => {
  await loadTelemetry();
  expect(activeTraceHeaders()).toBeUndefined();
  const invalid = trace.setSpanContext(ROOT_CONTEXT, { ...span, traceId: "0".repeat(32) });
  expect(context.with(invalid, () => activeTraceHeaders())).toBeUndefined();
});

test("the context of the call holds after an await", async () => {
  const active = trace.setSpanContext(ROOT_CONTEXT, span);
  const headers = await context.with(active, async () => {
    await loadTelemetry();
    return activeTraceHeaders();
  });
  expect(headers).toHaveProperty("traceparent");
});
