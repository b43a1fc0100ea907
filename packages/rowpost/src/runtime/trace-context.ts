/**
 * OpenTelemetry context for message headers, when the user's program has `@opentelemetry/api` (an
 * optional peer).
 */

/** The few functions of the API that are called. */
interface TelemetryApi {
  readonly context: { active(): object };
  readonly trace: {
    getSpanContext(context: object): object | undefined;
    isSpanContextValid(spanContext: object): boolean;
  };
  readonly propagation: { inject(context: object, carrier: Record<string, string>): void };
}

let loading: Promise<void> | undefined;
let api: TelemetryApi | undefined;
let loaded = false;

/**
 * Looks for the package, once in a process; undefined when that is done. A program that does not
 * have it stays as it is.
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
 * Headers that carry the active span's context (`traceparent`, and whatever else the program's
 * propagator writes); undefined without an active span, without a propagator, or before {@link
 * loadTelemetry} has found the package.
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
