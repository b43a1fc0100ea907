/**
 * Reads and writes OpenTelemetry context in message headers, if the program has the optional peer
 * `@opentelemetry/api`.
 */
import { isThenable } from "./thenable.ts";
import { VERSION } from "./version.ts";

/** The used functions of the API. */
interface TelemetryApi {
  readonly context: { active(): object; with<Result>(context: object, run: () => Result): Result };
  readonly trace: {
    getSpanContext(context: object): object | undefined;
    isSpanContextValid(spanContext: object): boolean;
    getTracerProvider(): {
      /** Undefined without an SDK. */
      getDelegateTracer?(name: string, version: string): Tracer | undefined;
      getTracer(name: string, version: string): Tracer;
    };
    setSpan(context: object, span: Span): object;
  };
  readonly propagation: {
    inject(context: object, carrier: Record<string, string>): void;
    extract(context: object, carrier: Readonly<Record<string, string>>): object;
  };
}

interface Tracer {
  startSpan(name: string, options: { readonly kind: number; readonly attributes: object }, context: object): Span;
}

interface Span {
  recordException(error: Error | string): void;
  setAttribute(name: string, value: string): void;
  setStatus(status: { readonly code: number; readonly message: string }): void;
  end(): void;
}

/** `SpanKind.CONSUMER` and `SpanStatusCode.ERROR`. */
const CONSUMER = 4;
const ERROR = 2;

let loading: Promise<void> | undefined;
let api: TelemetryApi | undefined;
let loaded = false;

/**
 * Looks for the package once per process; undefined when that is done. Programs without it are
 * unaffected.
 */
export function loadTelemetry(): Promise<void> | undefined {
  if (loaded) return undefined;
  loading ??= import("@opentelemetry/api")
    .then(
      (module) => {
        api = module as unknown as TelemetryApi;
      },
      () => undefined,
    )
    .then(() => {
      loaded = true;
    });
  return loading;
}

/**
 * Headers with the active span's context (`traceparent` and others of the program's propagator);
 * undefined without an active span or a propagator, or before {@link loadTelemetry} has found the
 * package.
 */
export function activeTraceHeaders(): Readonly<Record<string, string>> | undefined {
  if (api === undefined) return undefined;
  const active = api.context.active();
  const spanContext = api.trace.getSpanContext(active);
  if (spanContext === undefined || !api.trace.isSpanContextValid(spanContext)) return undefined;
  const headers: Record<string, string> = {};
  api.propagation.inject(active, headers);
  return Object.keys(headers).length === 0 ? undefined : headers;
}

/** A message in terms of OpenTelemetry's messaging conventions. */
export interface ProcessedMessage {
  /** `messaging.system`. */
  readonly system: string;
  /** `messaging.destination.name`. */
  readonly topic: string;
  /** `messaging.consumer.group.name`. */
  readonly consumer: string;
  /** `messaging.message.id`. */
  readonly id: string | undefined;
  /** `messaging.destination.partition.id`. */
  readonly partition?: number | undefined;
  /** Headers from {@link activeTraceHeaders}: the span becomes a child of theirs. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Runs `work` in a span `process TOPIC`, which records its error. Without the package, or before
 * {@link loadTelemetry}, it only runs it.
 */
export function inProcessSpan<Result>(message: ProcessedMessage, work: () => Result): Result {
  const begun = api === undefined ? undefined : begin(api, message);
  if (api === undefined || begun === undefined) return work();
  const { span, context } = begun;
  return api.context.with(context, () => {
    try {
      const result = work();
      if (!isThenable(result)) {
        end(span);
        return result;
      }
      // One `then` only: some thenables, such as a knex query, run once more with each.
      const ending = Promise.resolve(result);
      ending.then(
        () => end(span),
        (error: unknown) => end(span, { error }),
      );
      return ending as Result;
    } catch (error) {
      end(span, { error });
      throw error;
    }
  });
}

/** Undefined without an SDK: unseen spans would cost a tenth of a consumer's work. */
function tracerOf({ trace }: TelemetryApi): Tracer | undefined {
  const provider = trace.getTracerProvider();
  return provider.getDelegateTracer === undefined
    ? provider.getTracer("rowpost", VERSION)
    : provider.getDelegateTracer("rowpost", VERSION);
}

/** A user's span processor may throw: then the message is handled without a span. */
function begin(
  telemetry: TelemetryApi,
  { consumer, headers, id, partition, system, topic }: ProcessedMessage,
): { readonly span: Span; readonly context: object } | undefined {
  try {
    const tracer = tracerOf(telemetry);
    if (tracer === undefined) return undefined;
    const { context, propagation, trace } = telemetry;
    const parent = propagation.extract(context.active(), headers);
    const attributes = {
      "messaging.system": system,
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "messaging.destination.name": topic,
      "messaging.consumer.group.name": consumer,
      ...(id === undefined ? {} : { "messaging.message.id": id }),
      ...(partition === undefined ? {} : { "messaging.destination.partition.id": String(partition) }),
    };
    const span = tracer.startSpan(`process ${topic}`, { kind: CONSUMER, attributes }, parent);
    return { span, context: trace.setSpan(parent, span) };
  } catch {
    return undefined;
  }
}

function end(span: Span, failed?: { readonly error: unknown }): void {
  try {
    if (failed !== undefined) {
      const { error } = failed;
      const isError = error instanceof Error;
      span.recordException(isError ? error : String(error));
      span.setAttribute("error.type", isError ? error.name : "_OTHER");
      span.setStatus({ code: ERROR, message: isError ? error.message : String(error) });
    }
    span.end();
  } catch {
    // A user's span processor may throw; the message is handled anyway.
  }
}
