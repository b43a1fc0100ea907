/**
 * The OpenTelemetry API with a context manager, a propagator and a tracer, as an SDK sets it up,
 * without the SDK.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  trace,
} from "@opentelemetry/api";

/** A valid span. */
export const SPAN = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", traceFlags: 1 };
/** Its `traceparent`. */
export const TRACEPARENT: string = `00-${SPAN.traceId}-${SPAN.spanId}-01`;

/** A span that has ended. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: number | undefined;
  readonly attributes: Attributes;
  readonly traceId: string;
  readonly spanId: string;
  /** Of the span that it continues. */
  readonly parentId: string | undefined;
  readonly error: string | undefined;
}

/** In the order of their ends, since {@link installTelemetry}. */
export const endedSpans: EndedSpan[] = [];

function startSpan(name: string, kind: number | undefined, given: Attributes, parent: Context): Span {
  const above = trace.getSpanContext(parent);
  const [traceId, spanId] = [above?.traceId ?? randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  const attributes = { ...given };
  let error: string | undefined;
  const span = {
    ...trace.wrapSpanContext({ traceId, spanId, traceFlags: 1 }),
    spanContext: () => ({ traceId, spanId, traceFlags: 1 }),
    isRecording: () => true,
    recordException: () => undefined,
    setAttribute(key: string, value: string) {
      attributes[key] = value;
      return span;
    },
    setStatus({ message }: { readonly message?: string }) {
      error = message;
      return span;
    },
    end: () => void endedSpans.push({ name, kind, attributes, traceId, spanId, parentId: above?.spanId, error }),
  } as unknown as Span;
  return span;
}

/** Sets all up for this process; returns the function that takes them away. */
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
    extract(active, carrier, getter) {
      const [, traceId = "", spanId = ""] = String(getter.get(carrier, "traceparent") ?? "").split("-");
      return traceId === "" ? active : trace.setSpanContext(active, { traceId, spanId, traceFlags: 1 });
    },
    fields: () => ["traceparent"],
  });
  endedSpans.length = 0;
  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startSpan: (name, { kind, attributes = {} } = {}, parent = context.active()) =>
        startSpan(name, kind, attributes, parent),
      startActiveSpan: () => {
        throw new Error("not used");
      },
    }),
  });
  return () => {
    trace.disable();
    context.disable();
    propagation.disable();
  };
}

/** Runs `work` inside a span of this context. */
export function inSpan<T>(span: typeof SPAN, work: () => T): T {
  return context.with(trace.setSpanContext(ROOT_CONTEXT, span), work);
}
