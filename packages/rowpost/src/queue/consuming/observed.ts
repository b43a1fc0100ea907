import { queueIdMs } from "../../message/queue-id.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { createHandlingReports, type HandlingReports } from "../../runtime/handling-reports.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import { inProcessSpan } from "../../runtime/trace-context.ts";
import type { Delivery } from "./delivery.ts";
import { tellLong } from "./long-handlers.ts";
import type { ConsumerSettings } from "./options.ts";
import type { Partition } from "./partition.ts";

/** The span continues the trace of the append. */
export function observed(
  settings: ConsumerSettings,
  metrics: Metrics,
): { readonly settings: ConsumerSettings; readonly reports: HandlingReports } {
  const { group, handler } = settings;
  const traced: typeof handler = (message, context, handedOut) => {
    const { headers, id, partition, topic } = message;
    const about = { system: "rowpost", consumer: group, headers, id, partition, topic };
    return inProcessSpan(about, () => handler(message, context, handedOut));
  };
  const reports = createHandlingReports({ ...settings, consumer: group, metrics });
  return { settings: { ...settings, handler: traced }, reports };
}

/** Outcomes recorded ahead of the progress were reported then. */
export function tellWritten(
  reports: HandlingReports,
  { clock, topic }: ConsumerSettings,
  { message, attempt, again, outcome, recorded }: Delivery,
): void {
  if (recorded || (outcome?.kind !== "consumed" && outcome?.kind !== "failed")) return;
  const { id, key, type } = message;
  const { durationMs } = outcome;
  const about = { message: { topic, id, key: key ?? undefined, type: type ?? undefined }, attempt, durationMs };
  if (outcome.kind === "failed") {
    reports.failed({ ...about, error: outcome.thrown ?? outcome.error, isLast: outcome.final });
  } else reports.handled(about, again ? undefined : Math.max(0, clock.wallMs() - queueIdMs(id)));
}

/** `lateMs` is the delay of the event loop. */
export function tellUnderWay(
  reports: HandlingReports,
  settings: ConsumerSettings,
  held: ReadonlyMap<number, Partition>,
  lateMs: number,
): void {
  tellLong(settings, held.values(), lateMs);
  reports.oldest(settings.topic, oldestAgeMs(held.values(), settings.clock.wallMs()));
}

/** 0 when nothing is under way. */
function oldestAgeMs(held: Iterable<Partition>, nowMs: number): number {
  const ids = [...held].flatMap(({ window, again }) => [
    ...window.slice(0, 1).map(({ message }) => message.id),
    ...again.keys(),
  ]);
  const [oldest] = ids.sort(compareIds);
  return oldest === undefined ? 0 : Math.max(0, nowMs - queueIdMs(oldest));
}
