/**
 * The OpenTelemetry API with a context manager and a propagator, as an SDK sets it up, without the
 * SDK.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, context, propagation, ROOT_CONTEXT, trace } from "@opentelemetry/api";

/** A valid span. */
export const SPAN = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", traceFlags: 1 };
/** Its `traceparent`. */
export const TRACEPARENT: string = `00-${SPAN.traceId}-${SPAN.spanId}-01`;

/** Sets both up for this process; returns the function that takes them away. */
export function installTelemetry(): () => void {
  const storage = new AsyncLocalStorage<Context>();
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, run, self, ...args) => storage.run(active, () => Reflect.apply(run, self, args) as never),
    bind: (_active, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  propagation.setGlobalPropagator({
    inject(active, carrier, setter) {
      const span = trace.getSpanContext(active);
      if (span !== undefined) setter.set(carrier, "traceparent", `00-${span.traceId}-${span.spanId}-01`);
    },
    extract: (active) => active,
    fields: () => ["traceparent"],
  });
  return () => {
    context.disable();
    propagation.disable();
  };
}

/** Runs `work` inside a span of this context. */
export function inSpan<T>(span: typeof SPAN, work: () => T): T {
  return context.with(trace.setSpanContext(ROOT_CONTEXT, span), work);
}
